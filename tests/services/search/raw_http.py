"""HTTP as bytes on loopback sockets: many connections, unfinished requests, requests that no client library sends."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

SECONDS_TO_ANSWER = 5.0


def connected(port: int, *, source: str = "127.0.0.1") -> socket.socket:
    """A connection to `port` that comes from the loopback address `source`."""
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS_TO_ANSWER, source_address=(source, 0))


@contextmanager
def connections(
    port: int, number: int, sent: bytes = b"", *, source: str = "127.0.0.1"
) -> Iterator[list[socket.socket]]:
    """So many open connections, each of which has brought the bytes `sent`."""
    _allow_files(number + 500)
    with ExitStack() as opened:
        made = []
        for _ in range(number):
            made.append(opened.enter_context(connected(port, source=source)))
            made[-1].sendall(sent)
        yield made


def answer(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection, or has said nothing more for SECONDS_TO_ANSWER."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except OSError:
        pass
    return got


def status(got: bytes) -> int:
    """The status of the first answer; 0 where there is none."""
    line = got.partition(b"\r\n")[0].split()
    return int(line[1]) if len(line) > 1 else 0


def is_closed(connection: socket.socket, *, seconds: float = SECONDS_TO_ANSWER) -> bool:
    """Whether the server closes the connection within `seconds`; what it still says is thrown away."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def _allow_files(number: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
