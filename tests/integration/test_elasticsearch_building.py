"""How a generation is built and brought into service, and what keeps strangers' hands and late writers off it."""

from contextlib import closing

import pytest

from similarity.errors import EncoderMismatch, IndexUnavailable, UnknownGeneration
from similarity.index.elastic import connection
from similarity.index.elastic import index as elastic_index
from similarity.index.elastic.mapping import building_settings
from similarity.index.protocol import GenerationState, WriteOutcome
from tests.contract.steps import add_candidate, add_live, found, outcomes
from tests.factories import make_embedded, make_generation, unit_vector
from tests.integration.elasticsearch_place import Place

pytestmark = pytest.mark.integration


def test_nothing_is_refreshed_or_copied_while_a_generation_is_filled(place: Place) -> None:
    index = place.open(visible_at_once=False)
    index.create_generation(make_generation("first"))
    building = place.index_settings("first")
    assert (building["refresh_interval"], building["number_of_replicas"]) == ("-1", "0")
    assert building["auto_expand_replicas"] == "false"
    assert building["translog"]["durability"] == "request"
    index.register_candidate("first")
    assert place.index_settings("first") == building
    index.upsert("first", [make_embedded("a")])
    assert found(index.similar("first", unit_vector(1), k=1)) == []


def test_promoting_makes_everything_visible_and_safe(place: Place) -> None:
    index = place.open(visible_at_once=False, refresh_seconds=0.5)
    add_candidate(index, "first")
    index.upsert("first", [make_embedded("a")])
    index.promote("first")
    assert found(index.similar("first", unit_vector(1), k=1)) == ["a"]
    settings = place.index_settings("first")
    assert (settings["refresh_interval"], settings["auto_expand_replicas"]) == ("500ms", "0-1")
    assert settings["number_of_replicas"] == str(min(1, place.data_nodes() - 1))
    assert place.client.cluster.health(index=place.index_of("first"))["status"] == "green"


def test_copies_that_have_no_place_keep_a_generation_from_being_promoted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_live(place.open(), "first")
    greedy = place.open(replicas=place.data_nodes())
    add_candidate(greedy, "second")
    # What must succeed, before and after, has all its time.
    with monkeypatch.context() as patch:
        patch.setattr(elastic_index, "HEALTH_SECONDS", 1)
        with pytest.raises(IndexUnavailable, match=r"is yellow after 1 s, so it was not promoted.*fewer replicas"):
            greedy.promote("second")
    states = {generation.name: generation.state for generation in greedy.generations()}
    assert states == {"first": GenerationState.LIVE, "second": GenerationState.CANDIDATE}
    place.open(replicas=0).promote("second")
    assert place.index_settings("second")["number_of_replicas"] == "0"
    assert greedy.live().name == "second"


def test_a_field_that_somebody_added_stops_the_next_writer_before_it_writes(place: Place) -> None:
    add_live(place.open(), "first")
    place.client.indices.put_mapping(index=place.index_of("first"), properties={"note": {"type": "text"}})
    index = place.open()
    for _ in range(2):
        with pytest.raises(IndexUnavailable, match=r"properties\.note was added.*new generation"):
            index.upsert("first", [make_embedded("a")])
    assert index.stats("first").companies == 0


def test_another_mapping_keeps_a_generation_from_being_promoted(place: Place) -> None:
    index = place.open()
    add_candidate(index, "first")
    place.client.indices.put_mapping(index=place.index_of("first"), properties={"note": {"type": "text"}})
    with pytest.raises(IndexUnavailable, match="note was added"):
        index.promote("first")
    assert [generation.state for generation in index.generations()] == [GenerationState.CANDIDATE]


def test_notes_of_another_encoder_stop_the_next_writer(place: Place) -> None:
    add_live(place.open(), "first")
    meta = {"schema": 1, "encoder_id": "encoder-2", "bundle_id": "bundle-1"}
    place.client.indices.put_mapping(index=place.index_of("first"), meta=meta)
    index = place.open()
    with pytest.raises(IndexUnavailable, match=r"_meta\.encoder_id is 'encoder-2', not 'encoder-1'"):
        index.upsert("first", [make_embedded("a")])
    with pytest.raises(EncoderMismatch):
        index.upsert("first", [make_embedded("a", encoder_id="encoder-2")])
    assert index.stats("first").companies == 0


def test_a_setting_that_operators_may_change_stops_nobody(place: Place) -> None:
    add_live(place.open(), "first")
    place.client.indices.put_settings(index=place.index_of("first"), settings={"index": {"refresh_interval": "5s"}})
    assert outcomes(place.open().upsert("first", [make_embedded("a")])) == [WriteOutcome.APPLIED]


def test_a_late_writer_does_not_make_a_retired_index_anew(place: Place) -> None:
    index, late = place.open(), place.open()
    add_live(index, "first")
    late.upsert("first", [make_embedded("a")])
    add_live(index, "second")
    index.retire("first")
    for _ in range(2):
        with pytest.raises(UnknownGeneration):
            late.upsert("first", [make_embedded("b")])
    assert place.indices() == [place.index_of("second")]


def test_a_late_reader_learns_that_the_generation_is_gone(place: Place) -> None:
    index = place.open()
    add_live(index, "first")
    add_live(index, "second")
    late = place.open()
    for use in (
        lambda: late.similar("first", unit_vector(1), k=1),
        lambda: late.get("first", ["a"]),
        lambda: late.find("first", "acme"),
        lambda: late.stats("first"),
        lambda: list(late.scan("first")),
        lambda: late.compact("first"),
    ):
        use()
    index.retire("first")
    late.live()  # a warm cache of the live one does not help with the retired one
    with pytest.raises(UnknownGeneration):
        late.similar("first", unit_vector(1), k=1)
    assert late.similar("second", unit_vector(1), k=1).hits == ()


def test_a_late_writer_writes_to_the_new_generation_of_an_old_name(place: Place) -> None:
    index, late = place.open(), place.open()
    add_live(index, "other")
    add_candidate(index, "first")
    late.upsert("first", [make_embedded("old")])
    index.retire("first")
    add_candidate(index, "first")
    with pytest.raises(UnknownGeneration):
        late.upsert("first", [make_embedded("new")])
    assert outcomes(late.upsert("first", [make_embedded("new")])) == [WriteOutcome.APPLIED]
    assert list(index.get("first", ["old", "new"])) == ["new"]


def test_an_index_that_no_node_takes_says_why(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    index = place.open()
    index.create_generation(make_generation("first"))
    enable = "cluster.routing.allocation.enable"
    place.client.cluster.put_settings(persistent={enable: "none"})
    try:
        # What must succeed, before and after, has all its time.
        with monkeypatch.context() as patch:
            patch.setattr(connection, "PLACED_SECONDS", 1)
            with pytest.raises(IndexUnavailable, match=r"cannot allocate .*allocation\.enable.*allocation/explain"):
                index.create_generation(make_generation("second"))
            with closing(connection.Cluster(place.settings)) as cluster:
                for _ in ("made", "there already"):
                    with pytest.raises(IndexUnavailable, match=r"cannot allocate .*allocation\.enable"):
                        cluster.create_index(f"{place.name}-third", settings=building_settings(place.settings))
    finally:
        place.client.cluster.put_settings(persistent={enable: None})
    index.retire("second")
    index.create_generation(make_generation("second"))
    index.register_candidate("second")
    assert outcomes(index.upsert("second", [make_embedded("a")])) == [WriteOutcome.APPLIED]
