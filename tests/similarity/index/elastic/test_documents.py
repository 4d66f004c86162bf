import json
import unicodedata
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.index.elastic.documents import (
    document_id,
    document_of,
    filters_source,
    hit_of,
    same_content,
    source_of,
    vector_text,
)
from similarity.index.elastic.mapping import DERIVED, generation_mapping
from similarity.index.numbers import number_key
from similarity.index.validation import fold
from tests.factories import make_company, make_embedded, make_generation, unit_vector
from tests.similarity.index.elastic.companies import DOCUMENTS

Body = dict[str, Any]


def sent(document: EmbeddedCompany | DeletedCompany, *, packs_vectors: bool = True) -> Body:
    """The source, as the server reads it."""
    body: Body = json.loads(json.dumps(source_of(document, packs_vectors=packs_vectors), ensure_ascii=False))
    return body


def stored(document: EmbeddedCompany | DeletedCompany) -> Body:
    """The source as the server gives it back: without what is derived, the vector as numbers."""
    return {name: value for name, value in sent(document, packs_vectors=False).items() if name not in DERIVED}


@given(DOCUMENTS)
def test_a_document_comes_back_as_it_was_given(document: EmbeddedCompany) -> None:
    back = document_of(stored(document), make_generation())
    assert isinstance(back, EmbeddedCompany)
    assert replace(back, vector=document.vector) == document
    np.testing.assert_array_equal(back.vector, document.vector)
    hit = hit_of(document.id, stored(document), score=0.5)
    assert (hit.company, hit.version, hit.score) == (document.company, document.version, 0.5)
    assert (hit.embedded_at, hit.language) == (document.embedded_at, document.language)
    kinds = {name: type(value) for name, value in document.company.attributes.items()}
    assert {name: type(value) for name, value in back.company.attributes.items()} == kinds


@given(DOCUMENTS)
def test_every_field_that_is_sent_is_in_the_strict_mapping(document: EmbeddedCompany) -> None:
    mapping = generation_mapping(make_generation("first"), vectors="int8_hnsw")

    def check(body: Body, properties: Body) -> None:
        assert body.keys() <= properties.keys()
        for name, value in body.items():
            if isinstance(value, dict) and "properties" in properties[name]:
                check(value, properties[name]["properties"])

    check(sent(document), mapping["properties"])
    check(sent(DeletedCompany(id="a", version=1)), mapping["properties"])


def test_a_tombstone_has_neither_words_nor_vector_and_comes_back() -> None:
    tombstone = DeletedCompany(id="a", version=7)
    assert sent(tombstone) == {"id": "a", "version": 7, "deleted": True}
    assert document_of(stored(tombstone), make_generation()) == tombstone


def test_a_packed_vector_is_base64_of_big_endian_floats() -> None:
    vector = np.array([1, -2], dtype=np.float32)
    assert vector_text(vector, packed=True) == "P4AAAMAAAAA="
    assert vector_text(vector, packed=False) == [1.0, -2.0]


def test_a_time_of_another_zone_is_the_same_moment() -> None:
    there = datetime(2025, 3, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    source = sent(make_embedded("a", embedded_at=there))
    assert source["embedded_at"] == "2025-03-01T06:30:00.000001+00:00"
    back = document_of(stored(make_embedded("a", embedded_at=there)), make_generation())
    assert isinstance(back, EmbeddedCompany)
    assert back.embedded_at == there


def test_names_are_kept_as_they_are_compared_each_once() -> None:
    source = sent(make_embedded("a", name="ACME  Öl", aliases=("acme öl", "Bolt")))
    assert source["names"] == ["acme öl", "bolt"]
    assert source["shortest_name"] == 4


def test_filters_hold_what_is_there_as_it_is_compared() -> None:
    company = make_company(
        "a", country="FRANCE ", tags=("X", "x", "ﬁne"), attributes={"listed": True, "size": 10, "none": ""}
    )
    assert filters_source(company) == {
        "country": ["france"],
        "industry": [],
        "domain": [],
        "tags": ["fine", "x"],
        "attributes": {
            "listed": ["true"],
            "size": ["10"],
            "none": [],
            "size.number": number_key(10),
            "numbers.kept": "true",
        },
    }
    assert filters_source(make_company("a")) == {"country": [], "industry": [], "domain": [], "tags": []}


@given(DOCUMENTS)
def test_what_was_stored_has_the_content_that_was_sent(document: EmbeddedCompany) -> None:
    assert same_content(sent(document), stored(document))
    without_vector = stored(document)
    del without_vector["vector"]
    assert same_content(sent(document, packs_vectors=False), without_vector)


@given(DOCUMENTS, DOCUMENTS)
def test_two_companies_have_the_same_content_only_if_they_are_equal(
    one: EmbeddedCompany, other: EmbeddedCompany
) -> None:
    other = replace(other, company=replace(other.company, id=one.id))
    equal = repr(one.company) == repr(other.company) and one.text_hash == other.text_hash
    assert same_content(sent(one), stored(other)) is equal


@pytest.mark.parametrize(
    ("one", "other"), [(True, 1), (False, 0), (1, 1.0), ("1", 1), ("true", True), (0.0, -0.0)], ids=str
)
def test_values_of_other_kinds_are_other_content(one: Any, other: Any) -> None:
    first, second = (make_embedded("a", attributes={"x": value}) for value in (one, other))
    assert not same_content(sent(first), stored(second))


def test_vectors_and_times_of_embedding_do_not_count_as_content() -> None:
    document = make_embedded("a", attributes={"b": 1, "a": 2})
    later = replace(document, vector=unit_vector(99), embedded_at=document.embedded_at + timedelta(days=1), version=9)
    reordered = replace(later, company=replace(later.company, attributes={"a": 2, "b": 1}))
    assert same_content(sent(document), stored(reordered))


def test_a_tombstone_and_a_company_have_other_content() -> None:
    tombstone = DeletedCompany(id="a", version=2)
    assert same_content(sent(tombstone), stored(tombstone))
    assert not same_content(sent(tombstone), stored(make_embedded("a")))
    assert not same_content(sent(make_embedded("a")), stored(tombstone))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Zürich", "zurich"),
        ("Zu\u0308rich", "zurich"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ﬁne", "fine"),
        ("Crème Brûlée", "creme brulee"),
        ("İstanbul", "istanbul"),
        ("東京", "東京"),
        ("서울", "서울"),
        ("🏭", "🏭"),
        ("", ""),
    ],
)
def test_words_are_folded(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text())
def test_folding_a_text_does_not_depend_on_its_unicode_form(text: str) -> None:
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


def test_ids_of_documents_differ_however_the_parts_of_the_key_are_cut() -> None:
    assert len({document_id("a", "bc"), document_id("ab", "c"), document_id("abc")}) == 3
