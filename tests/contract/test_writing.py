from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import EncoderMismatch
from similarity.index.protocol import CompanyIndex, WriteOutcome
from tests.contract.steps import outcomes
from tests.factories import make_embedded, unit_vector

APPLIED, UNCHANGED = WriteOutcome.APPLIED, WriteOutcome.UNCHANGED
SUPERSEDED, REJECTED = WriteOutcome.SUPERSEDED, WriteOutcome.REJECTED


def test_a_newer_version_replaces_the_whole_document(index: CompanyIndex, live: str) -> None:
    before = make_embedded("a", version=2, country="FR", tags=("x", "y"), attributes={"size": 3}, aliases=("Old",))
    after = make_embedded("a", version=4, name="New name", vector=unit_vector(9), language="fr")
    assert outcomes(index.upsert(live, [before])) == [APPLIED]
    assert outcomes(index.upsert(live, [after])) == [APPLIED]
    stored = index.get(live, ["a"])["a"]
    assert stored.company == after.company
    assert (stored.version, stored.language, stored.text_hash) == (4, "fr", after.text_hash)
    np.testing.assert_allclose(stored.vector, after.vector, atol=1e-6)
    assert index.resolve(live, "Old") == []
    assert index.resolve(live, "New name") == ["a"]


def test_a_result_says_which_version_is_stored(index: CompanyIndex, live: str) -> None:
    document = make_embedded("a", version=4)
    assert [result.version for result in index.upsert(live, [document])] == [4]
    writes: list[EmbeddedCompany | DeletedCompany] = [
        document,
        make_embedded("a", version=2),
        make_embedded("a", version=4, name="Other"),
        DeletedCompany(id="a", version=3),
        make_embedded("b", version=-1),
        make_embedded("c", version=6),
        make_embedded("c", version=4),
    ]
    results = index.upsert(live, writes)
    assert outcomes(results) == [UNCHANGED, SUPERSEDED, REJECTED, SUPERSEDED, REJECTED, APPLIED, SUPERSEDED]
    assert [result.version for result in results] == [4, 4, 4, 4, None, 6, 6]


def test_a_replay_with_a_slightly_other_vector_is_unchanged(index: CompanyIndex, live: str) -> None:
    document = make_embedded("a")
    index.upsert(live, [document])
    moved = document.vector + np.float32(1e-4)
    moved = (moved / np.linalg.norm(moved)).astype(np.float32)
    assert outcomes(index.upsert(live, [replace(document, vector=moved, embedded_at=datetime.now(UTC))])) == [UNCHANGED]
    np.testing.assert_allclose(index.get(live, ["a"])["a"].vector, document.vector, atol=1e-6)


@pytest.mark.parametrize(
    "change", [{"name": "Other"}, {"country": "DE"}, {"tags": ("x",)}, {"attributes": {"listed": 1}}]
)
def test_the_same_version_with_other_content_is_rejected(
    index: CompanyIndex, live: str, change: dict[str, Any]
) -> None:
    document = make_embedded("a", attributes={"listed": True})
    index.upsert(live, [document])
    other = replace(document, company=replace(document.company, **change))
    [result] = index.upsert(live, [other])
    assert result.outcome is REJECTED
    assert "version 2" in result.reason
    assert index.get(live, ["a"])["a"].company == document.company


def test_the_same_version_of_another_text_is_rejected(index: CompanyIndex, live: str) -> None:
    document = make_embedded("a")
    index.upsert(live, [document])
    assert outcomes(index.upsert(live, [replace(document, text_hash="0" * 32)])) == [REJECTED]


def test_a_delete_and_a_write_of_one_version_do_not_replace_each_other(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded("a", version=3), DeletedCompany(id="b", version=3)])
    results = index.upsert(live, [DeletedCompany(id="a", version=3), make_embedded("b", version=3)])
    assert outcomes(results) == [REJECTED, REJECTED]
    assert list(index.get(live, ["a", "b"])) == ["a"]


UNUSABLE_VECTORS = {
    "shape": unit_vector(1, 9),
    "rows": unit_vector(1)[np.newaxis],
    "float64": unit_vector(1).astype(np.float64),
    "not finite": np.full(8, np.nan, dtype=np.float32),
    "infinite": np.array([np.inf] + [0] * 7, dtype=np.float32),
    "long": unit_vector(1) * np.float32(1.01),
    "zero": np.zeros(8, dtype=np.float32),
}


@pytest.mark.parametrize("vector", UNUSABLE_VECTORS.values(), ids=UNUSABLE_VECTORS)
def test_an_unusable_vector_is_rejected_and_the_rest_of_the_batch_is_not(
    index: CompanyIndex, live: str, vector: Any
) -> None:
    results = index.upsert(live, [make_embedded("a"), make_embedded("b", vector=vector), make_embedded("c")])
    assert outcomes(results) == [APPLIED, REJECTED, APPLIED]
    assert "vector" in results[1].reason
    assert sorted(index.get(live, ["a", "b", "c"])) == ["a", "c"]


def test_a_vector_of_nearly_unit_norm_is_accepted(index: CompanyIndex, live: str) -> None:
    vector = unit_vector(1) * np.float32(1.0005)
    assert outcomes(index.upsert(live, [make_embedded("a", vector=vector)])) == [APPLIED]
    assert index.similar(live, unit_vector(1), k=1).hits[0].score == 1.0


@pytest.mark.parametrize("version", [-1, 2**63])
def test_a_version_that_does_not_fit_is_rejected(index: CompanyIndex, live: str, version: int) -> None:
    results = index.upsert(live, [make_embedded("a", version=version), DeletedCompany(id="b", version=version)])
    assert outcomes(results) == [REJECTED, REJECTED]
    assert "2^63" in results[0].reason


def test_the_highest_and_the_lowest_version_are_kept_exactly(index: CompanyIndex, live: str) -> None:
    versions = {"a": 0, "b": 2**63 - 1, "c": 2**63 - 2, "d": 2**53 + 1}
    index.upsert(live, [make_embedded(company_id, version=version) for company_id, version in versions.items()])
    assert {document.id: document.version for batch in index.versions(live) for document in batch} == versions


def test_an_embedding_time_without_a_zone_is_rejected(index: CompanyIndex, live: str) -> None:
    naive = make_embedded("a").embedded_at.replace(tzinfo=None)
    [result] = index.upsert(live, [make_embedded("a", embedded_at=naive)])
    assert result.outcome is REJECTED
    assert "time zone" in result.reason


def test_another_encoder_is_refused_before_any_write(index: CompanyIndex, live: str) -> None:
    good, foreign = make_embedded("a"), make_embedded("b", encoder_id="encoder-2")
    with pytest.raises(EncoderMismatch, match="encoder-2"):
        index.upsert(live, [good, foreign])
    assert index.stats(live).companies == 0


def test_an_empty_batch_is_no_error(index: CompanyIndex, live: str) -> None:
    assert index.upsert(live, []) == []


def test_a_large_batch_keeps_its_order(index: CompanyIndex, live: str) -> None:
    documents = [make_embedded(f"c{number % 2500}", version=number) for number in range(5000)]
    results = index.upsert(live, documents)
    assert [result.id for result in results] == [document.id for document in documents]
    assert set(outcomes(results)) == {APPLIED}
    assert index.stats(live).companies == 2500
