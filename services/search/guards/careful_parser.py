"""An HTTP parser that refuses requests which take long to parse and would hold up every other request."""

from typing import Any

import h11

from ..wire import problems
from ..wire.problem_documents import Problem
from .heads import MOST_HEADERS

MOST_HEAD_LINES = MOST_HEADERS + 28
# A chunk of a few bytes costs as much to parse as one of 64 KiB.
CHUNKS_OF_ANY_SIZE = 50
BYTES_OF_A_CHUNK = 512

NOT_HTTP = Problem(problems.OTHER_REFUSAL, "this is no request that the service understands; send HTTP/1.1")
HEAD_TOO_LARGE = Problem(problems.HEAD_TOO_LARGE, "the head has too many lines or bytes; send less")
TINY_CHUNKS = Problem(
    problems.OTHER_REFUSAL,
    f"the body comes in more than {CHUNKS_OF_ANY_SIZE} chunks of less than {BYTES_OF_A_CHUNK} bytes on average; "
    "send larger chunks, or a Content-Length",
)


class CarefulParser(h11.Connection):
    """h11 with limits for the lines of a head, and for the number of chunks of a body.

    `refusal`: the problem to answer after `next_event` has raised RemoteProtocolError.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(h11.SERVER, **given)
        self.refusal = NOT_HTTP
        self._chunks = 0
        self._body_bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.

        Raises:
            RemoteProtocolError: the bytes are not HTTP, or take too long to parse.
        """
        if self.their_state is h11.IDLE:
            # Before h11 parses them: 12,000 headers take 50 ms.
            head = self.trailing_data[0].partition(b"\r\n\r\n")[0]
            if head.count(b"\n") > MOST_HEAD_LINES:
                self._refuse(HEAD_TOO_LARGE)
            self._chunks = self._body_bytes = 0
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == problems.HEAD_TOO_LARGE.status:
                self.refusal = HEAD_TOO_LARGE
            raise
        if isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._body_bytes += len(event.data)
            if self._chunks > CHUNKS_OF_ANY_SIZE and self._body_bytes < self._chunks * BYTES_OF_A_CHUNK:
                self._refuse(TINY_CHUNKS)
        return event

    def _refuse(self, problem: Problem) -> None:
        self.refusal = problem
        raise h11.RemoteProtocolError(problem.detail, error_status_hint=problem.kind.status)
