"""What is refused before it is parsed, because parsing it would hold up others."""

import h11
import pytest

from services.search.asking.question_schemas import TextQuery
from services.search.guards import careful_parser
from services.search.guards.careful_parser import CarefulParser
from services.search.wire import problems

MOST_BYTES = 32_768
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def events(*parts: bytes) -> list[object]:
    """All events of these bytes, of as many requests as they hold."""
    parser = CarefulParser(MOST_BYTES)
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
    found = events(before + HEAD + b"a:\r\n" * careful_parser.MOST_HEADERS + b"\r\n")
    assert found[-1] is problems.HEAD_TOO_LARGE
    assert found.count(h11.Request) == bool(before)


def test_a_head_of_just_the_limits_is_taken() -> None:
    # HEAD has one header.
    assert events(HEAD + b"a:\r\n" * (careful_parser.MOST_HEADERS - 1) + b"\r\n")[0] is h11.Request
    head = HEAD + b"a: %s\r\n\r\n" % (b"a" * (MOST_BYTES - len(HEAD + b"a: \r\n\r\n")))
    assert events(head)[0] is h11.Request
    assert events(head.replace(b"aaa", b"aaaa", 1))[-1] is problems.HEAD_TOO_LARGE


def test_an_address_of_too_many_parameters_is_refused() -> None:
    def given(count: int) -> bytes:
        return b"GET /?%s HTTP/1.1\r\nHost: a\r\n\r\n" % b"&".join([b"a="] * count)

    assert events(given(careful_parser.MOST_PARAMETERS))[0] is h11.Request
    assert events(given(careful_parser.MOST_PARAMETERS + 1)) == [problems.HEAD_TOO_LARGE]


def test_the_longest_query_in_an_address_has_not_too_many_parameters() -> None:
    members = TextQuery.model_json_schema()["properties"].values()
    assert sum(each.get("maxItems", 1) for each in members) <= careful_parser.MOST_PARAMETERS


@pytest.mark.parametrize("line", [b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.0\r\n"])
@pytest.mark.parametrize("length", [b"Content-Length: 2\r\n", b"Content-Length: 0\r\n", b""])
def test_a_length_that_a_proxy_may_read_otherwise_is_refused(line: bytes, length: bytes) -> None:
    found = events(line + length + b"Host: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    is_clear = line.endswith(b"1.1\r\n") and not length
    assert found == ([h11.Request, h11.EndOfMessage] if is_clear else [problems.OTHER_REFUSAL])


def test_a_head_of_too_many_bytes_is_named_as_such() -> None:
    assert events(HEAD, b"a" * 40_000)[-1] is problems.HEAD_TOO_LARGE
    assert events(b"\x16\x03\x01 not HTTP\r\n\r\n")[-1] is problems.OTHER_REFUSAL


TRAILERS = CHUNKED + chunks(3, 2) + b"0\r\n"
HEADER_LINES = b"a:\r\n" * (careful_parser.MOST_HEADERS + 3)
BLANKS = b" \t" * (careful_parser.MOST_BLANKS_IN_A_ROW // 2) + b" "


@pytest.mark.parametrize(
    "parts",
    [
        (HEAD + b"a:" + BLANKS + b"b\r\n\r\n",),
        (HEAD + b"a:", BLANKS, b"b\r\n\r\n"),
        (CHUNKED + b"0\r\na:" + BLANKS + b"b\r\n\r\n",),
        (TRAILERS + HEADER_LINES + b"\r\n",),
        (TRAILERS[:-1], TRAILERS[-1:], HEADER_LINES, b"\r\n"),
        (TRAILERS[:-3], b"000;a\r\n" + HEADER_LINES + b"\r\n"),
    ],
    ids=["header", "header in parts", "trailer", "many trailers", "many trailers in parts", "behind an extension"],
)
def test_many_blanks_and_many_trailers_are_refused_before_they_are_parsed(parts: tuple[bytes, ...]) -> None:
    assert events(*parts)[-1] is problems.HEAD_TOO_LARGE


@pytest.mark.parametrize("before", [HEAD, TRAILERS], ids=["head", "trailers"])
def test_lines_that_arrive_byte_by_byte_are_checked_once_when_they_are_complete(before: bytes) -> None:
    # The check of 30,000 bytes takes 0.2 ms, so one for each byte would hold up others.
    bytes_of_line = [bytes([byte]) for byte in b"a:" + BLANKS + b"b\r\n\r"]
    assert problems.HEAD_TOO_LARGE not in events(before, *bytes_of_line)
    assert events(before, *bytes_of_line, b"\n")[-1] is problems.HEAD_TOO_LARGE


@pytest.mark.parametrize("before", [CHUNKED, CHUNKED + chunks(3, 2)], ids=["first", "later"])
@pytest.mark.parametrize("end", [b"\r\n", b""], ids=["whole", "unfinished"])
def test_a_long_line_with_the_size_of_a_chunk_is_refused_before_it_is_parsed(before: bytes, end: bytes) -> None:
    found = events(before + b"1;" + b"a" * careful_parser.LONGEST_CHUNK_LINE + end)
    assert found[-1] is problems.OTHER_REFUSAL


@pytest.mark.parametrize("parts", [1, 1000])
def test_a_few_trailers_and_the_lines_of_a_body_are_taken(parts: int) -> None:
    text = b"0\r\n" + b"\n" * 600 + b" " * 600
    sent = CHUNKED + b"%x\r\n%s\r\n" % (len(text), text) + b"00;a=b\r\na: b\r\nc: d\r\n\r\n"
    size = -(-len(sent) // parts)
    assert events(*(sent[at : at + size] for at in range(0, len(sent), size)))[-1] is h11.EndOfMessage
    assert events(HEAD + b"Content-Length: %d\r\n\r\n" % len(text), text)[-1] is h11.EndOfMessage
