"""Settings from the environment, read once by the composition roots; nothing is read at import."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from similarity.errors import InvalidInput

PREFIX = "SIMILARITY_"
DEFAULT_INDEX = "similarity.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a program works on.

    `index`: the SQLite file. `bundle`: a bundle folder, None for the one that ships. `threads`: of the
    encoder, None for all cores.
    """

    index: str = DEFAULT_INDEX
    bundle: Path | None = None
    threads: int | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Settings":
        """Reads SIMILARITY_INDEX, SIMILARITY_BUNDLE and SIMILARITY_THREADS.

        Raises:
            InvalidInput: another SIMILARITY_ variable (a typing error, most likely) or a bad number.
        """
        given = {name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX)}
        unknown = sorted(set(given) - {"INDEX", "BUNDLE", "THREADS"})
        if unknown:
            raise InvalidInput(f"{PREFIX}{unknown[0]} is no setting; there are {PREFIX}INDEX, _BUNDLE and _THREADS")
        threads = given.get("THREADS")
        if threads is not None and (not threads.isdigit() or int(threads) < 1):
            raise InvalidInput(f"{PREFIX}THREADS is {threads!r}; it must be a number of threads, 1 or more")
        return cls(
            index=given.get("INDEX", DEFAULT_INDEX),
            bundle=Path(given["BUNDLE"]) if "BUNDLE" in given else None,
            threads=int(threads) if threads else None,
        )
