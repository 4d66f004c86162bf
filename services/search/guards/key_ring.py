"""The keys of a running service. Their file is read again when it changes."""

import hmac
import logging
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from similarity.company import utc_now
from similarity.errors import InvalidInput

from .callers import Caller
from .key_file import MAKE_A_KEY, PRIVATE, SECRET, Key, hashed, read_keys

SECONDS_BETWEEN_LOOKS = 1.0
# Compared where no key has the id, so that an unknown id takes as long as a wrong secret.
NO_HASH = "0" * 64

log = logging.getLogger(__name__)


class KeyRing:
    """Finds the caller of a secret.

    A change of the file takes effect within a second. If the file becomes unreadable or invalid, the earlier keys stay
    in use, and the log says so once.

    Raises:
        InvalidInput: the file cannot be used at the start, or holds no key.
    """

    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._now = now
        self._clock = clock
        self._looked = clock()
        self._state = self._file_state()
        self._keys = self._read()
        if not self._keys:
            raise InvalidInput(f"the file of keys {path} holds no key; make one with: {MAKE_A_KEY} {path}")
        if self._state and path.stat().st_mode & 0o777 & ~PRIVATE:
            log.warning("others than its owner may use the file of keys %s; chmod 600 keeps it private", path)

    def caller(self, secret: str) -> Caller | None:
        """Return the caller of `secret`; None if it is unknown or expired. Takes equally long in all cases."""
        self._look()
        parts = SECRET.fullmatch(secret)
        key = self._keys.get(parts["id"]) if parts else None
        same = hmac.compare_digest(hashed(secret), key.sha256 if key else NO_HASH)
        if key is None or not same or not key.valid(self._now()):
            return None
        return key.caller

    def _look(self) -> None:
        now = self._clock()
        if now - self._looked < SECONDS_BETWEEN_LOOKS:
            return
        self._looked = now
        state = self._file_state()
        if state == self._state:
            return
        # Remembered first: a broken file is reported once, not once a second.
        self._state = state
        try:
            self._keys = self._read()
        except InvalidInput as error:
            log.error("the earlier keys stay in use: %s", error)
        else:
            log.info("read %d keys again from %s", len(self._keys), self._path)

    def _read(self) -> dict[str, Key]:
        return {key.id: key for key in read_keys(self._path)}

    def _file_state(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
