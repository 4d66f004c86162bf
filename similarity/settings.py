"""Settings from the environment, read once by the composition roots; nothing is read at import."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from similarity.errors import InvalidInput

PREFIX = "SIMILARITY_"
DEFAULT_INDEX = "similarity.db"
NAMES = ("INDEX", "BUNDLE", "THREADS", "RUNTIME")

Runtime: TypeAlias = Literal["onnxruntime", "openvino", "auto"]
RUNTIMES: tuple[Runtime, ...] = ("onnxruntime", "openvino", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a program works on.

    `index`: the SQLite file. `bundle`: a bundle folder, None for the one that ships. `threads`: of the
    encoder, None for all cores. `runtime`: of the encoder, "auto" for the faster of those installed.
    """

    index: str = DEFAULT_INDEX
    bundle: Path | None = None
    threads: int | None = None
    runtime: Runtime = "onnxruntime"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Settings":
        """Reads SIMILARITY_INDEX, SIMILARITY_BUNDLE, SIMILARITY_THREADS and SIMILARITY_RUNTIME.

        Raises:
            InvalidInput: another SIMILARITY_ variable (a typing error, most likely) or a bad value.
        """
        given = {name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX)}
        unknown = sorted(set(given) - set(NAMES))
        if unknown:
            known = ", ".join(PREFIX + name for name in NAMES)
            raise InvalidInput(f"{PREFIX}{unknown[0]} is no setting; there are {known}")
        threads = given.get("THREADS")
        if threads is not None and (not threads.isdigit() or int(threads) < 1):
            raise InvalidInput(f"{PREFIX}THREADS is {threads!r}; it must be a number of threads, 1 or more")
        by_name: dict[str, Runtime] = {name: name for name in RUNTIMES}
        runtime = by_name.get(given.get("RUNTIME", "onnxruntime"))
        if runtime is None:
            raise InvalidInput(f"{PREFIX}RUNTIME is {given['RUNTIME']!r}; it must be one of {', '.join(RUNTIMES)}")
        return cls(
            index=given.get("INDEX", DEFAULT_INDEX),
            bundle=Path(given["BUNDLE"]) if "BUNDLE" in given else None,
            threads=int(threads) if threads else None,
            runtime=runtime,
        )
