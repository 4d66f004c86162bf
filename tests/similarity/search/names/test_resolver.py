"""References as people type them: tickers, names that are another company's id, names that descriptions tell."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from similarity.company import EmbeddedCompany
from similarity.index.attributes import parse_schema
from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from similarity.search.errors import AmbiguousCompany, UnknownCompany
from similarity.search.names.resolver import FoundCompany, Resolver, without_description
from tests.contract.steps import add_live
from tests.factories import make_embedded

LARGE = {"size": "large"}
COMPANIES = [
    make_embedded("HP", name="Helmerich & Payne, Inc."),
    make_embedded("HPQ", name="HP Inc.", attributes=LARGE),
    make_embedded("7203.T", name="Toyota Motor Corporation", attributes=LARGE),
    make_embedded("7203.KL", name="Wang-Zheng Berhad"),
    make_embedded("BRK-A", name="Berkshire Hathaway Inc.", attributes=LARGE),
    make_embedded("GOOG", name="Alphabet Inc.", description="Runs the Google search engine.", attributes=LARGE),
    make_embedded("zen", name="Zenter", description="Sold its slides to Google."),
]


@pytest.fixture
def resolver(tmp_path: Path) -> Iterator[Resolver]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first")
    index.declare(parse_schema(["size:ordinal=micro,small,large"], "size"))
    index.upsert("first", COMPANIES)
    yield Resolver(index, index.live())
    index.close()


@pytest.mark.parametrize(
    ("typed", "company_id"),
    [("7203", "7203.T"), ("7203.kl", "7203.KL"), ("NYSE: HPQ", "HPQ"), ("HPQ US", "HPQ"), ("HPQ US Equity", "HPQ")],
)
def test_a_ticker_is_found_with_or_without_its_exchange(resolver: Resolver, typed: str, company_id: str) -> None:
    assert resolver.company(typed).document.id == company_id


def test_an_id_wins_but_a_known_company_of_that_name_is_told(resolver: Resolver) -> None:
    found = resolver.company("HP")
    assert (found.document.id, [each.id for each in found.others]) == ("HP", ["HPQ"])
    assert resolver.company("HPQ").others == ()
    # Not for each of thousands of ids, because each is a search.
    [unsearched] = resolver.companies(["HP"], max_similar_searches=0).values()
    assert isinstance(unsearched, FoundCompany)
    assert unsearched.others == ()


@pytest.mark.parametrize(("typed", "suggested"), [("google", "GOOG"), ("BRK.B", "BRK-A")])
def test_who_may_be_meant_is_suggested_and_not_opened(resolver: Resolver, typed: str, suggested: str) -> None:
    with pytest.raises(UnknownCompany) as caught:
        resolver.company(typed)
    assert caught.value.suggestions[0].id == suggested


def test_a_name_in_another_script_may_be_here_in_latin_letters(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany, match="try its name in Latin letters"):
        resolver.company("腾讯")


def test_thousands_of_companies_are_read_in_parts_and_kept_without_descriptions(resolver: Resolver) -> None:
    twins = [make_embedded(f"twin{number}", name="Twin", description="x" * 1_000) for number in range(60)]
    resolver.index.upsert("first", twins)
    reads: list[int] = []

    class Reads:
        """Counts the companies of each read."""

        def __getattr__(self, name: str) -> object:
            return getattr(resolver.index, name)

        def get(self, generation: str, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
            reads.append(len(ids))
            return resolver.index.get(generation, ids)

    brief = replace(resolver, index=cast(CompanyIndex, Reads()), exact=True, shorten=without_description)
    ids = [each.id for each in twins]
    found = brief.companies([*ids, "Twin"], max_similar_searches=0)
    held = [len(each.document.company.description) for each in found.values() if isinstance(each, FoundCompany)]
    assert (max(reads), len(held), max(held)) == (50, 60, 1)
    ambiguous = found["Twin"]
    assert isinstance(ambiguous, AmbiguousCompany)
    assert {len(each.description) for each in ambiguous.candidates} == {1}
