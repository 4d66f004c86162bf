"""A load generator for HTTP/1.1 with keep-alive: closed loop (an answer, then the next request), open loop (a rate).

An open loop sends each request when it is due, even if earlier answers are outstanding, as users do. A closed loop
slows down with the server and so hides its overload (coordinated omission).
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles

Request = bytes
NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one request: seconds since it was due, and the HTTP status, or NO_ANSWER."""

    status: int
    seconds: float


def get(path: str, *, host: str = "127.0.0.1") -> Request:
    """Return the bytes of a GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\r\n".encode()


class Connections:
    """Open connections to one server, each used by one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, request: Request, *, timeout: float) -> int:
        """Return the status of the answer; NO_ANSWER if none came within `timeout` seconds, or the connection failed.

        A server may close an idle connection at the moment of its next use. Then the request is sent again on another
        connection, as browsers do (RFC 9112, 9.3.1).
        """
        while True:
            reused = bool(self._idle)
            try:
                async with asyncio.timeout(timeout):
                    connection = self._idle.pop() if reused else await asyncio.open_connection("127.0.0.1", self._port)
                    return await self._asked(connection, request)
            except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
                unread = isinstance(error, ConnectionError) or getattr(error, "partial", None) == b""
                if not (reused and unread):
                    return NO_ANSWER

    async def _asked(self, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: Request) -> int:
        reader, writer = connection
        keeps = False
        try:
            writer.write(request)
            status, keeps = await _read_answer(reader)
        finally:
            if not keeps:
                writer.close()
        self._idle += [connection] if keeps else []
        return status

    def close(self) -> None:
        """Close the idle connections."""
        for _, writer in self._idle:
            writer.close()


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """Read one answer; return its status, and whether the connection stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head[9:12])
    if b"transfer-encoding: chunked" in head:
        while size := int((await reader.readline()).split(b";")[0], 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    elif b"content-length:" in head:
        await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n", 1)[0]))
    return status, b"connection: close" not in head


async def closed_loop(
    port: int, next_request: Callable[[], Request], *, connections: int, seconds: float, timeout: float = 10.0
) -> list[Answer]:
    """Send requests for `seconds`, one after another on each connection; return their answers."""
    pool, answers, end = Connections(port), list[Answer](), time.perf_counter() + seconds

    async def one_after_another() -> None:
        while time.perf_counter() < end:
            began = time.perf_counter()
            status = await pool.ask(next_request(), timeout=timeout)
            answers.append(Answer(status, time.perf_counter() - began))

    await asyncio.gather(*(one_after_another() for _ in range(connections)))
    pool.close()
    return answers


async def open_loop(
    port: int, next_request: Callable[[], Request], *, rate: float, seconds: float, timeout: float = 10.0
) -> list[Answer]:
    """Send `rate` requests a second for `seconds`, evenly spaced, without waiting for answers; return the answers."""
    pool, answers, began = Connections(port), list[Answer](), time.perf_counter()

    async def ask(due: float) -> None:
        status = await pool.ask(next_request(), timeout=timeout)
        answers.append(Answer(status, time.perf_counter() - due))

    async with asyncio.TaskGroup() as asking:
        for number in range(int(rate * seconds)):
            due = began + number / rate
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            asking.create_task(ask(due))
    pool.close()
    return answers


def summary(answers: list[Answer], *, seconds: float) -> str:
    """Return a line with the rate, p50, p95 and p99 of the answers with status 200, and the count of each status."""
    times = sorted(answer.seconds * 1000 for answer in answers if answer.status == 200)
    statuses: dict[int, int] = {}
    for answer in answers:
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
    counted = ", ".join(f"{count:,} x {status or 'no answer'}" for status, count in sorted(statuses.items()))
    if len(times) < 2:
        return f"no good answers ({counted})"
    marks = quantiles(times, n=100)
    return (
        f"{len(times) / seconds:7.1f} good answers/s, p50 {median(times):.1f} ms, p95 {marks[94]:.1f} ms, "
        f"p99 {marks[98]:.1f} ms ({counted})"
    )
