"""The order of companies in a search box."""

from contextlib import closing
from pathlib import Path

import pytest

from similarity.company import Company
from similarity.index.attributes import AttributeSchema, parse_schema
from similarity.index.sqlite import SqliteIndex
from similarity.search.names.suggestions import by_prominence, suggested_companies
from tests.contract.steps import add_live
from tests.factories import make_company, make_embedded

SIZES = parse_schema(["market_cap:ordinal=micro,mid,mega"], "market_cap")


def company(company_id: str, name: str, size: str = "", aliases: tuple[str, ...] = (), domain: str = "") -> Company:
    return make_company(
        company_id, name=name, aliases=aliases, domain=domain, attributes={"market_cap": size} if size else {}
    )


COMPANIES = [
    company("1", "Micropole", "Micro Cap"),
    company("2", "Micronet"),
    company("3", "Micron", "mid"),
    company("4", "Microsoft Corporation", "Mega Cap", aliases=("MSFT",)),
    company("5", "Nano Micro Tools", "mid"),
    company("6", "Chips of all kinds", "mega"),
    company("7", "Micro", "Micro Cap"),
]


def order(query: str, sizes: AttributeSchema = SIZES) -> str:
    return "".join(each.id for each in by_prominence(COMPANIES, query, sizes))


def test_large_companies_are_first_among_those_that_begin_as_typed() -> None:
    assert order("micro") == "7431256"


def test_a_whole_name_or_domain_is_before_larger_companies() -> None:
    assert order("Micropole").startswith("1")
    assert by_prominence([*COMPANIES, company("8", "Other", domain="micro.com")], "micro.com", SIZES)[0].id == "8"


def test_a_joined_word_such_as_group_is_before_an_equally_large_longer_word() -> None:
    companies = [company("1", "Citic", "mega"), company("2", "Citigroup Inc.", "mega"), company("3", "Citi Inc", "mid")]
    assert [each.id for each in by_prominence(companies, "citi", SIZES)] == ["2", "1", "3"]


def test_an_alias_counts_as_a_name() -> None:
    assert order("msf").startswith("4")


def test_words_of_a_description_keep_the_order_of_the_index() -> None:
    assert order("anvils") == "1234567"


def test_words_within_a_name_come_before_other_companies() -> None:
    assert order("tools nano").startswith("5")


@pytest.mark.parametrize("query", ["micro", "tools"])
def test_without_a_declared_size_nothing_changes(query: str) -> None:
    assert order(query, AttributeSchema()) == "1234567"


@pytest.mark.parametrize(
    ("query", "found"), [("nke", ["NKE", "nk"]), ("nikee", ["NKE"]), ("NK", ["nk", "NKE"]), (" ", []), ("qqq", [])]
)
def test_an_id_comes_first_and_a_typing_error_is_forgiven_where_nothing_else_is_found(
    tmp_path: Path, query: str, found: list[str]
) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        companies = make_embedded("NKE", name="Nike", aliases=("NK Sports",)), make_embedded("nk", name="NKE Bank")
        index.upsert("first", companies)
        assert [each.id for each in suggested_companies(index, index.live(), query, limit=5)] == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("delta airlines", ["DAL"]),
        ("Ryan Air", ["RYA", "AIR"]),
        ("air new", ["AIR"]),
        ("Cola Mix", ["KO", "CCEP"]),
        ("cola", ["CCEP", "KO"]),
    ],
)
def test_the_company_that_a_name_opens_is_the_first(tmp_path: Path, query: str, found: list[str]) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        companies = make_embedded("DAL", name="Delta Air Lines"), make_embedded("RYA", name="Ryanair")
        other = make_embedded("AIR", name="Air New Zealand", description="Competes with Ryan's airline.")
        cola = make_embedded("KO", name="The Cola Mix Company"), make_embedded("CCEP", name="Cola Mix Bottlers PLC")
        index.upsert("first", [*companies, other, *cola])
        assert [each.id for each in suggested_companies(index, index.live(), query, limit=5)] == found


def test_a_large_company_that_a_word_opens_is_before_the_one_with_this_id(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        index.declare(SIZES)
        forward = make_embedded("FORD", name="Forward Industries", attributes={"market_cap": "micro"})
        ford = make_embedded("F", name="Ford Motor Company", attributes={"market_cap": "mega"})
        index.upsert("first", [forward, ford])
        for query, found in (("ford", ["F", "FORD"]), ("FORD", ["FORD", "F"])):
            assert [each.id for each in suggested_companies(index, index.live(), query, limit=5)] == found


def test_words_of_a_description_come_before_names_that_only_begin_alike(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        bank = make_embedded("bank", name="Bath Bank", description="Lends money.")
        index.upsert("first", [bank, make_embedded("cell", name="Tianneng", description="Makes each battery.")])
        assert [each.id for each in suggested_companies(index, index.live(), "battery", limit=5)] == ["cell"]


def test_the_suffix_of_an_exchange_may_be_missing_where_no_name_matches(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        companies = make_embedded("DAL", name="Delta Air Lines"), make_embedded("DELTA.BK", name="Thai Electronics")
        index.upsert("first", [*companies, make_embedded("7203.T", name="Toyota")])
        for query, found in (("delta", "DAL"), ("7203", "7203.T"), ("Thai", "DELTA.BK")):
            assert suggested_companies(index, index.live(), query, limit=5)[0].id == found
