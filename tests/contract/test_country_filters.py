"""Filters on the country in any spelling, on each store."""

import pytest

from similarity.index.protocol import CompanyIndex
from similarity.search.queries.filter_texts import parse_filters
from similarity.search.queries.question import Anchor, Question
from similarity.search.searcher import Searcher
from tests.factories import make_embedded

COUNTRIES = {"a": "United States", "b": "usa", "c": "Germany", "d": "Atlantis", "e": ""}


@pytest.mark.parametrize(
    ("text", "expected", "warned"),
    [
        ("country=USA", "ab", False),
        ("country=U.S.", "ab", False),
        ("country=vereinigte staaten", "ab", False),
        ("country=Deutschland", "c", False),
        ("country!=US", "cde", False),
        ("country=atlantis", "d", False),
        ("country=France", "", True),
    ],
)
def test_a_country_is_found_by_any_of_its_spellings(
    index: CompanyIndex, live: str, text: str, expected: str, warned: bool
) -> None:
    companies = [make_embedded(name, country=country) for name, country in COUNTRIES.items()]
    index.upsert(live, [*companies, make_embedded("anchor", country="Peru")])
    index.stats(live)
    ranking = Searcher(index).search(Question(anchors=[Anchor(company="anchor")], filters=parse_filters([text])))
    assert sorted(hit.company.id for hit in ranking.hits) == list(expected)
    assert any("no company has the value" in each for each in ranking.warnings) is warned
