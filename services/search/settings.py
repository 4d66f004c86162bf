"""The settings of the service: its address and its limits, validated before any file or port is opened.

`ServiceSettings` holds the values of SIMILARITY_SERVICE_ variables. docs/service-settings.md lists them;
a test keeps that list and these fields the same.
"""

import ipaddress
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

from similarity.errors import InvalidInput
from similarity.settings import read_variables

from .guards.key_file import MAKE_A_KEY

PREFIX = "SIMILARITY_SERVICE_"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
COMPOSE_KEYS = "/var/lib/similarity/keys/keys.json"
SHORTEST_SECRET = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host and port to listen on.

    `authenticated`: there are keys. `published`: the address that a container engine publishes the port on. In a
    container the service listens on 0.0.0.0 and cannot see that address, so it must be passed in.

    Raises:
        InvalidInput: the port is out of range, or there are no keys and other machines can reach the service.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    published: str = ""
    authenticated: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.port < 65_536:
            raise InvalidInput(f"port {self.port} is out of range; choose one between 1 and 65535")
        if not (self.authenticated or is_loopback(self.reached)):
            raise InvalidInput(
                f"the network can reach {self.reached or 'an empty host'} and there are no keys: anybody could read, "
                f"change and erase companies. Make a key: {MAKE_A_KEY} keys.json, and set {PREFIX}KEYS=keys.json; "
                f"with docker compose: docker compose run --rm keys {MAKE_A_KEY} {COMPOSE_KEYS}, and set "
                f"SEARCH_KEYS={COMPOSE_KEYS} in .env. Without keys the service can only be at {DEFAULT_HOST}"
            )

    @property
    def reached(self) -> str:
        """The address that clients use: the published one, if there is one."""
        return self.published or self.host


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine can reach `host`. Of names, only localhost counts as loopback."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _setting(
    default: Any, meaning: str, low: float = -math.inf, high: float = math.inf, *, secret: bool = False
) -> Any:
    """Return a field of `ServiceSettings`: its text in docs/service-settings.md, and the range of its values."""
    return field(default=default, repr=not secret, metadata={"meaning": meaning, "low": low, "high": high})


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return text == "*"
    return True


def _is_host(text: str) -> bool:
    return bool(re.fullmatch(r"\*|[\w-]+(\.[\w-]+)*", text)) or ("/" not in text and _is_network(text))


