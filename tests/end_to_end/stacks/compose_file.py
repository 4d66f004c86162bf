"""Reads docker-compose.yml as `docker compose` does, as far as ours needs it: its variables and its order."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<otherwise>[^}]*))?\})")


class MissingVariable(Exception):
    """A variable that the file requires has no value; the message is the file's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service as it would be started: its variables are filled in."""

    name: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    health: tuple[str, ...]
    volumes: tuple[str, ...]
    """Each `NAME:PATH`, or `NAME:PATH:ro`."""
    needs: Mapping[str, str]
    """Service -> the condition it must be in: service_healthy, service_completed_successfully, service_started."""
    profiles: tuple[str, ...]
    once: bool
    """Whether it ends by itself."""


def interpolated(text: str, variables: Mapping[str, str]) -> str:
    """A value with `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `$$` replaced.

    Raises:
        MissingVariable: one that must have a value has none.
    """

    def value(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "$"
        given = variables.get(match["name"], "")
        if given or match["kind"] is None:
            return given
        if match["kind"] == "?":
            raise MissingVariable(f"{match['name']} {match['otherwise']}")
        return match["otherwise"]

    return VARIABLE.sub(value, text)


def read_services(path: Path, variables: Mapping[str, str]) -> dict[str, Service]:
    """All services of a compose file by name.

    Raises:
        MissingVariable: a variable that the file requires has no value.
    """
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    filled = _filled({"services": content["services"]}, variables)
    return {name: _service(name, described) for name, described in filled["services"].items()}


def in_order(services: Mapping[str, Service], wanted: Sequence[str]) -> Iterator[Service]:
    """The wanted services and all that they need, each after what it needs; not what is optional."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[Service]:
        if name in done:
            return
        done.add(name)
        for needed in services[name].needs:
            yield from visit(needed)
        yield services[name]

    for name in wanted:
        yield from visit(name)


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return interpolated(value, variables)
    if isinstance(value, dict):
        return {key: _filled(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, variables) for each in value]
    return value


def _service(name: str, described: Mapping[str, Any]) -> Service:
    needs = described.get("depends_on", {})
    if isinstance(needs, list):
        needs = {each: {"condition": "service_started"} for each in needs}
    return Service(
        name=name,
        image=described["image"],
        command=_words(described.get("command", [])),
        environment={key: str(value) for key, value in described.get("environment", {}).items()},
        health=_words(described.get("healthcheck", {}).get("test", [])),
        volumes=tuple(described.get("volumes", ())),
        needs={each: how["condition"] for each, how in needs.items() if how.get("required", True)},
        profiles=tuple(described.get("profiles", ())),
        once=described.get("restart") == "no",
    )


def _words(command: "str | Sequence[str]") -> tuple[str, ...]:
    return tuple(shlex.split(command) if isinstance(command, str) else (str(word) for word in command))
