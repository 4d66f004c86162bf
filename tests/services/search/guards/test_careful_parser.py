"""What is refused before it is parsed, because parsing it would hold up others."""

import h11
import pytest

from services.search.guards import careful_parser
from services.search.guards.careful_parser import CarefulParser
from services.search.wire import problems

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def events(*parts: bytes) -> list[object]:
    """All events of these bytes, of as many requests as they hold."""
    parser = CarefulParser(max_incomplete_event_size=32_768)
    found: list[object] = []
    try:
        for part in parts:
            parser.receive_data(part)
            while (event := parser.next_event()) is not h11.NEED_DATA:
                if event is h11.PAUSED:
                    parser.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                    parser.send(h11.EndOfMessage())
                    parser.start_next_cycle()
                else:
                    found.append(type(event))
    except h11.RemoteProtocolError:
        found.append(parser.refusal.kind)
    return found


def chunks(size: int, count: int, head: str = "{:x}") -> bytes:
    return (f"{head.format(size)}\r\n".encode() + b"a" * size + b"\r\n") * count


@pytest.mark.parametrize("head", ["{:x}", "00{:x}", "{:x};", "{:x};note=1"])
def test_a_body_in_tiny_chunks_is_refused_however_their_sizes_are_written(head: str) -> None:
    found = events(CHUNKED + chunks(16, careful_parser.CHUNKS_OF_ANY_SIZE + 1, head))
    assert found[-1] is problems.OTHER_REFUSAL
    assert found.count(h11.Data) == careful_parser.CHUNKS_OF_ANY_SIZE


def test_large_chunks_and_a_few_small_ones_are_taken() -> None:
    few, large = chunks(1, careful_parser.CHUNKS_OF_ANY_SIZE), chunks(careful_parser.BYTES_OF_A_CHUNK, 300)
    assert events(CHUNKED + few + b"0\r\n\r\n")[-1] is h11.EndOfMessage
    assert events(CHUNKED + large + b"0\r\n\r\n")[-1] is h11.EndOfMessage


def test_a_body_that_arrives_byte_by_byte_has_no_chunks() -> None:
    assert events(HEAD + b"Content-Length: 2000\r\n\r\n", *[b"a"] * 2000)[-1] is h11.EndOfMessage


@pytest.mark.parametrize("before", [b"", HEAD + b"\r\n"], ids=["first", "pipelined"])
def test_a_head_of_too_many_lines_is_refused_before_it_is_parsed(before: bytes) -> None:
    found = events(before + HEAD + b"a:\r\n" * (careful_parser.MOST_HEAD_LINES + 1) + b"\r\n")
    assert found[-1] is problems.HEAD_TOO_LARGE
    assert found.count(h11.Request) == bool(before)


def test_a_head_of_too_many_bytes_is_named_as_such() -> None:
    assert events(HEAD, b"a" * 40_000)[-1] is problems.HEAD_TOO_LARGE
    assert events(b"\x16\x03\x01 not HTTP\r\n\r\n")[-1] is problems.OTHER_REFUSAL
