"""Settings from the environment, read once by the composition roots; nothing is read at import."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from similarity.errors import InvalidInput

PREFIX = "SIMILARITY_"
DEFAULT_INDEX = "similarity.db"
NAMES = ("INDEX", "BUNDLE", "BUNDLES", "THREADS", "RUNTIME", "AUDIT")
# Read by whoever connects, by the search service, and by those who ask it.
OTHERS = ("ELASTICSEARCH_", "KAFKA_", "SERVICE_", "URL", "API_KEY")

Runtime: TypeAlias = Literal["onnxruntime", "openvino", "auto"]
RUNTIMES: tuple[Runtime, ...] = ("onnxruntime", "openvino", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a program works on.

    `index`: the SQLite file, or `https://host:9200/NAME` of Elasticsearch. `bundle`: a bundle folder,
    None for the index's own. `bundles`: where an index's bundles are kept, None for beside it.
    `threads`: of the encoder, None for all cores. `runtime`: of the encoder, "auto" for the faster of
    those installed. `audit`: the file of the audit record, "-" for standard error, None for beside the
    index (`similarity.upkeep.audit.audit_target`).
    """

    index: str = DEFAULT_INDEX
    bundle: Path | None = None
    bundles: Path | None = None
    threads: int | None = None
    runtime: Runtime = "onnxruntime"
    audit: str | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Settings":
        """Reads SIMILARITY_INDEX, _BUNDLE, _BUNDLES, _THREADS, _RUNTIME and _AUDIT.

        SIMILARITY_ELASTICSEARCH_ and SIMILARITY_KAFKA_ variables are for what connects with them, SIMILARITY_SERVICE_
        ones for the search service.

        Raises:
            InvalidInput: another SIMILARITY_ variable (a typing error, most likely) or a bad value.
        """
        given = {name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX)}
        unknown = sorted(name for name in given if name not in NAMES and not name.startswith(OTHERS))
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
            bundles=Path(given["BUNDLES"]) if "BUNDLES" in given else None,
            threads=int(threads) if threads else None,
            runtime=runtime,
            audit=given.get("AUDIT") or None,
        )