FORMS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "hosts": (_is_host, "a host name without scheme, port and path"),
    "origins": (
        re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[a-z0-9.:\[\]_-]+").fullmatch,
        "an origin in small letters without path, such as https://example.com",
    ),
    "proxies": (_is_network, "an IP address or a network, such as 10.0.0.0/8; the names of hosts are not looked up"),
}
"""The settings that are lists: whether a value is valid, and what it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The settings of the service. Each field is set by the environment variable SIMILARITY_SERVICE_<FIELD>.

    Raises:
        InvalidInput: a value is out of its range, or the cursor secret is too short.
    """

    keys: Path | None = _setting(None, "file of API keys; without it nobody has to log in, on this machine only")
    published_address: str = _setting(
        "", "address that a container's port is published on; without keys it must be a loopback address"
    )
    writes: Literal["direct", "kafka", "off"] = _setting(
        "direct", "`direct`: companies are written before the answer; `kafka`: published; `off`: refused"
    )
    kafka_topic: str = _setting("companies", "topic that writes are published to")
    attributes: str = _setting(
        "", "declared types of attributes, separated by semicolons: NAME:TYPE as in `similarity ingest --attribute`"
    )
    size: str = _setting("", "the declared attribute that is the size of a company")
    cursor_secret: str = _setting(
        "", "secret that signs cursors; processes with the same secret accept each other's cursors", secret=True
    )
    hosts: tuple[str, ...] = _setting(
        (), "further names in the Host header, without port, separated by commas; `*` accepts any"
    )
    origins: tuple[str, ...] = _setting(
        (), "sites whose pages may call the API (CORS origins), such as https://example.com, separated by commas"
    )
    proxies: tuple[str, ...] = _setting(
        (), "addresses or networks of proxies whose X-Forwarded-For is trusted, separated by commas"
    )
    rate: float = _setting(50.0, "sustained requests a second of one caller; 0 for no limit", 0.0, 1e6)
    burst: int = _setting(100, "requests of one caller at once", 1, 10**6)
    service_rate: float = _setting(1000.0, "requests a second of all callers of one process; 0 for no limit", 0.0, 1e6)
    service_burst: int = _setting(2000, "requests of all callers at once", 1, 10**6)
    at_once: int = _setting(0, "requests of one key worked on at once; 0 for 2 per core (at most 24)", 0, 24)
    heavy_at_once: int = _setting(0, "heavy requests worked on at once, at least 2; 0 for 1 per core (at most 8)", 0, 8)
    queue: int = _setting(0, "requests that wait in the queue; 0 for twice those worked on at once", 0, 1000)
    queue_seconds: float = _setting(
        1.0, "how long a request may wait in the queue before it is answered 503", 0.01, 60.0
    )
    request_seconds: float = _setting(
        30.0, "how long a request may be worked on before it is answered 503", 0.05, 3600.0
    )
    body_bytes: int = _setting(2_000_000, "bytes of a request body", 1, 10**9)
    upload_bytes: int = _setting(10_000_000, "bytes of an upload (bulk writes, matching a list)", 1, 10**9)
    held_bytes: int = _setting(100_000_000, "bytes of all request bodies in memory at once", 1, 10**11)
    unfinished_bytes: int = _setting(
        25_000_000, "bytes of one caller's bodies that have not arrived completely", 1, 10**11
    )
    body_seconds: float = _setting(30.0, "how long a body may take to arrive before it is answered 408", 0.05, 3600.0)
    head_bytes: int = _setting(32_768, "bytes of a request's head", 1024, 10**6)
    head_seconds: float = _setting(10.0, "how long a request's head may take to arrive", 0.05, 600.0)
    write_seconds: float = _setting(
        20.0, "how long a client may read nothing of its answer before its connection is closed", 0.05, 600.0
    )
    answer_seconds: float = _setting(
        30.0, "total time that a streamed answer (bulk, pairs) may wait for its client", 0.05, 3600.0
    )
    idle_seconds: int = _setting(5, "how long a connection may wait for its next request", 1, 3600)
    connections: int = _setting(1000, "open connections; a new one ends the longest idle one", 1, 10**5)
    address_connections: int = _setting(
        250, "open connections of one address, if PROXIES is not set; 0 for no limit", 0, 10**5
    )
    unread_bytes: int = _setting(
        250_000_000, "bytes of answers that clients have not read; beyond it, the largest are cut off", 1, 10**11
    )
    drain_seconds: float = _setting(2.0, "how long requests are still taken after SIGTERM", 0.0, 3600.0)
    finish_seconds: int = _setting(10, "how long requests under way may then take to finish", 1, 3600)
    metrics_port: int = _setting(0, "port of the metrics; 0 for none", 0, 65_535)
    metrics_host: str = _setting(DEFAULT_HOST, "address of the metrics; whoever can reach it can read them")
    logs: Literal["json", "text"] = _setting("text", "`json` or `text`")
    log_clients: bool = _setting(False, "1: log the client address of each request")
    otel: bool = _setting(False, "1: an OpenTelemetry span for each request; OpenTelemetry must be installed")

    def __post_init__(self) -> None:
        for each in fields(self):
            value, low, high = getattr(self, each.name), each.metadata["low"], each.metadata["high"]
            if isinstance(value, int | float) and not low <= value <= high:
                raise InvalidInput(f"{variable(each)} is {value}; it must be from {low:g} to {high:g}")
        for name, (is_valid, form) in FORMS.items():
            if wrong := [each for each in getattr(self, name) if not is_valid(each)]:
                raise InvalidInput(f"{PREFIX}{name.upper()} contains {wrong[0]!r}; it must be {form}")
        if self.cursor_secret and len(self.cursor_secret) < SHORTEST_SECRET:
            raise InvalidInput(
                f"{PREFIX}CURSOR_SECRET has {len(self.cursor_secret)} characters; use {SHORTEST_SECRET} or more"
            )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "ServiceSettings":
        """Return the settings in the variables SIMILARITY_SERVICE_<FIELD>.

        Raises:
            InvalidInput: as `read_variables` and as `ServiceSettings`.
        """
        return cls(**read_variables(environ, PREFIX, get_type_hints(cls)))

    @property
    def places(self) -> int:
        """Number of requests worked on at once: one more than a single key may have (see `Gate`).

        More than two requests a core only contend for Python's lock.
        """
        return 1 + (self.at_once or min(24, 2 * (os.cpu_count() or 1)))

    @property
    def heavy_places(self) -> int:
        """Number of heavy requests worked on at once: at least two, because no key may use all of them."""
        return max(2, self.heavy_at_once or min(8, os.cpu_count() or 1))


def variable(setting: "Field[Any]") -> str:
    """Return the environment variable of a setting."""
    return PREFIX + setting.name.upper()


def settings_table() -> list[tuple[str, str, str]]:
    """Return variable, default and meaning of every setting, as docs/service-settings.md shows them."""
    return [(variable(each), _shown(each.default), each.metadata["meaning"]) for each in fields(ServiceSettings)]


def _shown(default: object) -> str:
    if default is None or default == ():
        return "none"
    return str(int(default)) if isinstance(default, bool) else str(default)
