"""Parts of the names of the 1,279 companies of the sample, which other companies have in their names too."""

from contextlib import closing
from pathlib import Path

import pytest

from similarity.index.sqlite import SqliteIndex
from similarity.search.countries import countries_differ, country_code, is_same_country
from similarity.search.errors import AmbiguousCompany, UnknownCompany
from similarity.search.names.list_matching import RowMatcher
from similarity.search.names.resolver import Resolver
from similarity.search.names.rows import ListedCompany
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.similarity.search.conftest import GENERATION, SIZE


@pytest.mark.parametrize(
    "typed",
    [
        "bank of china",
        "commercial bank of china",
        "bank of india",
        "société générale",
        "general",
        "american",
        "china",
        "first",
        "national",
        "semiconductor",
        "motor",
        "oil",
        "petroleum",
        "digital",
        "data",
        "home",
        "black",
        "saudi",
        "singapore",
        "hong kong",
        "united states",
        "sumitomo",
    ],
)
def test_common_words_of_a_name_open_no_company(sample: SqliteIndex, typed: str) -> None:
    found = Resolver(sample, GENERATION).companies([typed], max_similar_searches=1)[typed]
    assert isinstance(found, UnknownCompany | AmbiguousCompany)
    assert found.candidates if isinstance(found, AmbiguousCompany) else found.suggestions


@pytest.mark.parametrize(
    ("typed", "company_id"),
    [
        ("bank of america", "bank-of-america"),
        ("general electric", "ge-aerospace"),
        ("china mobile", "china-mobile"),
        ("american express", "american-express"),
        ("delta", "delta-air-lines"),
        ("philip morris", "philip-morris-international"),
        ("british american", "bat"),
        ("united parcel", "ups"),
        ("exxon", "exxonmobil"),
        ("vuitton", "lvmh"),
        ("hathaway", "berkshire-hathaway"),
        ("procter", "procter-gamble"),
        ("squibb", "bristol-myers-squibb"),
    ],
)
def test_distinctive_words_of_a_name_open_its_company(sample: SqliteIndex, typed: str, company_id: str) -> None:
    assert Resolver(sample, GENERATION).company(typed).document.id == company_id


@pytest.mark.parametrize(("typed", "company_id"), [("exxn", "exxonmobil"), ("bristl", "bristol-myers-squibb")])
def test_a_misspelt_first_word_of_a_name_suggests_it(sample: SqliteIndex, typed: str, company_id: str) -> None:
    with pytest.raises(UnknownCompany) as refused:
        Resolver(sample, GENERATION).company(typed)
    assert refused.value.suggestions[0].id == company_id


@pytest.mark.parametrize("typed", ["theranos", "bundesbank", "asdfghjkl", "zq"])
def test_without_a_similar_name_companies_that_begin_alike_are_suggested(sample: SqliteIndex, typed: str) -> None:
    with pytest.raises(UnknownCompany, match=r"or a similar one.*; describe what it does") as refused:
        Resolver(sample, GENERATION).company(typed)
    assert refused.value.is_unlike_all
    assert all(each.name[:2].lower() == typed[:2] for each in refused.value.suggestions)


@pytest.mark.parametrize(
    ("name", "country", "company_id"),
    [
        ("Société Générale", "France", None),
        ("Société Générale", "", None),
        ("Bank of China", "China", None),
        ("United Parcel", "USA", "ups"),
        ("United Parcel", "U.S.", "ups"),
        ("United Parcel", "", "ups"),
        ("United Parcel", "somewhere", "ups"),
        ("United Parcel", "Canada", None),
        ("British American", "UK", "bat"),
        ("British American", "GB", "bat"),
        ("British American", "Indonesia", None),
    ],
)
def test_a_row_is_not_matched_with_a_part_of_a_name_in_another_country(
    sample: SqliteIndex, name: str, country: str, company_id: str | None
) -> None:
    match = RowMatcher(sample, GENERATION.name).match(ListedCompany(name=name, country=country))
    assert (match.company.id if match.company else None) == company_id
    assert bool(match.candidates) is (company_id is None)


@pytest.mark.parametrize(
    ("row", "candidates"),
    [
        (ListedCompany("Nike Inc", country="Germany"), ["nike"]),
        (ListedCompany("nike", country="Germany"), ["nike"]),
        (ListedCompany("Nike", "adidas-group.com"), ["adidas", "nike"]),
        (ListedCompany("Bosch"), ["bosch-india", "bosch-large"]),
        (ListedCompany("Ford"), ["ford-motor", "FORD"]),
        (ListedCompany("Bayer"), ["bayer-small", "bayer-large"]),
    ],
)
def test_contradicted_and_ambiguous_rows_of_a_list_are_candidates(
    tmp_path: Path, row: ListedCompany, candidates: list[str]
) -> None:
    documents = [
        make_embedded("nike", name="NIKE, Inc.", domain="nike.com", country="United States"),
        make_embedded("adidas", name="adidas AG", domain="adidas-group.com", country="Germany"),
        make_embedded("bosch-india", name="Bosch Limited", country="India"),
        make_embedded("bosch-large", name="Bosch Tools AG", country="Germany", attributes={"size": "mega"}),
        make_embedded("NIKE", name="Nikko Metals"),
        make_embedded("FORD", name="Forward Tools"),
        make_embedded("ford-motor", name="Ford Motor Company", attributes={"size": "mega"}),
        make_embedded("bayer-small", name="BAYER"),
        make_embedded("bayer-large", name="Bayer AG", attributes={"size": "mega"}),
    ]
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        index.upsert("first", documents)
        matcher = RowMatcher(index, "first", SIZE)
        match = matcher.match(row)
        assert matcher.match(ListedCompany("NIKE", "nike.com", "Germany")).company == documents[0].company
        assert matcher.match(ListedCompany("Bosch Ltd")).company == documents[2].company
        assert matcher.match(ListedCompany("Nike", country="USA")).company == documents[0].company
    assert (match.company, [each.id for each in match.candidates]) == (None, candidates)
    assert match.miss


def test_countries_have_many_spellings() -> None:
    for spelling in ("us", "USA", "U.S.A.", "the United States of America", "États-Unis"):
        assert country_code(spelling) == "US"
        assert is_same_country(spelling, "United States")
    assert countries_differ("UK", "Schweiz")
    for one, other in (("UK", "Great Britain"), ("China", "Hong Kong"), ("China", "Cayman Islands"), ("", "China")):
        assert not countries_differ(one, other)
    assert not countries_differ("Bavaria", "Germany")  # not recognised
    assert is_same_country("Bavaria", "bavaria")
    assert not is_same_country("", "")
