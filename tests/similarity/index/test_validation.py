"""The messages say what to do; that every index refuses alike is in the contract tests."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from similarity.company import DeletedCompany
from similarity.errors import EncoderMismatch, GenerationConflict, IndexUnavailable, InvalidInput
from similarity.index import validation
from similarity.index.protocol import GenerationState, Lease
from similarity.model.ranker import Ranker, ranker_to_json
from tests.factories import make_embedded, make_generation, unit_vector

LEASE = Lease(name="reembed", holder="host-1", fence=3, expires_at=datetime(2025, 3, 1, 12, tzinfo=UTC))


def test_a_good_vector_has_no_problem() -> None:
    assert validation.vector_problem(unit_vector(1), dimension=8) == ""
    assert validation.vector_problem(unit_vector(1) * np.float32(1.0009), dimension=8) == ""


@pytest.mark.parametrize(
    ("vector", "problem"),
    [
        ([1.0] * 8, "is list; it must be a float32 array"),
        (unit_vector(1).astype(np.float64), "is float64; it must be a float32 array"),
        (unit_vector(1, 7), r"has shape \[7\]; this generation holds \[8\]"),
        (unit_vector(1) * np.float32(2), "has norm 2; divide it by its norm"),
        (np.zeros(8, dtype=np.float32), "has norm 0"),
        (np.full(8, np.nan, dtype=np.float32), "not finite"),
        (np.full(8, np.inf, dtype=np.float32), "not finite"),
    ],
)
def test_what_is_wrong_with_a_vector_is_said(vector: Any, problem: str) -> None:
    with pytest.raises(validation.UnstorableDocument, match=problem):
        validation.check_document(make_embedded(vector=vector), dimension=8)
    with pytest.raises(InvalidInput, match=problem):
        validation.check_query(vector, k=1, dimension=8)


def test_a_tombstone_needs_a_version_only() -> None:
    validation.check_document(DeletedCompany(id="a", version=0), dimension=8)
    with pytest.raises(validation.UnstorableDocument, match=r"2\^63"):
        validation.check_document(DeletedCompany(id="a", version=-1), dimension=8)


def test_another_encoders_vectors_are_refused_and_tombstones_are_not() -> None:
    generation = make_generation("first", encoder_id="encoder-1")
    tombstone = DeletedCompany(id="a", version=3)
    validation.refuse_other_encoders(generation, [make_embedded("b", encoder_id="encoder-1"), tombstone])
    with pytest.raises(EncoderMismatch, match=r"'b' was embedded by 'encoder-2'.*embed it again"):
        validation.refuse_other_encoders(generation, [tombstone, make_embedded("b", encoder_id="encoder-2")])


def test_a_step_from_another_state_names_both_states() -> None:
    with pytest.raises(GenerationConflict, match="'first' is building; only a candidate one can be promoted"):
        validation.require_state(make_generation("first"), GenerationState.CANDIDATE, "be promoted")
    validation.require_state(make_generation("first"), GenerationState.BUILDING, "be registered as candidate")


def test_an_unknown_generation_names_the_known_ones() -> None:
    assert "holds: first, second" in str(validation.unknown_generation("third", ["first", "second"]))
    assert "holds: none" in str(validation.unknown_generation("third", []))
    assert len(str(validation.unknown_generation("x" * 10_000, []))) < 200


def test_a_lag_is_counted_in_words_that_people_read() -> None:
    assert "1,234 documents of 'second' (a, b, ...);" in str(
        validation.lagging_behind("first", "second", 1234, ["a", "b"])
    )
    assert "2 documents of 'second' (a, b);" in str(validation.lagging_behind("first", "second", 2, ["a", "b"]))


def test_a_lease_says_who_has_it_or_that_it_is_lost() -> None:
    assert "'host-1' until 2025-03-01 12:00:00 UTC; wait" in validation.lease_held_text(LEASE)
    assert "'host-1' does not hold the lease 'reembed' any more" in validation.lease_lost_text(LEASE)


@pytest.mark.parametrize("seconds", [0, -0.5, float("nan"), float("inf"), 8 * 86_400])
def test_a_lease_ends_after_a_time_that_somebody_could_wait_for(seconds: float) -> None:
    with pytest.raises(InvalidInput, match="renew it"):
        validation.check_lease_request("reembed", "host-1", seconds)
    validation.check_lease_request("reembed", "host-1", 0.5)


def test_any_text_becomes_one_that_a_store_takes() -> None:
    assert validation.storable("a\0b\ud800c") == "a b?c"
    assert validation.filter_key("  Stra\u00dfe\0\ufb01ne ") == "strasse fine"


@pytest.mark.parametrize("languages", ["en", ["EN"], [1], None, []])
def test_a_stored_ranker_that_cannot_be_read_is_said_with_its_generation(languages: object) -> None:
    stored = {**(ranker_to_json(Ranker(encoder_id="e", cosine=2.0, intercept=-1.0)) or {}), "languages": languages}
    with pytest.raises(IndexUnavailable, match=r"the ranker of generation 'first' cannot be read \(ranker.languages"):
        validation.stored_ranker("first", stored)
