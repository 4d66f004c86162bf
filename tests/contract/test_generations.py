from dataclasses import replace
from threading import Timer

import pytest

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import GenerationConflict, InvalidInput, NoLiveGeneration, UnknownGeneration
from similarity.generations.plan import former_bundles
from similarity.index.protocol import CompanyIndex, GenerationState
from similarity.model.calibration import Calibration
from similarity.model.ranker import Ranker
from tests.contract.clock import Clock
from tests.contract.steps import add_candidate, add_live
from tests.factories import ENCODER_ID, make_embedded, make_generation, unit_vector


def test_an_empty_index_has_no_live_generation(index: CompanyIndex) -> None:
    with pytest.raises(NoLiveGeneration, match="ingest"):
        index.live()
    assert index.generations() == []
    assert index.write_targets() == []


def test_a_created_generation_is_building_and_kept_as_given(index: CompanyIndex) -> None:
    ranker = Ranker(encoder_id=ENCODER_ID, cosine=26.0, intercept=-24.0)
    generation = make_generation("first", calibration=Calibration(slope=12.5, intercept=-7.0), ranker=ranker)
    index.create_generation(generation)
    assert index.generations() == [generation]


def test_a_taken_name_is_refused(index: CompanyIndex) -> None:
    index.create_generation(make_generation("first"))
    with pytest.raises(GenerationConflict, match="first"):
        index.create_generation(make_generation("first", encoder_id="other"))


@pytest.mark.parametrize("name", ["", "UPPER", "a b", "a" * 65, "ü"])
def test_an_unusable_name_is_refused(index: CompanyIndex, name: str) -> None:
    with pytest.raises(InvalidInput, match="a-z"):
        index.create_generation(make_generation(name))


def test_a_generation_without_dimension_is_refused(index: CompanyIndex) -> None:
    with pytest.raises(InvalidInput, match="dimension"):
        index.create_generation(make_generation(dimension=0))


def test_a_new_generation_cannot_claim_to_be_live(index: CompanyIndex) -> None:
    with pytest.raises(InvalidInput, match="building"):
        index.create_generation(make_generation(state=GenerationState.LIVE))


def test_generations_come_in_the_order_in_which_they_were_added(index: CompanyIndex) -> None:
    first = make_generation("z-first")
    by_a_late_clock = replace(make_generation("a-second"), created_at=first.created_at.replace(year=2024))
    index.create_generation(first)
    index.create_generation(by_a_late_clock)
    assert [generation.name for generation in index.generations()] == ["z-first", "a-second"]


def test_promotions_and_rollbacks_are_numbered_whatever_the_clock_says(index: CompanyIndex, clock: Clock) -> None:
    add_live(index, "first")
    clock.advance(2 * 86_400)
    add_live(index, "second")
    clock.advance(-86_400)
    add_live(index, "third")
    assert [generation.promotion for generation in index.generations()] == [1, 2, 3]
    index.rollback()
    assert [generation.promotion for generation in index.generations()] == [1, 4, 3]
    assert index.live().promoted_at == clock(), "times stay true"


def test_the_first_candidate_becomes_live_and_says_when(index: CompanyIndex) -> None:
    add_live(index, "first")
    live = index.live()
    assert (live.name, live.state) == ("first", GenerationState.LIVE)
    assert live.promoted_at is not None
    assert live.promoted_at.utcoffset() is not None


def test_every_change_goes_to_candidate_live_and_previous(index: CompanyIndex) -> None:
    add_live(index, "first")
    add_live(index, "second")
    add_candidate(index, "third")
    index.create_generation(make_generation("fourth"))
    assert {generation.name for generation in index.write_targets()} == {"first", "second", "third"}


def test_there_is_nothing_to_roll_back_to_at_first(index: CompanyIndex) -> None:
    with pytest.raises(NoLiveGeneration):
        index.rollback()
    add_live(index, "first")
    with pytest.raises(GenerationConflict, match="nothing to go back to"):
        index.rollback()


def test_rollback_refuses_a_generation_that_lacks_changes_and_says_which(index: CompanyIndex) -> None:
    both = [make_embedded("a", version=2), make_embedded("b", version=2)]
    index.upsert(add_live(index, "first"), both)
    index.upsert(add_live(index, "second"), both)
    index.upsert(
        "second", [make_embedded("a", version=4), make_embedded("c", version=2), DeletedCompany(id="b", version=5)]
    )
    with pytest.raises(GenerationConflict, match=r"\b3 documents of 'second' \(a, b, c\)"):
        index.rollback(wait=0.5)
    assert index.live().name == "second"
    assert index.rollback(force=True).name == "first"
    assert index.live().name == "first"


