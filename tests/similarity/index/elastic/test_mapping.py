import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from similarity.index.elastic.mapping import (
    building_settings,
    differences,
    generation_mapping,
    guard,
    serving_settings,
    small_index,
)
from similarity.index.elastic.settings import OVERSAMPLE, ElasticSettings, VectorType
from tests.factories import make_generation

GENERATION = make_generation("first", encoder_id="encoder-1", dimension=384)
PLACE = ElasticSettings(hosts=("http://localhost:9200",), name="companies")
Body = dict[str, Any]


def mapping(vectors: VectorType = "int8_hnsw") -> Body:
    return generation_mapping(GENERATION, vectors=vectors)


def as_stored(body: Body) -> Body:
    """As the server gives it back: its own copy, after JSON."""
    stored: Body = json.loads(json.dumps(body))
    return stored


def test_unknown_fields_are_refused_and_not_guessed() -> None:
    assert mapping()["dynamic"] == "strict"
    assert small_index({})["mappings"]["dynamic"] == "strict"


def test_the_mapping_says_whose_vectors_it_holds() -> None:
    assert mapping()["_meta"] == {"schema": 1, "encoder_id": "encoder-1", "bundle_id": "bundle-1"}


@pytest.mark.parametrize("kind", list(OVERSAMPLE))
def test_every_option_of_the_vectors_is_written_out(kind: VectorType) -> None:
    vector = mapping(kind)["properties"]["vector"]
    assert vector["index_options"].items() >= {"type": kind, "m": 16, "ef_construction": 100}.items()
    assert (vector["dims"], vector["similarity"], vector["index"]) == (384, "cosine", True)


def test_what_searches_derive_is_not_stored_twice() -> None:
    assert mapping()["_source"] == {"excludes": ["names", "shortest_name", "filters", "words"]}
    assert set(mapping()["_source"]["excludes"]) < set(mapping()["properties"])


def test_the_mapping_is_made_anew_each_time() -> None:
    changed = mapping()
    changed["properties"]["vector"]["dims"] = 1
    changed["_source"]["excludes"].clear()
    assert mapping()["properties"]["vector"]["dims"] == 384
    assert mapping()["_source"]["excludes"]


@pytest.mark.parametrize("kind", list(OVERSAMPLE))
def test_the_guard_lets_our_own_mapping_pass_whatever_the_graph(kind: VectorType) -> None:
    stored = as_stored(mapping(kind))
    stored["properties"]["vector"]["index_options"] |= {"m": 48, "ef_construction": 300}
    assert guard(stored, GENERATION) == []


def test_the_guard_takes_booleans_and_numbers_as_text_too() -> None:
    stored = as_stored(mapping())
    stored["properties"]["company"]["enabled"] = "false"
    stored["properties"]["vector"]["dims"] = "384"
    assert guard(stored, GENERATION) == []


def set_at(*path: str, value: Any) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        for key in path[:-1]:
            body = body[key]
        body[path[-1]] = value

    return change


def without(*path: str) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        for key in path[:-1]:
            body = body[key]
        del body[path[-1]]

    return change


CHANGES: dict[str, tuple[Callable[[Body], None], str]] = {
    "a field added": (set_at("properties", "note", value={"type": "text"}), "properties.note is not ours"),
    "a field missing": (without("properties", "names"), "properties.names is missing"),
    "a nested field added": (
        set_at("properties", "filters", "properties", "city", value={"type": "keyword"}),
        "properties.filters.properties.city is not ours",
    ),
    "another type": (
        set_at("properties", "names", value={"type": "text"}),
        "properties.names.type is 'text', not 'keyword'",
    ),
    "an option added": (
        set_at("properties", "names", "ignore_above", value=10),
        "properties.names.ignore_above is not ours",
    ),
    "another analyzer": (
        set_at("properties", "words", "properties", "name", "analyzer", value="english"),
        "properties.words.properties.name.analyzer is 'english', not 'standard'",
    ),
    "another dimension": (
        set_at("properties", "vector", "dims", value=768),
        "properties.vector.dims is 768, not 384",
    ),
    "another similarity": (
        set_at("properties", "vector", "similarity", value="dot_product"),
        "properties.vector.similarity is 'dot_product', not 'cosine'",
    ),
    "vectors not indexed": (set_at("properties", "vector", "index", value=False), "properties.vector.index is False"),
    "no vectors": (without("properties", "vector"), "properties.vector is missing"),
    "another encoder": (set_at("_meta", "encoder_id", value="other"), "_meta.encoder_id is 'other', not 'encoder-1'"),
    "another bundle": (set_at("_meta", "bundle_id", value="other"), "_meta.bundle_id is 'other', not 'bundle-1'"),
    "another schema": (set_at("_meta", "schema", value=2), "_meta.schema is 2, not 1"),
    "no notes": (without("_meta"), "_meta is missing"),
    "not strict": (set_at("dynamic", value="true"), "dynamic is 'true', not 'strict'"),
    "another source": (set_at("_source", value={"enabled": False}), "_source.enabled is not ours"),
    "less left out of the source": (set_at("_source", "excludes", value=["names"]), "_source.excludes is ['names']"),
    "nothing at all": (lambda body: body.clear(), "properties is missing"),
}


@pytest.mark.parametrize(("change", "problem"), CHANGES.values(), ids=CHANGES)
def test_the_guard_finds_each_kind_of_difference(change: Callable[[Body], None], problem: str) -> None:
    stored = as_stored(mapping())
    change(stored)
    problems = guard(stored, GENERATION)
    assert any(line.startswith(problem) for line in problems), problems


def test_the_guard_changes_nothing() -> None:
    stored = as_stored(mapping())
    before = copy.deepcopy(stored)
    guard(stored, GENERATION)
    assert stored == before


def test_differences_name_the_place() -> None:
    assert list(differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "d": 3}}, "")) == [
        "a.b is 2, not 1",
        "a.c is missing",
        "a.d is not ours",
    ]
    assert list(differences({"a": 1}, "text", "")) == ["the mapping is 'text', not {'a': 1}"]


def test_a_generation_is_built_without_refreshes_and_copies() -> None:
    body = building_settings(ElasticSettings(hosts=PLACE.hosts, name="c", shards=3, replicas=2))["index"]
    assert (body["refresh_interval"], body["number_of_replicas"], body["number_of_shards"]) == ("-1", 0, 3)
    assert body["auto_expand_replicas"] is False
    assert body["translog.durability"] == "request"


@pytest.mark.parametrize(
    ("replicas", "copies"),
    [
        ("auto", {"auto_expand_replicas": "0-1"}),
        (0, {"auto_expand_replicas": False, "number_of_replicas": 0}),
        (2, {"auto_expand_replicas": False, "number_of_replicas": 2}),
    ],
)
def test_serving_restores_refreshes_and_copies(replicas: Any, copies: Body) -> None:
    settings = ElasticSettings(hosts=PLACE.hosts, name="c", replicas=replicas, refresh_seconds=0.25)
    assert serving_settings(settings) == {"index": {"refresh_interval": "250ms", **copies}}


def test_serving_touches_only_what_building_changed() -> None:
    """A setting that only one of the two names would never be restored."""
    building = building_settings(PLACE)["index"]
    for replicas in ("auto", 1):
        serving = serving_settings(ElasticSettings(hosts=PLACE.hosts, name="c", replicas=replicas))["index"]
        assert serving.keys() <= building.keys()
