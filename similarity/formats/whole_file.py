"""Files that are written whole or not at all."""

import glob
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from similarity.errors import InvalidInput

ABANDONED_SECONDS = 86_400.0
"""A draft that was not changed for this time belongs to a process that was killed."""
DIGITS = "[0-9a-f]" * 8


@contextmanager
def whole_file(file: Path) -> Iterator[IO[bytes]]:
    """Yield a new file in the same folder, which replaces `file` (for a link, its target) at the end of the block.

    If the block raises, `file` is unchanged. Several processes may write one file: each has a draft of its own, and the
    last one to finish wins. Drafts of killed processes are removed after a day.

    Raises:
        InvalidInput: `file` is a folder or a device, which would be replaced.
    """
    file = Path(os.path.realpath(file))
    if file.exists() and not file.is_file():
        raise InvalidInput(f"{file} is no regular file; name another one")
    _remove_abandoned(file)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as stream:
            yield stream
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _remove_abandoned(file: Path) -> None:
    before = time.time() - ABANDONED_SECONDS
    for draft in file.parent.glob(f".{glob.escape(file.name)}.{DIGITS}.part"):
        with suppress(OSError):  # another process may remove it, too
            if draft.lstat().st_mtime < before:
                draft.unlink()
