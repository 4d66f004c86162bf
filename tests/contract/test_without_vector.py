"""Companies whose description has too few words to rank by: stored and found by name, in no ranking."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.generations import drift, gate
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, WriteOutcome
from similarity.search.errors import TooFewWords
from similarity.search.export import export_neighbours
from similarity.search.queries.question import Anchor, Question
from similarity.search.searcher import Searcher
from similarity.text import NO_TEXT
from tests.contract.steps import add_candidate, found, outcomes
from tests.factories import DIMENSION, make_embedded, unit_vector

FRENCH = [FieldFilter(field="country", any_of=("fr",))]
QUERY = unit_vector(1)


def wordless(company_id: str = "short", /, **fields: Any) -> EmbeddedCompany:
    words: dict[str, Any] = {"name": "Short Inc.", "description": "Sells ropeways.", "country": "FR"}
    document = make_embedded(company_id, vector=np.zeros(DIMENSION, dtype=np.float32), **(words | fields))
    return replace(document, text_hash=NO_TEXT)


def with_vectors(count: int = 5) -> list[EmbeddedCompany]:
    return [
        make_embedded(f"c{number}", vector=unit_vector(number), country="FR" if number % 4 else "DE")
        for number in range(count)
    ]


@pytest.fixture
def filled(index: CompanyIndex, live: str) -> str:
    """A generation of five companies with a vector, and one without."""
    written = index.upsert(live, [*with_vectors(), wordless()])
    assert outcomes(written) == [WriteOutcome.APPLIED] * 6
    return live


def same(one: Sequence[object], other: EmbeddedCompany) -> bool:
    [document] = one
    assert isinstance(document, EmbeddedCompany)
    return replace(document, vector=other.vector) == other and np.array_equal(document.vector, other.vector)


def test_it_is_read_counted_and_found_as_any_other(index: CompanyIndex, filled: str) -> None:
    document = wordless()
    assert same([index.get(filled, ["short"])["short"]], document)
    assert same([each for batch in index.scan(filled) for each in batch if each.id == "short"], document)
    assert not index.get(filled, ["short"])["short"].has_vector
    assert index.stored_versions(filled, ["short"]) == {"short": document.version}
    assert [each.id for batch in index.versions(filled) for each in batch] == [*(f"c{n}" for n in range(5)), "short"]
    assert index.resolve(filled, "short inc.") == ["short"]
    for query in ("Short", "ropeways"):
        assert [each.id for each in index.find(filled, query)] == ["short"]
    assert (index.stats(filled).companies, index.stats(filled).without_vector) == (6, 1)
    assert index.stats(filled).without_vector_ids == ("short",)
    assert outcomes(index.upsert(filled, [document])) == [WriteOutcome.UNCHANGED]


@pytest.mark.parametrize("filters", [[], FRENCH], ids=["all", "filtered"])
def test_it_is_in_no_ranking(index: CompanyIndex, filled: str, filters: list[FieldFilter]) -> None:
    expected = {"c1", "c2", "c3"} if filters else {f"c{number}" for number in range(5)}
    assert set(found(index.similar(filled, QUERY, k=10, filters=filters))) == expected
    assert index.count_nearer(filled, QUERY, score=-1.0, filters=filters) == len(expected)


def test_a_vector_may_come_and_go(index: CompanyIndex, filled: str) -> None:
    index.similar(filled, QUERY, k=1)  # vectors that are held in memory are brought up to date below
    index.upsert(filled, [replace(make_embedded("short", vector=QUERY), version=4), replace(wordless("c1"), version=4)])
    assert found(index.similar(filled, QUERY, k=10))[0] == "short"
    assert "c1" not in found(index.similar(filled, QUERY, k=10))
    assert index.stats(filled).without_vector == 1
    index.upsert(filled, [replace(wordless(), version=6), DeletedCompany(id="c1", version=7)])
    assert set(found(index.similar(filled, QUERY, k=10))) == {"c0", "c2", "c3", "c4"}
    assert index.stats(filled).without_vector == 1


def test_zeros_without_the_hash_of_no_text_are_refused(index: CompanyIndex, live: str) -> None:
    [result] = index.upsert(live, [replace(wordless(), text_hash="of another text")])
    assert (result.outcome, result.reason) == (WriteOutcome.REJECTED, "the vector has norm 0; divide it by its norm")


def test_a_query_about_it_is_refused_by_name(index: CompanyIndex, filled: str) -> None:
    searcher = Searcher(index)
    about = [Anchor(company="c1"), Anchor(company="short")]
    reason = "the description of Short Inc. (short) has too few words to rank by"
    with pytest.raises(TooFewWords, match=re.escape(reason)):
        searcher.search(Question(anchors=about[1:]))
    for question in (Question(anchors=about), Question(anchors=about[:1], negatives=about[1:])):
        ranking = searcher.search(question)  # it is left out, as a company that nobody knows
        [left_out] = ranking.unresolved
        assert (left_out.reference, str(left_out.error).startswith(reason)) == ("short", True)
        assert [hit.company.id for hit in ranking.hits] == [hit.company.id for hit in searcher.search("c1").hits]
    with pytest.raises(TooFewWords, match="short"):
        searcher.locate(Question(anchors=about[:1]), "short")
    assert "short" not in [hit.company.id for hit in searcher.search("c1").hits]


def test_the_export_leaves_it_out(index: CompanyIndex, filled: str, tmp_path: Path) -> None:
    assert export_neighbours(index, index.live(), tmp_path / "n.parquet", k=10) == 20
    rows = pq.read_table(tmp_path / "n.parquet").to_pylist()
    assert "short" not in {row[column] for row in rows for column in ("company_id", "similar_id")}


def test_generations_with_it_are_copied_compared_and_judged(index: CompanyIndex, filled: str) -> None:
    other = add_candidate(index, "second")
    for batch in index.scan(filled):
        index.upsert(other, batch)
    labels = {"c0": {"c1": 2, "c2": 0, "short": 2}, "short": {"c1": 2, "c2": 0}}
    report = gate.check(index, old=filled, new=other, labels=labels)
    assert (report.anchors, report.difference) == (1, 0.0)
    assert not any("invalid vector" in reason or "fewer than first" in reason for reason in report.reasons)
    compared = drift.compare(index, old=filled, new=other, anchors=10, k=3, labels=labels)
    assert (compared.anchors, compared.overlap_mean) == (5, 1.0)
    assert compared.judged is not None
    assert compared.judged.anchors == 1
