from datetime import UTC, datetime

import numpy as np
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, WriteOutcome
from tests.contract.steps import found, outcomes
from tests.factories import make_embedded, make_generation, unit_vector

NOW = datetime(2025, 3, 1, tzinfo=UTC)


def test_a_company_is_read_as_it_was_written(index: CompanyIndex, live: str) -> None:
    written = make_embedded(
        "A.b_c:d-1",
        name='Überfirma "Ж" 株式会社 🚀',
        description="Line one\nline two\twith a tab and 'quotes'.",
        aliases=("Ü", "[]", '{"a": 1}'),
        domain="example.co.uk",
        country="DE",
        industry="Möbel & more",
        tags=("b", "a", "b"),
        attributes={"listed": True, "employees": 12, "growth": -0.25, "note": "x", "big": 2**60},
        language="de",
    )
    index.upsert(live, [written])
    read = index.get(live, [written.id])[written.id]
    assert read.company == written.company
    assert read.company.attributes["listed"] is True
    assert (read.version, read.text_hash, read.encoder_id) == (written.version, written.text_hash, written.encoder_id)
    assert (read.embedded_at, read.language) == (written.embedded_at, "de")
    assert read.vector.dtype == np.float32
    np.testing.assert_allclose(read.vector, written.vector, atol=1e-6)


def test_unknown_and_deleted_companies_are_left_out(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded("a"), DeletedCompany(id="b", version=3)])
    assert list(index.get(live, ["a", "b", "c", "no id!", ""])) == ["a"]
    assert index.get(live, []) == {}


@pytest.mark.parametrize("company_id", [".", ".."])
def test_a_company_whose_id_is_refused_today_is_read_and_deleted(
    index: CompanyIndex, live: str, company_id: str
) -> None:
    stored = make_embedded(company_id, name="Dot, Inc.", version=2)
    index.upsert(live, [stored, make_embedded("a")])
    assert index.get(live, [company_id])[company_id].company == stored.company
    assert index.resolve(live, company_id) == index.resolve(live, "Dot, Inc.") == [company_id]
    assert company_id in found(index.similar(live, stored.vector, k=2))
    assert sorted(document.id for batch in index.scan(live) for document in batch) == sorted([company_id, "a"])
    assert outcomes(index.upsert(live, [DeletedCompany(id=company_id, version=3)])) == [WriteOutcome.APPLIED]
    assert index.get(live, [company_id]) == {}
    assert DeletedCompany(id=company_id, version=3) in [document for batch in index.scan(live) for document in batch]


def test_ids_are_case_sensitive(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded("a"), make_embedded("A")])
    assert sorted(index.get(live, ["a", "A"])) == ["A", "a"]
    assert list(index.get(live, {"A"})) == ["A"]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 100])
def test_a_scan_reads_every_document_once_in_order_of_ids(index: CompanyIndex, live: str, batch_size: int) -> None:
    companies = [make_embedded(company_id) for company_id in ("b", "B", "a:1", "a", "0", "z")]
    index.upsert(live, [*companies, DeletedCompany(id="c", version=3)])
    batches = list(index.scan(live, batch_size=batch_size))
    documents = [document for batch in batches for document in batch]
    assert [document.id for document in documents] == sorted(["b", "B", "a:1", "a", "0", "z", "c"])
    assert max(len(batch) for batch in batches) <= batch_size
    assert [document for document in documents if isinstance(document, DeletedCompany)] == [
        DeletedCompany(id="c", version=3)
    ]
    first = next(document for document in documents if isinstance(document, EmbeddedCompany))
    assert first.company == companies[4].company


def test_a_scan_goes_on_after_an_id(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded(company_id) for company_id in "abcd"])
    assert [[document.id for document in batch] for batch in index.scan(live, after="b")] == [["c", "d"]]
    assert list(index.scan(live, after="d")) == []


def test_reading_no_documents_at_a_time_is_refused(index: CompanyIndex, live: str) -> None:
    with pytest.raises(InvalidInput, match="batch_size"):
        index.scan(live, batch_size=0)
    with pytest.raises(InvalidInput, match="batch_size"):
        index.versions(live, batch_size=0)


def test_compacting_changes_no_answer(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded(f"c{number:02}", country="FR" if number % 2 else "DE") for number in range(30)])
    index.upsert(live, [make_embedded(f"c{number:02}", version=4, name="Renamed") for number in range(10)])
    index.upsert(live, [DeletedCompany(id=f"c{number:02}", version=5) for number in range(5, 15)])
    french = [FieldFilter(field="country", any_of=("fr",))]

    def answers() -> tuple[object, ...]:
        return (
            index.generations(),
            index.stats(live),
            list(index.versions(live)),
            [getattr(document, "company", document) for batch in index.scan(live) for document in batch],
            index.resolve(live, "renamed"),
            index.find(live, "things", limit=50),
            found(index.similar(live, unit_vector(1), k=50)),
            found(index.similar(live, unit_vector(1), k=50, filters=french)),
        )

    before = answers()
    for _ in range(2):
        index.compact(live)
        assert answers() == before
    assert outcomes(index.upsert(live, [make_embedded("c05", version=4), make_embedded("new")])) == [
        WriteOutcome.SUPERSEDED,
        WriteOutcome.APPLIED,
    ]


def test_a_generation_that_is_not_served_can_be_compacted_too(index: CompanyIndex, live: str) -> None:
    index.create_generation(make_generation("second"))
    index.upsert("second", [make_embedded("a")])
    index.compact("second")
    index.compact(live)
    assert list(index.get("second", ["a"])) == ["a"]


def test_writing_goes_on_while_a_scan_is_read(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded(company_id) for company_id in "abcd"])
    batches = index.scan(live, batch_size=2)
    assert [document.id for document in next(batches)] == ["a", "b"]
    index.upsert(live, [make_embedded("a0"), make_embedded("e"), DeletedCompany(id="c", version=9)])
    assert [document.id for batch in batches for document in batch] == ["c", "d", "e"]


def test_stats_count_texts_in_other_languages(index: CompanyIndex, live: str) -> None:
    languages = {"a": "en", "b": "de", "c": "und", "d": "ja"}
    index.upsert(live, [make_embedded(company_id, language=language) for company_id, language in languages.items()])
    index.upsert(live, [DeletedCompany(id="d", version=5)])
    assert (index.stats(live).unread, index.stats(live).unread_ids) == (1, ("b",))
    assert index.stats(live).languages == {"de": 1, "en": 1, "und": 1}
    index.upsert(live, [make_embedded(company_id, language="de") for company_id in ("f", "e", "a0")])
    assert (index.stats(live).unread, index.stats(live).unread_ids) == (4, ("a0", "b", "e"))


def test_a_company_deleted_and_purged_between_two_searches_is_not_found(index: CompanyIndex, live: str) -> None:
    vector = unit_vector(1)
    index.upsert(live, [make_embedded("a", version=2, vector=vector), make_embedded("b", version=2)])
    assert found(index.similar(live, vector, k=1)) == ["a"]
    index.upsert(live, [DeletedCompany(id="a", version=3)])
    index.purge_deleted(live, before=NOW)
    assert found(index.similar(live, vector, k=2)) == ["b"]


def test_the_stored_version_of_a_tombstone_is_known_too(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded("a", version=4), DeletedCompany(id="b", version=7)])
    assert index.stored_versions(live, ["a", "b", "unknown", "no id!"]) == {"a": 4, "b": 7}
    assert index.stored_versions(live, []) == {}
