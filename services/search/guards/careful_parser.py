"""An HTTP parser that refuses requests which take long to parse and would hold up every other request.

h11 matches a line against regular expressions whose time grows with the square of a run of blanks: a header of 60,000
blanks and a control character took 30 s. It also parses any number of lines behind a body (trailers).
"""

import re
from typing import Any

import h11

from ..wire import problems
from ..wire.problem_documents import Problem
from .heads import MOST_HEADERS

MOST_HEAD_LINES = MOST_HEADERS + 28
MOST_BLANKS_IN_A_ROW = 64
LONGEST_CHUNK_LINE = 256
# A chunk of a few bytes costs as much to parse as one of 64 KiB.
CHUNKS_OF_ANY_SIZE = 50
BYTES_OF_A_CHUNK = 512
TOO_MANY_BLANKS = b" " * (MOST_BLANKS_IN_A_ROW + 1)
LAST_CHUNK = re.compile(rb"0++(?![0-9A-Fa-f])")

NOT_HTTP = Problem(problems.OTHER_REFUSAL, "this is no request that the service understands; send HTTP/1.1")
HEAD_TOO_LARGE = Problem(
    problems.HEAD_TOO_LARGE, "the head or the trailers have too many lines, bytes, or blanks in a row; send less"
)
LONG_CHUNK_LINE = Problem(
    problems.OTHER_REFUSAL, f"the size of a chunk and its extensions have more than {LONGEST_CHUNK_LINE} bytes"
)
TINY_CHUNKS = Problem(
    problems.OTHER_REFUSAL,
    f"the body comes in more than {CHUNKS_OF_ANY_SIZE} chunks of less than {BYTES_OF_A_CHUNK} bytes on average; "
    "send larger chunks, or a Content-Length",
)


class CarefulParser(h11.Connection):
    """h11 with limits for the lines of a head and of trailers, and for the chunks of a body.

    `refusal`: the problem to answer after `next_event` has raised RemoteProtocolError.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(h11.SERVER, **given)
        self.refusal = NOT_HTTP
        self._chunks = 0
        self._body_bytes = 0
        self._is_between_chunks = False
        self._is_in_trailers = False

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.

        Raises:
            RemoteProtocolError: the bytes are not HTTP, or take too long to parse.
        """
        if self.their_state is h11.IDLE:
            self._check_lines(self.trailing_data[0])
            self._chunks = self._body_bytes = 0
            self._is_between_chunks = self._is_in_trailers = False
        elif self._is_between_chunks and self.their_state is h11.SEND_BODY:
            self._check_chunk_line()
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == problems.HEAD_TOO_LARGE.status:
                self.refusal = HEAD_TOO_LARGE
            raise
        if isinstance(event, h11.Request):
            self._is_between_chunks = any(name == b"transfer-encoding" for name, _ in event.headers)
        elif isinstance(event, h11.Data):
            self._is_between_chunks = event.chunk_end
            self._chunks += event.chunk_start
            self._body_bytes += len(event.data)
            if self._chunks > CHUNKS_OF_ANY_SIZE and self._body_bytes < self._chunks * BYTES_OF_A_CHUNK:
                self._refuse(TINY_CHUNKS)
        return event

    def _check_lines(self, data: bytes) -> None:
        """Refuse a head or trailers at the beginning of `data` before h11 parses them: 12,000 headers take 50 ms."""
        lines = data.partition(b"\r\n\r\n")[0]
        if lines.count(b"\n") > MOST_HEAD_LINES or TOO_MANY_BLANKS in lines.replace(b"\t", b" "):
            self._refuse(HEAD_TOO_LARGE)

    def _check_chunk_line(self) -> None:
        """Refuse a long line with the size of a chunk and, behind the last one, trailers as `_check_lines` does."""
        # `trailing_data` would copy the whole buffer for each chunk: 230 ms for 256 KiB.
        beginning = bytes(self._receive_buffer._data[: LONGEST_CHUNK_LINE + 3])
        # In front of the line is the end of the chunk before.
        line, end, _ = beginning.lstrip(b"\r\n").partition(b"\n")
        if not self._is_in_trailers and len(line) > LONGEST_CHUNK_LINE:
            self._refuse(LONG_CHUNK_LINE)
        if self._is_in_trailers or (end and LAST_CHUNK.match(line)):
            self._is_in_trailers = True
            self._check_lines(self.trailing_data[0])

    def _refuse(self, problem: Problem) -> None:
        self.refusal = problem
        raise h11.RemoteProtocolError(problem.detail, error_status_hint=problem.kind.status)
