import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from similarity.index.elastic.mapping import (
    Difference,
    building_settings,
    differences,
    generation_mapping,
    mapping_differences,
    serving_settings,
    settings_differences,
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


@pytest.mark.parametrize("kind", list(OVERSAMPLE))
def test_every_option_of_the_vectors_is_written_out(kind: VectorType) -> None:
    vector = mapping(kind)["properties"]["vector"]
    assert vector["index_options"].items() >= {"type": kind, "m": 16, "ef_construction": 100}.items()
    assert (vector["dims"], vector["similarity"], vector["index"]) == (384, "cosine", True)


@pytest.mark.parametrize("kind", list(OVERSAMPLE))
def test_our_own_mapping_has_no_difference_whatever_the_graph_and_the_form_of_values(kind: VectorType) -> None:
    stored = as_stored(mapping(kind))
    stored["properties"]["vector"]["index_options"] |= {"m": 48, "ef_construction": 300}
    stored["properties"]["company"]["enabled"] = "false"
    stored["properties"]["vector"]["dims"] = "384"
    assert mapping_differences(stored, GENERATION) == []


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
    "a field added": (set_at("properties", "note", value={"type": "text"}), "properties.note was added"),
    "a field missing": (without("properties", "names"), "properties.names is missing"),
    "an option added": (
        set_at("properties", "names", "ignore_above", value=10),
        "properties.names.ignore_above was added",
    ),
    "another analyzer": (
        set_at("properties", "words", "properties", "name", "analyzer", value="english"),
        "properties.words.properties.name.analyzer is 'english', not 'standard'",
    ),
    "another dimension": (
        set_at("properties", "vector", "dims", value=768),
        "properties.vector.dims is 768, not 384",
    ),
    "no vectors": (without("properties", "vector"), "properties.vector is missing"),
    "another encoder": (set_at("_meta", "encoder_id", value="other"), "_meta.encoder_id is 'other', not 'encoder-1'"),
    "no notes": (without("_meta"), "_meta is missing"),
    "nothing at all": (lambda body: body.clear(), "properties is missing"),
}


@pytest.mark.parametrize(("change", "problem"), CHANGES.values(), ids=CHANGES)
def test_each_kind_of_difference_is_found(change: Callable[[Body], None], problem: str) -> None:
    stored = as_stored(mapping())
    change(stored)
    problems = mapping_differences(stored, GENERATION)
    assert any(str(found).startswith(problem) for found in problems), problems


def test_differences_name_the_place() -> None:
    assert messages(differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "d": 3}})) == [
        "a.b is 2, not 1",
        "a.c is missing",
        "a.d was added",
    ]
    assert messages(differences({"a": 1}, "text")) == ["the mapping is 'text', not {'a': 1}"]


def test_settings_that_were_added_are_no_difference() -> None:
    expected = {"refresh_interval": "1000ms", "number_of_replicas": 1, "auto_expand_replicas": False}
    found = {"refresh_interval": "is not ours", "number_of_replicas": "1", "uuid": "was added"}
    assert messages(settings_differences(found, expected)) == [
        "index.auto_expand_replicas is missing",
        "index.refresh_interval is 'is not ours', not '1000ms'",
    ]
    assert settings_differences({**expected, "uuid": "x"}, expected) == []


def messages(found: Iterable[Difference]) -> list[str]:
    return [str(difference) for difference in found]


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
