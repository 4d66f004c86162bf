"""Settings from the environment, read once by the composition roots; nothing is read at import.

`read_variables` is the one reader: the settings of Elasticsearch, Kafka and the service are read by it too.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from similarity.errors import InvalidInput

PREFIX = "SIMILARITY_"
DEFAULT_INDEX = "similarity.db"
OTHERS = ("ELASTICSEARCH_", "KAFKA_", "SERVICE_")
"""What follows the prefix in variables that other settings read."""

Runtime: TypeAlias = Literal["onnxruntime", "openvino", "auto"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a program works on.

    `index`: the SQLite file, or `https://host:9200/NAME` of Elasticsearch. `bundle`: a bundle folder,
    None for the index's own. `bundles`: where an index's bundles are kept, None for beside it.
    `threads`: of the encoder, None for all cores. `runtime`: of the encoder, "auto" for the faster of
    those installed. `audit`: the file of the audit record, "-" for standard error, None for beside the
    index (`similarity.upkeep.audit.audit_target`). `url` and `api_key`: the service that commands ask
    instead of an index.

    Raises:
        InvalidInput: there is less than one thread.
    """

    index: str = DEFAULT_INDEX
    bundle: Path | None = None
    bundles: Path | None = None
    threads: int | None = None
    runtime: Runtime = "onnxruntime"
    audit: str | None = None
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise InvalidInput(f"{PREFIX}THREADS is {self.threads}; it must be 1 or more")

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        *,
        index: str | None = None,
        bundle: Path | None = None,
        bundles: Path | None = None,
        threads: int | None = None,
    ) -> "Settings":
        """Reads SIMILARITY_ and the names of the fields in capitals; options that are given win over variables.

        Raises:
            InvalidInput: as `read_variables`.
        """
        options = {"index": index, "bundle": bundle, "bundles": bundles, "threads": threads}
        given = {name: value for name, value in options.items() if value}
        return cls(**read_variables(environ, PREFIX, get_type_hints(cls), others=OTHERS) | given)


def read_variables(
    environ: Mapping[str, str], prefix: str, types: Mapping[str, Any], *, others: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the values of the variables that begin with `prefix`, by their names in `types`.

    A variable is the prefix and a name in capitals. Its type is str, Path, bool, int, float, a Literal of
    strings, tuple[str, ...] (separated by commas), or a union of these. An empty variable counts as not set,
    as in compose files. `others`: how names begin that other settings read.

    Raises:
        InvalidInput: a name that is not in `types` (a typing error, most likely), or a value that is not of its type.
    """
    known = {name.upper(): name for name in types}
    given = {variable.removeprefix(prefix): text for variable, text in environ.items() if variable.startswith(prefix)}
    if unknown := sorted(name for name in given if name not in known and not name.startswith(others)):
        raise InvalidInput(
            f"{prefix}{unknown[0]} is no setting; there are {', '.join(prefix + name for name in known)}"
        )
    return {
        known[name]: _value(prefix + name, text, types[known[name]])
        for name, text in given.items()
        if text and name in known
    }


def _value(variable: str, text: str, type_: Any) -> Any:
    """The value that `text` stands for: of a union, by the first member that can read it."""
    is_plain = type_ in _READERS or get_origin(type_) is Literal
    members = [type_] if is_plain else [each for each in get_args(type_) if each is not NoneType]
    wanted = []
    for member in members:
        choices = get_args(member) if get_origin(member) is Literal else ()
        if text in choices:
            return text
        if choices:
            wanted.append(f"one of {', '.join(choices)}" if len(choices) > 1 else repr(choices[0]))
            continue
        reader, description = _READERS[member]
        try:
            return reader(text)
        except ValueError:
            wanted.append(description)
    raise InvalidInput(f"{variable} is {text!r:.40}; it must be {' or '.join(wanted)}")


def _flag(text: str) -> bool:
    if text.casefold() not in {"true", "1", "yes", "false", "0", "no"}:
        raise ValueError(text)
    return text.casefold() in {"true", "1", "yes"}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_READERS: Mapping[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "text"),
    Path: (Path, "a path"),
    bool: (_flag, "true or false"),
    int: (int, "a whole number"),
    float: (_finite, "a number"),
    tuple[str, ...]: (_parts, "values separated by commas"),
}
"""How a text of each type is read, and what a text that cannot be read should have been."""
