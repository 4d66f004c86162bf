"""Settings from the environment. The composition roots read them once; nothing is read at import.

`read_variables` also reads the settings of Elasticsearch, Kafka and the service.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from similarity.errors import InvalidInput

PREFIX = "SIMILARITY_"
DEFAULT_INDEX = "similarity.db"
OTHERS = ("ELASTICSEARCH_", "KAFKA_", "SERVICE_")
"""Beginnings (after the prefix) of the variables of other settings."""

Runtime: TypeAlias = Literal["onnxruntime", "openvino", "auto", "cuda", "tensorrt"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a program.

    `index`: the SQLite file (for a symbolic link, the file that it names), or `https://host:9200/NAME` of
    Elasticsearch. `bundle`: a bundle folder; by default, the bundle of the index. `bundles`: the folder of the index's
    bundles; by default next to the index. `threads`, `runtime`: arguments of `similarity.encoder.TextEncoder`; by
    default all cores and onnxruntime. `audit`: the file of the audit record, or "-" for standard error; by default
    next to the index (`similarity.upkeep.audit.audit_target`). `url`, `api_key`: the service that commands use instead
    of an index.

    Raises:
        InvalidInput: `threads` is below 1, or `index` ends with "/" or is a link that `followed` refuses.
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
        if self.index.endswith("/") and "://" not in self.index:
            raise InvalidInput(f"the index {self.index} ends with '/', so it would be a folder; name a file")
        object.__setattr__(self, "index", followed(self.index))

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
        """Return the settings of the variables SIMILARITY_ plus a field name in capitals; options override variables.

        Raises:
            InvalidInput: as `read_variables` and `Settings`.
        """
        options = {"index": index, "bundle": bundle, "bundles": bundles, "threads": threads}
        given = {name: value for name, value in options.items() if value}
        return cls(**read_variables(environ, PREFIX, get_type_hints(cls), others=OTHERS) | given)


def followed(index: str) -> str:
    """Return `index` or, if it is a symbolic link, the file that it names.

    The workspace, bundles and audit record are beside that file.

    Raises:
        InvalidInput: a workspace, bundles or an audit record are beside the link, where earlier releases made them.
    """
    if not os.path.islink(index):  # noqa: PTH114 - it may be a URL
        return index
    file = os.path.realpath(index)
    for suffix in (".workspace", ".bundles", ".audit.jsonl"):
        beside, wanted = Path(f"{index}{suffix}"), Path(f"{file}{suffix}")
        if beside.exists() and not (wanted.exists() and beside.samefile(wanted)):
            raise InvalidInput(
                f"{index} is a symbolic link to {file}, so {beside} is in the wrong place: "
                + (f"{wanted} exists too, so move one of them away" if wanted.exists() else f"move it to {wanted}")
            )
    return file


def read_variables(
    environ: Mapping[str, str], prefix: str, types: Mapping[str, Any], *, others: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the values of the variables that begin with `prefix`, by their names in `types`.

    The name of a variable is the prefix and a name of `types` in capitals. Its type is str, Path, bool, int, float, a
    Literal of strings, tuple[str, ...] (separated by commas), or a union of these. An empty variable counts as not
    set, as in compose files. `others`: beginnings of names that other settings read.

    Raises:
        InvalidInput: a name is not in `types` (probably misspelt), or a value does not have its type.
    """
    known = {name.upper(): name for name in types}
    given = {variable.removeprefix(prefix): text for variable, text in environ.items() if variable.startswith(prefix)}
    if unknown := sorted(name for name in given if name not in known and not name.startswith(others)):
        raise InvalidInput(
            f"{prefix}{unknown[0]} is not a setting; the settings are {', '.join(prefix + name for name in known)}"
        )
    return {
        known[name]: _value(prefix + name, text, types[known[name]])
        for name, text in given.items()
        if text and name in known
    }


def _value(variable: str, text: str, type_: Any) -> Any:
    """Return the value of `text`; for a union, by the first member that can read it."""
    is_plain = type_ in _READERS or get_origin(type_) is Literal
    members = [type_] if is_plain else [each for each in get_args(type_) if each is not NoneType]
    expected = []
    for member in members:
        choices = get_args(member) if get_origin(member) is Literal else ()
        if text in choices:
            return text
        if choices:
            expected.append(f"one of {', '.join(choices)}" if len(choices) > 1 else repr(choices[0]))
            continue
        reader, description = _READERS[member]
        try:
            return reader(text)
        except ValueError:
            expected.append(description)
    raise InvalidInput(f"{variable} is {text!r:.40}; it must be {' or '.join(expected)}")


def _parse_bool(text: str) -> bool:
    if text.casefold() not in {"true", "1", "yes", "false", "0", "no"}:
        raise ValueError(text)
    return text.casefold() in {"true", "1", "yes"}


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_READERS: Mapping[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "text"),
    Path: (Path, "a path"),
    bool: (_parse_bool, "true or false"),
    int: (int, "a whole number"),
    float: (_parse_float, "a number"),
    tuple[str, ...]: (_parse_list, "values separated by commas"),
}
"""For each type, its parser and a description of valid texts."""
