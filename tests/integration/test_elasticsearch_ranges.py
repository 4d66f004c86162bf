"""Ranges of numbers where an older release, which kept no keys of numbers, wrote some of the companies."""

from collections.abc import Mapping
from typing import Any

import pytest

from similarity.company import Company, DeletedCompany, EmbeddedCompany
from similarity.errors import InvalidFilter
from similarity.index.elastic import ElasticIndex, documents
from similarity.index.filters import FieldFilter
from similarity.index.protocol import WriteOutcome
from tests.contract.steps import add_candidate, add_live, found, outcomes
from tests.factories import make_embedded, unit_vector
from tests.integration.elasticsearch_place import Place

pytestmark = pytest.mark.integration

BIG = FieldFilter(field="attributes.size", at_least=5)
TEN = FieldFilter(field="attributes.size", any_of=("10",))


def written_before(company: Company) -> dict[str, Any]:
    """What the release before ranges derived for filters."""
    fields = filters_source(company)
    attributes: Mapping[str, Any] = fields.get("attributes", {})
    kept = {name: value for name, value in attributes.items() if "." not in name}
    return {**fields, "attributes": kept} if kept else fields


filters_source = documents.filters_source


@pytest.fixture
def old_release(place: Place, monkeypatch: pytest.MonkeyPatch) -> ElasticIndex:
    """An index with a live generation that the release before ranges has written three companies to."""
    index = place.open()
    add_live(index, "first")
    with monkeypatch.context() as before:
        before.setattr(documents, "filters_source", written_before)
        index.upsert("first", companies())
    return index


def companies(version: int = 2) -> list[EmbeddedCompany]:
    return [
        make_embedded("big", version=version, attributes={"size": 10}),
        make_embedded("text", version=version, attributes={"size": "10"}),
        make_embedded("bare", version=version),
    ]


def ids(index: ElasticIndex, generation: str, *filters: FieldFilter) -> list[str]:
    return sorted(found(index.similar(generation, unit_vector(1), k=5, filters=filters)))


def test_a_range_over_companies_of_an_older_release_is_refused_and_all_else_is_answered(
    old_release: ElasticIndex,
) -> None:
    with pytest.raises(InvalidFilter, match=r"'first' holds companies .* \(similarity generations copy, which"):
        ids(old_release, "first", BIG)
    assert ids(old_release, "first", TEN) == ["big", "text"]
    assert ids(old_release, "first") == ["bare", "big", "text"]


def test_one_company_of_an_older_release_is_enough_to_refuse(old_release: ElasticIndex) -> None:
    old_release.upsert("first", companies(version=4)[:1])
    with pytest.raises(InvalidFilter, match="would miss them"):
        ids(old_release, "first", BIG)


def test_ranges_are_answered_as_soon_as_every_company_with_attributes_is_written_again(
    old_release: ElasticIndex,
) -> None:
    written = old_release.upsert("first", [companies(version=4)[0], DeletedCompany(id="text", version=5)])
    assert outcomes(written) == [WriteOutcome.APPLIED] * 2
    assert ids(old_release, "first", BIG) == ["big"]


def test_a_copy_answers_ranges(old_release: ElasticIndex) -> None:
    add_candidate(old_release, "second")
    for batch in old_release.scan("first"):
        old_release.upsert("second", batch)
    assert ids(old_release, "second", BIG) == ["big"]
    assert ids(old_release, "second", TEN) == ["big", "text"]