def test_rollback_names_the_first_ten_of_many(index: CompanyIndex) -> None:
    add_live(index, "first")
    index.upsert(add_live(index, "second"), [make_embedded(f"c{number:02}") for number in range(11)])
    with pytest.raises(GenerationConflict, match=r"\b11 documents of 'second' \(c00, c01, .*, c09, \.\.\.\)"):
        index.rollback(wait=0)


def test_rollback_waits_for_a_write_that_is_under_way(index: CompanyIndex) -> None:
    """A writer has written to the one generation and not yet to the other."""
    changes: list[EmbeddedCompany | DeletedCompany] = [make_embedded("a", version=4), DeletedCompany(id="b", version=5)]
    add_live(index, "first")
    index.upsert(add_live(index, "second"), changes)
    later = Timer(0.5, index.upsert, ["first", changes])
    later.start()
    try:
        assert index.rollback(wait=20).name == "first"
    finally:
        later.join()
    assert list(index.get("first", ["a", "b"])) == ["a"]


def test_a_name_can_be_used_again_after_retiring(index: CompanyIndex) -> None:
    add_live(index, "other")
    add_candidate(index, "first")
    index.upsert("first", [make_embedded("old", vector=unit_vector(1))])
    index.similar("first", unit_vector(1), k=5)
    index.retire("first")
    add_candidate(index, "first")
    index.upsert("first", [make_embedded("new", vector=unit_vector(1))])
    assert index.stats("first").companies == 1
    assert [hit.company.id for hit in index.similar("first", unit_vector(1), k=5).hits] == ["new"]


def test_a_bundle_that_was_rolled_back_is_remembered_after_its_generation_is_retired(index: CompanyIndex) -> None:
    add_live(index, "first", bundle_id="old")
    add_live(index, "second", bundle_id="new")
    index.rollback()
    assert former_bundles(index) == {"new"}
    assert not index.retired_bundles()
    index.retire("second")
    index.retire(add_candidate(index, "third", bundle_id="never-live"))
    assert former_bundles(index) == {"new"}
    assert index.retired_bundles() == {"new"}
    add_live(index, "second", bundle_id="new")
    assert former_bundles(index) == {"old"}
    index.rollback()
    assert former_bundles(index) == {"new"}


def test_the_bundle_that_is_live_is_none_of_those_left(index: CompanyIndex) -> None:
    """A copy of a generation has its bundle."""
    add_live(index, "first", bundle_id="old")
    add_live(index, "copy", bundle_id="old")
    index.retire("first")
    assert former_bundles(index) == set()
    add_live(index, "second", bundle_id="new")
    assert former_bundles(index) == {"old"}


def test_a_withdrawn_candidate_is_building_again_and_not_written_to(index: CompanyIndex) -> None:
    add_live(index, "first")
    add_candidate(index, "second")
    index.upsert("second", [make_embedded("a")])
    before = index.revision()
    index.withdraw_candidate("second")
    assert [target.name for target in index.write_targets()] == ["first"]
    assert index.revision() > before
    index.register_candidate("second")
    assert list(index.get("second", ["a"])) == ["a"]


def test_the_revision_stays_while_the_generations_do(index: CompanyIndex) -> None:
    add_live(index, "first")
    add_candidate(index, "second")
    before = index.revision()
    index.upsert("first", [make_embedded("a"), DeletedCompany(id="b", version=5)])
    index.similar("first", unit_vector(1), k=1)
    index.purge_deleted("first", before=make_generation().created_at)
    index.compact("first")
    lease = index.take_lease("writer", holder="a", seconds=60)
    index.release_lease(index.renew_lease(lease, seconds=60, acknowledged=before))
    for refused in (
        lambda: index.create_generation(make_generation("first")),
        lambda: index.register_candidate("first"),
        lambda: index.withdraw_candidate("first"),
        lambda: index.promote("first"),
        index.rollback,
        lambda: index.retire("first"),
    ):
        with pytest.raises(GenerationConflict):
            refused()
    assert index.revision() == before


def test_every_method_refuses_an_unknown_generation(index: CompanyIndex) -> None:
    when = make_generation().created_at
    for use in (
        lambda: index.register_candidate("none"),
        lambda: index.withdraw_candidate("none"),
        lambda: index.promote("none"),
        lambda: index.retire("none"),
        lambda: index.stats("none"),
        lambda: index.upsert("none", [make_embedded()]),
        lambda: index.get("none", ["a"]),
        lambda: index.stored_versions("none", ["a"]),
        lambda: index.resolve("none", "a"),
        lambda: index.resolve_many("none", ["a"]),
        lambda: index.find("none", "a"),
        lambda: index.similar("none", unit_vector(1), k=1),
        lambda: index.scan("none"),
        lambda: index.versions("none"),
        lambda: index.compact("none"),
        lambda: index.purge_deleted("none", before=when),
    ):
        with pytest.raises(UnknownGeneration, match="'none'"):
            use()
