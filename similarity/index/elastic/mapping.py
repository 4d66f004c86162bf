"""The mappings and settings of the Elasticsearch indices, and a comparison with those on the cluster (no I/O).

A document's `_source` holds the unchanged `company` and the vector. The fields for searches (names, filter values,
words) are derived from the company and excluded from `_source`.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from similarity.index.elastic.settings import ElasticSettings, VectorType
from similarity.index.protocol import Generation

Body: TypeAlias = dict[str, Any]

SCHEMA_VERSION = 1
# Options of the graph (`dense_vector` in Elasticsearch), always explicit, because the defaults of the server change.
LINKS_PER_NODE = 16
CANDIDATES_WHILE_BUILDING = 100
WORD_FIELDS = ("name", "aliases", "domain", "description")
# Marks documents whose numbers have keys. Older releases wrote no keys; ranges would silently miss such documents.
NUMBERS_KEPT = "numbers.kept"
DERIVED = ("names", "shortest_name", "filters", "words")


class DifferenceKind(Enum):
    """A difference between a found JSON value and the expected one."""

    MISSING = "missing"
    ADDED = "added"
    CHANGED = "changed"


class Difference(NamedTuple):
    """One difference between expected and found JSON; `str` makes it a message. `path`: keys, joined by dots."""

    path: str
    kind: DifferenceKind
    expected: Any = None
    found: Any = None

    def __str__(self) -> str:
        if self.kind is DifferenceKind.MISSING:
            return f"{self.path} is missing"
        if self.kind is DifferenceKind.ADDED:
            return f"{self.path} was added"
        return f"{self.path or 'the mapping'} is {self.found!r:.80}, not {self.expected!r:.80}"


def generation_mapping(generation: Generation, *, vectors: VectorType) -> Body:
    """Return the mapping of a generation's index: strict, with every option explicit."""
    keyword = {"type": "keyword"}
    stored_only = {"type": "keyword", "index": False, "doc_values": False}
    return {
        "dynamic": "strict",
        "_meta": {
            "schema": SCHEMA_VERSION,
            "encoder_id": generation.encoder_id,
            "bundle_id": generation.bundle_id,
        },
        "_source": {"excludes": list(DERIVED)},
        "properties": {
            "id": keyword,
            "version": {"type": "long"},
            "deleted": {"type": "boolean"},
            "text_hash": stored_only,
            "language": keyword,
            "embedded_at": {"type": "date_nanos"},
            "company": {"type": "object", "enabled": False},
            "vector": _vector(generation.dimension, vectors),
            "names": keyword,
            "shortest_name": {"type": "short"},
            "filters": {
                "properties": {
                    "country": keyword,
                    "industry": keyword,
                    "tags": keyword,
                    "domain": keyword,
                    # Each attribute's text, each number's key, and NUMBERS_KEPT (`documents.filters_source`).
                    "attributes": {"type": "flattened"},
                }
            },
            # Standard tokenizer, lower case; accents are removed before, from queries too (`validation.fold`).
            "words": {"properties": {name: {"type": "text", "analyzer": "standard"} for name in WORD_FIELDS}},
        },
    }


def building_settings(settings: ElasticSettings) -> Body:
    """Return the settings while a generation is filled: no copies, no refreshes."""
    return {
        "index": {
            "number_of_shards": settings.shards,
            "number_of_replicas": 0,
            "auto_expand_replicas": False,
            "refresh_interval": "-1",
            # An acknowledged write is on disk.
            "translog.durability": "request",
            # Only purged tombstones are really deleted, and a purged company may be written again at once.
            "gc_deletes": "0s",
            # If 10 % pass a filter, the default, acorn, finds fewer of the ten nearest (decision 9 in docs/decisions).
            "dense_vector.hnsw_filter_heuristic": "fanout",
        }
    }


def serving_settings(settings: ElasticSettings) -> Body:
    """Return the settings that `promote` restores."""
    copies: Body = (
        {"auto_expand_replicas": "0-1"}
        if settings.replicas == "auto"
        else {"auto_expand_replicas": False, "number_of_replicas": settings.replicas}
    )
    return {"index": {"refresh_interval": f"{round(settings.refresh_seconds * 1000)}ms", **copies}}


def small_index(properties: Body, *, schema: int | None = None, replicas: str = "0-2") -> Body:
    """Return mapping and settings of a small index: strict, one shard, every acknowledged write on disk."""
    meta = {} if schema is None else {"_meta": {"schema": schema}}
    return {
        "mappings": {"dynamic": "strict", **meta, "properties": properties},
        "settings": {
            "index": {"number_of_shards": 1, "auto_expand_replicas": replicas, "translog.durability": "request"}
        },
    }


def mapping_differences(found: Mapping[str, Any], generation: Generation) -> list[Difference]:
    """Return how the mapping of an index differs from that of its generation.

    The kind of graph may differ: it is chosen when the index is created.
    """
    graph = found.get("properties", {}).get("vector", {}).get("index_options", {})
    expected = generation_mapping(generation, vectors="int8_hnsw")
    expected["properties"]["vector"]["index_options"] = dict(graph)
    return list(differences(expected, found))


def settings_differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Difference]:
    """Return how the settings of an index differ from the expected settings; the index may have further settings."""
    return [each for each in differences(expected, found, "index") if each.kind is not DifferenceKind.ADDED]


def differences(expected: Any, found: Any, path: str = "") -> Iterator[Difference]:
    """Yield the differences between two JSON values; `path` is the place of the values."""
    if not isinstance(expected, Mapping) or not isinstance(found, Mapping):
        if _as_returned(expected) != _as_returned(found):
            yield Difference(path, DifferenceKind.CHANGED, expected=expected, found=found)
        return
    for key in sorted(expected.keys() | found.keys()):
        key_path = f"{path}.{key}" if path else key
        if key not in found:
            yield Difference(key_path, DifferenceKind.MISSING, expected=expected[key])
        elif key not in expected:
            yield Difference(key_path, DifferenceKind.ADDED, found=found[key])
        else:
            yield from differences(expected[key], found[key], key_path)


def _vector(dimension: int, vectors: VectorType) -> Body:
    options: Body = {"type": vectors, "m": LINKS_PER_NODE, "ef_construction": CANDIDATES_WHILE_BUILDING}
    if vectors == "bbq_hnsw":
        # The server would add its default, which may change; searches give their own value.
        options["rescore_vector"] = {"oversample": 3.0}
    return {"type": "dense_vector", "dims": dimension, "index": True, "similarity": "cosine", "index_options": options}


def _as_returned(value: Any) -> Any:
    """Return booleans and numbers in the form in which the server returns them."""
    return str(value).lower() if isinstance(value, bool | int | float) else value
