"""Files that are written whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(file: Path) -> Iterator[IO[bytes]]:
    """Yield a new file in the same folder, which replaces `file` at the end of the block.

    If the block raises, `file` is unchanged. Several processes may write one file: each has a draft of its own, and the
    last one to finish wins.
    """
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as stream:
            yield stream
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
