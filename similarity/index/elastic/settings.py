"""The nodes, the login and the vector options of Elasticsearch; composition roots read them from the environment."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_type_hints
from urllib.parse import urlsplit

from similarity.errors import InvalidInput
from similarity.settings import read_variables

PREFIX = "SIMILARITY_ELASTICSEARCH_"
NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,63}")
# The limits of Elasticsearch for num_candidates and, by default, for the hits of a search (index.max_result_window).
MAX_CANDIDATES = 10_000

VectorType: TypeAlias = Literal["hnsw", "int8_hnsw", "int4_hnsw", "bbq_hnsw"]
# The number of candidates that are rescored with full vectors, as a multiple of k. int8 and bbq are measured
# (benchmarks/results/), int4 is not.
OVERSAMPLE: Mapping[VectorType, float] = {"hnsw": 1.0, "int8_hnsw": 1.5, "int4_hnsw": 2.0, "bbq_hnsw": 5.0}
# The least number that is rescored, because among millions the quantised order of the first few is too inexact. It does
# not apply to hnsw, whose vectors are full, nor if `oversample` is set.
MIN_RESCORED = 50

# The fields without an environment variable: they are in the target, or only tests set them.
WITHOUT_VARIABLE = ("hosts", "name", "request_seconds", "write_seconds", "visible_at_once")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticSettings:
    """One index on a cluster.

    `hosts`: URLs of its nodes. `name`: the beginning of the names of all its Elasticsearch indices. The login is
    `api_key`, or `username` and `password`; it is optional. `ca_certs`: file of a private certificate authority.

    `vectors`: the kind of graph of new generations. `num_candidates`: number of candidates that a search of the graph
    collects in each shard; more is slower and more exact. With a filter it is multiplied by `search.FILTERED_FACTOR`.
    `oversample`: number of candidates that are rescored with full vectors, as a multiple of k; None: by the kind of
    graph (`oversample_of`). `exact_limit`: if no more companies than this pass the filters, all of them are compared.
    `shards`, `replicas` and `refresh_seconds` are used for new generations; "auto" is one replica if there is a second
    node. `request_seconds`: time limit of a request. `write_seconds`: how long documents that the cluster cannot take
    now are sent again before they fail. `visible_at_once`: every write waits until searches see it; for tests, too slow
    for a load.

    Raises:
        InvalidInput: a value is out of range, or the login is incomplete or given in both ways.
    """

    hosts: tuple[str, ...]
    name: str
    api_key: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    ca_certs: str = ""
    vectors: VectorType = "int8_hnsw"
    oversample: float | None = None
    num_candidates: int = 100
    exact_limit: int = 1_000
    shards: int = 1
    replicas: int | Literal["auto"] = "auto"
    refresh_seconds: float = 1.0
    request_seconds: float = 30.0
    write_seconds: float = 60.0
    visible_at_once: bool = False

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise InvalidInput(
                f"{self.name!r:.80} cannot name an index; use 1-64 of a-z, 0-9, '_' and '-', a letter first: "
                "http://localhost:9200/companies"
            )
        if self.api_key and self.username:
            raise InvalidInput(f"{PREFIX}API_KEY and {PREFIX}USERNAME are both set; set only one of them")
        if bool(self.username) != bool(self.password):
            raise InvalidInput(f"{PREFIX}USERNAME and {PREFIX}PASSWORD belong together; one of them is missing")
        for what in ("num_candidates", "exact_limit"):
            if not 1 <= getattr(self, what) <= MAX_CANDIDATES:
                raise InvalidInput(f"{what} is {getattr(self, what)}; it must be 1 to {MAX_CANDIDATES:,}")
        if self.shards < 1:
            raise InvalidInput(f"shards is {self.shards}; a generation needs at least one")
        if self.replicas != "auto" and self.replicas < 0:
            raise InvalidInput(f"replicas is {self.replicas}; it must be a number of copies, 0 for none, or 'auto'")
        # With `not`, because NaN must be refused too and every comparison with it is false.
        if self.oversample is not None and not 1 <= self.oversample < math.inf:
            raise InvalidInput(f"oversample is {self.oversample}; it must be at least 1 (1 rescores only the k hits)")
        if not 0.001 <= self.refresh_seconds < math.inf:
            raise InvalidInput(f"refresh_seconds is {self.refresh_seconds}; it must be at least 0.001")

    @property
    def place(self) -> str:
        """The nodes and the name of the index, for messages; without secrets."""
        return f"{', '.join(self.hosts)} ({self.name})"

    def oversample_of(self, vectors: VectorType, k: int) -> float:
        """Return `oversample` if it is set, else the multiple for the `k` nearest in a graph of the kind `vectors`."""
        least = 1.0 if vectors == "hnsw" else MIN_RESCORED / k
        return self.oversample or max(OVERSAMPLE[vectors], least)

    @classmethod
    def from_environment(cls, target: str, environ: Mapping[str, str]) -> "ElasticSettings":
        """Return the settings of `target` (see `parse_target`) and of the SIMILARITY_ELASTICSEARCH_ variables.

        Raises:
            InvalidInput: the target or a variable is invalid; the message never contains a secret.
        """
        hosts, name = parse_target(target)
        types = {field: hint for field, hint in get_type_hints(cls).items() if field not in WITHOUT_VARIABLE}
        return cls(hosts=hosts, name=name, **read_variables(environ, PREFIX, types))


def parse_target(target: str) -> tuple[tuple[str, ...], str]:
    """Return the URLs of the nodes and the name of the index of `https://a:9200,b:9200/companies`.

    Raises:
        InvalidInput: the target does not have this form; a password is refused, because targets are logged.
    """
    # Checked in the whole target: a password with "/", "?" or "#" would be in the path or after it.
    if "@" in target:
        raise InvalidInput(
            "the URL of an index must not contain a password, because it is logged; set "
            f"{PREFIX}API_KEY, or {PREFIX}USERNAME and {PREFIX}PASSWORD"
        )
    try:
        parts = urlsplit(target)
    except ValueError as error:
        raise InvalidInput(f"{target!r:.200} is not a URL: {error}") from None
    before, _, name = parts.path.rstrip("/").rpartition("/")
    addresses = [address for address in parts.netloc.split(",") if address]
    if parts.scheme not in {"http", "https"} or not addresses or not name:
        raise InvalidInput(
            f"{target!r:.200} must have the form http://HOST:9200/NAME, for example http://localhost:9200/companies"
        )
    ports = {"http": 80, "https": 443}
    hosts = [address if re.search(r":\d+$", address) else f"{address}:{ports[parts.scheme]}" for address in addresses]
    return tuple(f"{parts.scheme}://{host}{before}" for host in hosts), name
