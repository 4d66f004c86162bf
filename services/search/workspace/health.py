"""The readiness check of the workspace, with a short timeout."""

import logging
import threading
from concurrent.futures import Future

from similarity.errors import IndexUnavailable, SimilarityError
from similarity.feedback.protocol import Workspace

SECONDS_TO_ANSWER = 0.5
AWAY = "the store of feedback and lists cannot be read; everything else works, and the service's log says why"
SLOW = f"the store of feedback and lists did not answer within {SECONDS_TO_ANSWER:g} s; everything else works"

log = logging.getLogger(__name__)


class WorkspaceHealth:
    """Checks `workspace`. A store that hangs holds one thread, however many checks there are."""

    def __init__(self, workspace: Workspace, *, seconds: float = SECONDS_TO_ANSWER) -> None:
        self._workspace = workspace
        self._seconds = seconds
        self._lock = threading.Lock()
        self._looking: Future[str | None] | None = None

    def trouble(self) -> str | None:
        """Return the reason why feedback and lists do not work; None if they work."""
        with self._lock:
            looking = self._looking
            if looking is None or looking.done():
                looking = self._looking = Future()
                threading.Thread(target=self._look, args=(looking,), name="workspace-health", daemon=True).start()
        try:
            return looking.result(timeout=self._seconds)
        except TimeoutError:
            return SLOW

    def _look(self, looking: Future[str | None]) -> None:
        try:
            self._workspace.check()
        except SimilarityError as error:
            looking.set_result((isinstance(error, IndexUnavailable) and error.reason) or AWAY)
        except BaseException:
            log.exception("the workspace could not be checked")
            looking.set_result(AWAY)
        else:
            looking.set_result(None)
