"""An HTTP parser that refuses requests which take long to parse and would hold up every other request.

h11 matches a line against regular expressions whose time grows with the square of a run of blanks: a header of 60,000
blanks and a control character took 30 s. It also parses any number of lines after a body (trailers).
"""

from collections.abc import Callable
from typing import NoReturn

import h11
from h11._receivebuffer import ReceiveBuffer, blank_line_regex

from ..wire import problems
from ..wire.problem_documents import Problem

MOST_HEADERS = 100
# The parameters of `GET /similar` that repeat have at most 459 values. Each costs time, also on other paths: without a
# limit, 7,000 held up the process for a tenth of a second.
MOST_PARAMETERS = 500
MOST_BLANKS_IN_A_ROW = 64
LONGEST_CHUNK_LINE = 256
# A chunk of a few bytes costs as much to parse as one of 64 KiB.
CHUNKS_OF_ANY_SIZE = 200
BYTES_OF_A_CHUNK = 2_048
TOO_MANY_BLANKS = b" " * (MOST_BLANKS_IN_A_ROW + 1)

NOT_HTTP = Problem(problems.OTHER_REFUSAL, "this is no request that the service understands; send HTTP/1.1")
HEAD_TOO_LARGE = Problem(
    problems.HEAD_TOO_LARGE,
    f"the head or the trailers have too many bytes, more than {MOST_HEADERS} lines or {MOST_PARAMETERS} parameters, or "
    f"more than {MOST_BLANKS_IN_A_ROW} blanks in a row; send less, or a body",
)
AMBIGUOUS_LENGTH = Problem(
    problems.OTHER_REFUSAL, "Transfer-Encoding is for HTTP/1.1 and without Content-Length; send only one of the two"
)
COSTLY_CHUNKS = Problem(
    problems.OTHER_REFUSAL,
    f"the body comes in more than {CHUNKS_OF_ANY_SIZE} chunks of less than {BYTES_OF_A_CHUNK} bytes on average, or a "
    f"line with the size of a chunk has more than {LONGEST_CHUNK_LINE}; send larger chunks, or a Content-Length",
)


class CarefulBuffer(ReceiveBuffer):
    """h11's buffer of received bytes, which checks lines before h11 parses them, because 12,000 headers take 50 ms.

    `refuse` raises RemoteProtocolError.
    """

    def __init__(self, most_bytes: int, refuse: Callable[[Problem], NoReturn]) -> None:
        super().__init__()
        self._most_bytes = most_bytes
        self._refuse = refuse

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines of a head or of trailers, without line ends; None if they are incomplete."""
        # Only complete lines are checked, so that a head that arrives byte by byte is not checked for each byte.
        end = blank_line_regex.search(self._data, self._multiple_lines_search)
        lines = self._data[: end.end()] if end else b""
        # Besides the headers: the request's own line and the empty one.
        if len(lines) > self._most_bytes or lines.count(b"\n") > MOST_HEADERS + 2:
            self._refuse(HEAD_TOO_LARGE)
        if TOO_MANY_BLANKS in lines.replace(b"\t", b" "):
            self._refuse(HEAD_TOO_LARGE)
        return super().maybe_extract_lines()

    def maybe_extract_next_line(self) -> bytearray | None:
        """Return the line with the size of a chunk, with its line end; None if it is incomplete."""
        line = super().maybe_extract_next_line()
        if len(self if line is None else line) > LONGEST_CHUNK_LINE:
            self._refuse(COSTLY_CHUNKS)
        return line


class CarefulParser(h11.Connection):
    """h11 with limits for a head, for trailers and for chunks of a body. `most_bytes`: size of a head or of trailers.

    `refusal`: the problem to answer after `next_event` has raised RemoteProtocolError.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=most_bytes)
        self._receive_buffer = CarefulBuffer(most_bytes, self._refuse)
        self.refusal = NOT_HTTP
        self._chunks = 0
        self._body_bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.

        Raises:
            RemoteProtocolError: the bytes are not HTTP, take too long to parse, or have an ambiguous length.
        """
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == problems.HEAD_TOO_LARGE.status:
                self.refusal = HEAD_TOO_LARGE
            raise
        if isinstance(event, h11.Request):
            self._chunks = self._body_bytes = 0
            if event.target.count(b"&") >= MOST_PARAMETERS:
                self._refuse(HEAD_TOO_LARGE)
            if has_ambiguous_length(event):
                self._refuse(AMBIGUOUS_LENGTH)
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._body_bytes += len(event.data)
            if self._chunks > CHUNKS_OF_ANY_SIZE and self._body_bytes < self._chunks * BYTES_OF_A_CHUNK:
                self._refuse(COSTLY_CHUNKS)
        return event

    def _refuse(self, problem: Problem) -> NoReturn:
        self.refusal = problem
        raise h11.RemoteProtocolError(problem.detail, error_status_hint=problem.kind.status)


def has_ambiguous_length(request: h11.Request) -> bool:
    """Whether a proxy may see another end of the request than this server: smuggling (RFC 9112, 6.1 and 6.3)."""
    names = {name for name, _ in request.headers}
    return b"transfer-encoding" in names and (b"content-length" in names or request.http_version == b"1.0")
