"""Clients that take their time, over real sockets."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import pytest
import uvicorn
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import server
from uvicorn.protocols.http import flow_control, h11_impl

from services.search.guards import lifecycle, slow_clients
from services.search.guards.concurrency import Admission, Gate, Gates
from services.search.guards.connections import Connections
from services.search.guards.refusals import WAITS
from services.search.guards.slow_clients import connection_with_deadlines
from services.search.settings import ServiceSettings
from tests.services.search.asgi import Inner

Result = TypeVar("Result")
HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def with_server(app: ASGIApp, talk: Callable[[int], Awaitable[Result]], **limits: Any) -> Result:
    """What `talk` returns, given the port of a server with these limits."""
    given: dict[str, Any] = {"open_connections": Connections(), "refusal": lambda _: None}
    seconds: dict[str, Any] = {"head_seconds": 0.15, "write_seconds": 0.15}
    for name, limit in limits.items():
        (seconds if name.endswith("_seconds") else given)[name] = limit
    settings = ServiceSettings(**seconds, head_bytes=2048)

    async def serve() -> Result:
        config = uvicorn.Config(
            app,
            port=0,
            http=connection_with_deadlines(settings, **given),
            ws="none",
            log_config=None,
            lifespan="off",
        )
        server = uvicorn.Server(config)
        config.load()
        serving = asyncio.create_task(server._serve())
        while not server.started:
            await asyncio.sleep(0.005)
        try:
            return await asyncio.wait_for(talk(server.servers[0].sockets[0].getsockname()[1]), timeout=10)
        finally:
            server.should_exit = True
            await serving

    return asyncio.run(serve())


async def sent(port: int, *parts: bytes | float) -> tuple[bytes, float]:
    """What came back until the server hung up, and how long that took; a number is a pause."""
    started = asyncio.get_running_loop().time()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    reading = asyncio.create_task(read_all(reader))
    for part in parts:
        if isinstance(part, bytes):
            writer.write(part)
        else:
            await asyncio.sleep(part)
    got = await reading
    writer.close()
    return got, asyncio.get_running_loop().time() - started


async def read_all(reader: asyncio.StreamReader) -> bytes:
    got = b""
    try:
        while part := await reader.read(65536):
            got += part
    except ConnectionError:
        pass
    return got


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (b"GET / HT",),
        (
            b"GET / HTTP/1.1\r\n",
            0.05,
            b"A: b\r\n",
            0.05,
            b"C: d\r\n",
            0.05,
            b"E: f\r\n",
            0.05,
            b"G: h\r\n",
            0.05,
            b"I: j\r\n",
        ),
    ],
    ids=["says nothing", "stops in the middle", "dribbles"],
)
def test_a_head_that_does_not_arrive_in_time_ends_the_connection(parts: tuple[bytes | float, ...]) -> None:
    inner = Inner()
    got, seconds = with_server(inner, lambda port: sent(port, *parts))
    assert got == b""
    assert 0.1 < seconds < 1
    assert inner.scopes == []


def test_the_next_request_of_a_connection_has_its_own_time() -> None:
    inner = Inner()
    got, seconds = with_server(
        inner, lambda port: sent(port, HEAD, 0.1, HEAD, 0.1, HEAD, 0.1, b"GET /slow", 0.05, b"er")
    )
    assert got.count(b"HTTP/1.1 200 OK") == 3
    assert len(inner.scopes) == 3
    assert 0.4 < seconds < 1.5


def test_a_head_that_is_too_long_ends_the_connection() -> None:
    inner = Inner()
    lines = [b"X-%d: %s\r\n" % (number, b"a" * 200) for number in range(30)]
    got, _ = with_server(inner, lambda port: sent(port, b"GET / HTTP/1.1\r\n", *lines), head_seconds=5.0)
    assert b"200 OK" not in got
    assert inner.scopes == []


def test_a_request_that_takes_long_to_answer_is_not_the_clients_fault() -> None:
    got, _ = with_server(
        Inner(seconds=0.4), lambda port: sent(port, HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    )
    assert b"200 OK" in got


def test_a_body_is_not_a_head() -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6000\r\nConnection: close\r\n\r\n"
    got, _ = with_server(Inner(), lambda port: sent(port, head, b"a" * 3000, 0.3, b"b" * 3000))
    assert b"200 OK" in got
    assert b"a" * 3000 + b"b" * 3000 in got


def test_a_client_that_stops_taking_its_answer_is_left() -> None:
    ended = asyncio.Event()

    async def answers_much(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        ended.set()

    async def takes_nothing(port: int) -> bool:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(HEAD)
        # The application is not left waiting either: what it still sends goes nowhere.
        await asyncio.wait_for(ended.wait(), timeout=5)
        writer.close()
        return True

    assert with_server(answers_much, takes_nothing)


def test_however_little_of_an_answer_is_left_a_client_that_takes_nothing_is_left() -> None:
    connections = Connections()

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * int(scope["path"][1:])})

    async def take_nothing(port: int) -> int:
        opened = []
        # What the kernel takes of an answer is not known; some of these leave less than 64 KiB.
        for size in range(50_000, 4_000_000, 30_000):
            opened.append(await asyncio.open_connection("127.0.0.1", port, limit=1024))
            opened[-1][1].write(
                HEAD.replace(b"/ ", b"/%d " % size).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            )
        await asyncio.sleep(1)
        left = len(connections._open)
        for _, writer in opened:
            writer.close()
        return left

    assert with_server(answers, take_nothing, open_connections=connections) == 0


def test_a_client_that_takes_its_answer_slowly_but_steadily_is_not_left() -> None:
    size = 6_000_000

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b"x" * size})

    async def take_slowly(port: int) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
        writer.write(HEAD)
        await reader.readuntil(b"\r\n\r\n")
        taken = 0
        while taken < size and (part := await reader.read(size // 30)):
            taken += len(part)
            await asyncio.sleep(0.01)  # 30 of these are twice as long as it may stop
        writer.close()
        return taken

    assert with_server(answers, take_slowly) == size


def test_whoever_asks_again_before_he_has_read_the_answer_gets_it_and_loses_the_connection() -> None:
    size = 80_000_000  # more than the operating system buffers
    begun: list[str] = []

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b"x" * size})

    async def ask_twice(port: int) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        await asyncio.sleep(0.3)
        await reader.readexactly(size)
        rest = await reader.read()
        writer.close()
        return len(begun), rest

    assert with_server(answers, ask_twice, write_seconds=5.0) == (1, b"")


def test_clients_that_do_not_read_large_answers_fill_no_more_memory_than_the_limit() -> None:
    connections = Connections(most_unread=25_000_000)

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10000000")]})
        await send({"type": "http.response.body", "body": b"x" * 10_000_000})

    async def ask_and_wait(port: int) -> int:
        writers = []
        for _ in range(8):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_000)
            writer.write(HEAD)
            await reader.readuntil(b"\r\n\r\n")
            writers.append(writer)
        unread = sum(each.unread for each in connections._open)
        for writer in writers:
            writer.close()
        return unread

    assert with_server(answers, ask_and_wait, write_seconds=5.0, open_connections=connections) < 35_000_000


def test_an_answer_that_is_partly_read_counts_as_a_whole() -> None:
    size = 80_000_000  # more than the operating system buffers
    connections = Connections()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b"x" * size})

    async def read_a_part(port: int) -> tuple[int, int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD)
        await reader.readuntil(b"\r\n\r\n")
        [connection] = connections._open
        before = connection.unread
        await reader.readexactly(20_000_000)
        after = connection.unread
        writer.close()
        return before, after

    before, after = with_server(answer, read_a_part, write_seconds=5.0, open_connections=connections)
    assert before == after > 20_000_000


@pytest.mark.parametrize("answer_seconds", [0.3, 30.0])
def test_an_answer_in_parts_gives_its_permit_back_though_its_client_reads_slowly(answer_seconds: float) -> None:
    gates = Gates(quick=Gate(at_once=1, queue=1, seconds=1), heavy=Gate(at_once=1, queue=1, seconds=1))

    async def answer_in_parts(scope: Scope, receive: Receive, send: Send) -> None:
        async def parts() -> AsyncIterator[bytes]:
            for _ in range(500):
                yield b"x" * 100_000

        await StreamingResponse(parts())(scope, receive, send)

    async def dribble(port: int) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
        writer.write(HEAD.replace(b"GET /", b"POST /companies/bulk"))
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(100):
            with suppress(ConnectionError):
                await reader.read(65_536)
            await asyncio.sleep(0.01)
        taken = gates.heavy.inside
        writer.close()
        return taken

    app = Admission(answer_in_parts, gates=gates, seconds=5)
    assert with_server(app, dribble, write_seconds=5.0, answer_seconds=answer_seconds) == (answer_seconds > 1)
    assert gates.heavy.inside == 0


def test_a_request_refused_from_its_bytes_leaves_its_connection_usable() -> None:
    inner, refusals = Inner(), [b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"] * 2
    close = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    def refusal(data: bytes) -> bytes | None:
        return refusals.pop() if refusals else None

    got, _ = with_server(inner, lambda port: sent(port, HEAD, 0.1, HEAD, 0.1, HEAD, 0.1, close), refusal=refusal)
    assert [line for line in got.splitlines() if line.startswith(b"HTTP/1.1")] == [
        b"HTTP/1.1 503 Busy",
        b"HTTP/1.1 503 Busy",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK",
    ]
    assert len(inner.scopes) == 2


@pytest.mark.parametrize("is_health_check", [True, False])
def test_a_health_check_that_waits_is_answered_when_its_place_is_needed(is_health_check: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if is_health_check and not others:
            others.append(asyncio.Event())
            scope["state"][WAITS] = others[0]
            await others[0].wait()
        await Inner(seconds=0.4)(scope, receive, send)

    async def talk(port: int) -> tuple[bytes, float]:
        waiting = asyncio.create_task(sent(port, HEAD))
        await asyncio.sleep(0.1)
        late = asyncio.create_task(sent(port, HEAD))
        answered = await waiting
        await late
        return answered

    others: list[asyncio.Event] = []
    got, _ = with_server(app, talk, open_connections=Connections(most=1), head_seconds=1.0)
    assert got.startswith(b"HTTP/1.1 200 OK")
    assert [each.is_set() for each in others] == [True] * is_health_check


def test_whoever_sends_requests_ahead_gets_one_answer_and_loses_the_connection() -> None:
    inner = Inner()
    got, _ = with_server(inner, lambda port: sent(port, HEAD * 3))
    assert got.count(b"HTTP/1.1 200 OK") == len(inner.scopes) == 1


def test_the_rest_of_a_request_is_never_taken_for_a_new_one() -> None:
    asked: list[bytes] = []

    def refusal(data: bytes) -> bytes | None:
        asked.append(data)
        return None

    body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 54\r\nConnection: close\r\n\r\n"
    got, _ = with_server(
        Inner(), lambda port: sent(port, body[:20], 0.05, body[20:], 0.05, HEAD, 0.05, HEAD), refusal=refusal
    )
    assert b"200 OK" in got
    assert asked == [body[:20]]


def test_the_body_of_an_answered_request_is_never_taken_for_a_new_one() -> None:
    """The application answers before it has read the body, as load shedding does."""

    async def answers_at_once(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    def refusal(data: bytes) -> bytes | None:
        return b"HTTP/1.1 500 Not a request\r\ncontent-length: 0\r\n\r\n" if data == HEAD else None

    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n" % len(HEAD)
    got, _ = with_server(answers_at_once, lambda port: sent(port, head, b"\r\n", 0.05, HEAD), refusal=refusal)
    assert got.count(b"HTTP/1.1 ") == 1


def test_no_private_attribute_of_uvicorn_is_used() -> None:
    """They may change in any release; what is public has been there since 0.34."""
    for ours, theirs in ((slow_clients, (h11_impl, flow_control)), (lifecycle, (server,))):
        private = set(re.findall(r"\b_[a-z]\w*", "".join(map(inspect.getsource, theirs))))
        own = set(re.findall(r"(?:self|def) ?\.?(_[a-z]\w*)", inspect.getsource(ours)))
        assert not own & private, own & private
