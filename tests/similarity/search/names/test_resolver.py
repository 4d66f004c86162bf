"""References as people type them: tickers, names that are another company's id, names that descriptions tell."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection
from typing import cast

import pytest

from similarity.company import EmbeddedCompany, SimilarCompany
from similarity.index.attributes import AttributeSchema, parse_schema
from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex, reading, words
from similarity.search.duplicates import WIDELY_SHARED
from similarity.search.errors import AmbiguousCompany, UnknownCompany
from similarity.search.names.candidates import most_similar
from similarity.search.names.list_matching import RowMatcher
from similarity.search.names.resolver import FoundCompany, Resolver, without_description
from similarity.search.names.rows import ListedCompany, page_name
from tests.contract.steps import add_live
from tests.factories import make_company, make_embedded

LARGE = {"size": "large"}
SMALL = {"size": "small"}
MICRO = {"size": "micro"}
COMPANIES = [
    make_embedded("MARS.L", name="Marston's PLC", domain="marstons.co.uk", attributes=SMALL),
    make_embedded("BUD.AX", name="Buddy Technologies Limited", attributes=MICRO),
    make_embedded("BUD.V", name="Satori Resources Inc.", attributes=MICRO),
    make_embedded("BK.BO", name="Burger King India Limited", country="India", attributes=SMALL),
    make_embedded("MARUTI.BO", name="Maruti Suzuki India Limited", country="India", attributes=LARGE),
    make_embedded("3420.T", name="KFC, Ltd.", attributes=MICRO),
    make_embedded("9873.T", name="KFC Holdings Japan, Ltd.", attributes=SMALL),
    make_embedded("MUV2.BE", name="Munich Re", country="Germany"),
    make_embedded("MUV2.DE", name="Münchener Rück AG", domain="munichre.com", country="Germany", attributes=LARGE),
    make_embedded("03012.KL", name="BABA"),
    make_embedded("BABA.BA", name="Alibaba Group Holding Limited", attributes=LARGE),
    make_embedded("BSU.BE", name="BP PLC", country="Germany"),
    make_embedded("BP.L", name="BP p.l.c.", domain="bp.com", attributes=LARGE),
    make_embedded("MRK", name="Merck & Co., Inc.", attributes=LARGE),
    make_embedded("MRK.DE", name="MERCK Kommanditgesellschaft auf Aktien", attributes=LARGE),
    make_embedded("MS", name="Morgan Stanley", domain="morganstanley.com", attributes=LARGE),
    make_embedded("MSADF", name="MS&AD Insurance Group Holdings, Inc.", attributes=LARGE),
    make_embedded("CASTROL.BO", name="Castrol India Limited", domain="castrol.com", country="India", attributes=SMALL),
    make_embedded("AZN.V", name="AZN Capital Corp.", domain="azn.ca", attributes=MICRO),
    make_embedded("AZN.L", name="AstraZeneca PLC", attributes=LARGE),
    make_embedded("COKE", name="Coca-Cola Consolidated, Inc.", attributes=SMALL),
    make_embedded("KO", name="The Coca-Cola Company", attributes=LARGE),
    make_embedded("WAB", name="Westinghouse Air Brake", description="Brakes for subway cars.", attributes=LARGE),
    make_embedded("HNR", name="Hannover Rück SE", description="Insures space (and X-ray) risks.", attributes=LARGE),
    make_embedded("CCF", name="Chase Corporation", attributes=SMALL),
    make_embedded("JPM", name="JPMorgan Chase & Co.", attributes=LARGE),
    make_embedded("5274.KL", name="Hong Leong Capital Berhad"),
    make_embedded("5819.KL", name="Hong Leong Bank Berhad", domain="hlb.com", attributes=LARGE),
    make_embedded("HP", name="Helmerich & Payne, Inc."),
    make_embedded("HPQ", name="HP Inc.", attributes=LARGE),
    make_embedded("7203.T", name="Toyota Motor Corporation", attributes=LARGE),
    make_embedded("7203.KL", name="Wang-Zheng Berhad"),
    make_embedded("BRK-A", name="Berkshire Hathaway Inc.", attributes=LARGE),
    make_embedded("GOOG", name="Alphabet Inc.", description="Runs the Google search engine.", attributes=LARGE),
    make_embedded("CCEP.L", name="Coca-Cola Europacific Partners PLC", domain="cocacolaep.com", attributes=LARGE),
    make_embedded("PM", name="Philip Morris International Inc.", attributes=LARGE),
    make_embedded("TCS", name="The Container Store Group, Inc.", attributes=SMALL),
    make_embedded("TCS.IL", name="TCS Group Holding PLC", attributes=LARGE),
    make_embedded("TCS.BO", name="Tata Consultancy Services Limited", domain="tcs.com", attributes=LARGE),
    make_embedded("apple", name="Apple", description="Grows apples.", country="Chile", attributes=MICRO),
    make_embedded("AAPL", name="Apple Inc.", attributes=LARGE),
    make_embedded("PRU.L", name="Prudential plc", attributes=LARGE),
    make_embedded("PRU", name="Prudential Financial, Inc.", attributes=LARGE),
    make_embedded("ICICI", name="Prudential India Limited", country="India", attributes=LARGE),
    make_embedded("1724.KL", name="Paramount Corporation Berhad", attributes=LARGE),
    make_embedded("PGRE", name="Paramount Group, Inc.", attributes=SMALL),
    make_embedded("POU.TO", name="Paramount Resources Ltd.", attributes=SMALL),
    make_embedded("orion", name="Orion", attributes=LARGE),
    make_embedded("ORN", name="Orion Foods Inc.", attributes=LARGE),
    make_embedded("4812.T", name="Dentsu Soken Inc", attributes=LARGE),
    make_embedded("4324.T", name="Dentsu Group Inc.", attributes=SMALL),
    make_embedded("0175.HK", name="Geely Automobile Holdings", attributes=LARGE),
    make_embedded("BIDU", name="Baidu, Inc.", description="Builds cars with Geely.", attributes=LARGE),
    make_embedded("VOW.DE", name="Volkswagen AG", attributes=LARGE),
    make_embedded("VOW.OL", name="Vow ASA", attributes=SMALL),
    make_embedded("VOD.L", name="Vodafone Group PLC", attributes=LARGE),
    make_embedded("UNH", name="UnitedHealth", description="Its segment UnitedHealthcare insures.", attributes=LARGE),
    make_embedded("UHL", name="United Homes", attributes=SMALL),
    make_embedded("300750.SZ", name="Contemporary Amperex", domain="catlbattery.com", attributes=LARGE),
    make_embedded("CAT", name="Caterpillar Inc.", attributes=LARGE),
    make_embedded("2222.SR", name="Saudi Arabian Oil Company", domain="aramco.com", attributes=LARGE),
    make_embedded("2040.SR", name="Saudi Ceramic Company", attributes=SMALL),
    make_embedded("AWS.SI", name="GYP Properties Limited", attributes=MICRO),
    make_embedded("AMZN", name="Amazon.com, Inc.", description="Its segment AWS rents servers.", attributes=LARGE),
    make_embedded("7643.T", name="Daiichi Co.,Ltd.", attributes=MICRO),
    make_embedded("8750.T", name="Dai-ichi Life Holdings, Inc.", attributes=LARGE),
    make_embedded("magna-1", name="Magna", country="Malaysia"),
    make_embedded("magna-2", name="Magna", country="Chile"),
    make_embedded("MG.TO", name="Magna International, Inc.", attributes=LARGE),
    make_embedded("FCAU", name="Fiat Chrysler Automobiles N.V."),
    make_embedded("TATA", name="Tata Motors Limited", description="Builds cars with Fiat.", attributes=LARGE),
    make_embedded("PSX", name="Phillips 66", attributes=LARGE),
    make_embedded("yc-coin", name="Coin", domain="coin.org"),
    make_embedded("COIN", name="Coinbase Global, Inc.", domain="coinbase.com", attributes=LARGE),
    make_embedded("yc-base", name="Coinbase", domain="coinbase.com"),
    make_embedded("GOGO", name="Gogo Inc.", attributes=SMALL),
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
    [
        ("7203", "7203.T"),
        ("7203.kl", "7203.KL"),
        ("HPQ.N", "HPQ"),
        ("NYSE: HPQ", "HPQ"),
        ("HPQ US", "HPQ"),
        ("HPQ US Equity", "HPQ"),
    ],
)
def test_a_ticker_is_found_with_or_without_its_exchange(resolver: Resolver, typed: str, company_id: str) -> None:
    assert resolver.company(typed).document.id == company_id


@pytest.mark.parametrize("typed", ["Philip Morris (USA)", "Philip Morris, USA"])
def test_a_country_after_a_name_is_the_companys_country(resolver: Resolver, typed: str) -> None:
    assert resolver.company(typed).document.id == "PM"


def test_a_country_that_is_a_part_of_the_name_is_read_as_such(resolver: Resolver) -> None:
    assert resolver.company("Prudential (India)").document.id == "ICICI"


@pytest.mark.parametrize(("typed", "company_id"), [("HP Inc. (HPQ)", "HPQ"), ("Munich Re (MUV2.BE)", "MUV2.BE")])
def test_a_company_is_found_as_messages_write_it(resolver: Resolver, typed: str, company_id: str) -> None:
    for each in (resolver, replace(resolver, exact=True, shorten=without_description)):
        found = each.company(typed)
        assert (found.document.id, found.confidence) == (company_id, 1.0)


def test_an_id_in_brackets_after_another_name_is_not_opened(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany):
        replace(resolver, exact=True).company("Paramount (HPQ)")
    with pytest.raises(AmbiguousCompany) as both:
        resolver.company("Toyota Motor Corporation (HPQ)")
    assert [each.id for each in both.value.candidates] == ["7203.T", "HPQ"]


@pytest.mark.parametrize(
    "typed", ["AstraZeneca PLC (AZN)", "AstraZeneca (AZN)", "AstraZeneca PLC (LSE: AZN)", "AstraZeneca PLC (XXXX)"]
)
def test_a_ticker_in_brackets_may_lack_its_exchange(resolver: Resolver, typed: str) -> None:
    resolver.index.upsert("first", [make_embedded("AZN", name="Arizona Corp.")])  # begins with the same letter
    assert resolver.company(typed).document.id == "AZN.L"
    exact = replace(resolver, exact=True)
    if typed in {"AstraZeneca PLC (AZN)", "AstraZeneca PLC (LSE: AZN)"}:
        assert exact.company(typed).document.id == "AZN.L"
    else:
        with pytest.raises(UnknownCompany):
            exact.company(typed)


def test_an_unknown_website_suggests_the_company_whose_name_is_in_it(resolver: Resolver) -> None:
    resolver.index.upsert("first", [make_embedded("hc", name="HP Commerce")])
    with pytest.raises(UnknownCompany) as unknown:
        resolver.company("hp.com")
    assert [each.id for each in unknown.value.suggestions] == ["HPQ"]


def test_a_ticker_beside_a_name_is_not_that_of_another_legal_form(resolver: Resolver) -> None:
    pair = make_embedded("EQT", name="EQT Corporation"), make_embedded("EQT.ST", name="EQT AB")
    resolver.index.upsert("first", pair)
    for each in (resolver, replace(resolver, exact=True)):
        assert each.company("EQT AB (EQT)").document.id == "EQT.ST"
        assert each.company("EQT Corporation (EQT)").document.id == "EQT"
    found = resolver.company("Hong Leong Bank Berhad (AZN)")
    assert (found.document.id, [each.id for each in found.others]) == ("5819.KL", ["AZN.L"])


def test_a_shared_host_is_the_website_of_the_company_of_its_name_only(resolver: Resolver) -> None:
    resolver.index.upsert("first", [make_embedded("ETSY", name="Etsy, Inc.", domain="etsy.com")])
    resolver.index.upsert("first", [make_embedded("shop", name="Gnome Shop", domain="facebook.com")])
    assert resolver.company("https://www.etsy.com").document.id == "ETSY"
    for page in ("https://www.etsy.com/shop/knits", "etsy.com/shop/knits", "bob@etsy.com"):
        with pytest.raises(UnknownCompany):
            replace(resolver, exact=True).company(page)
    matcher = RowMatcher(resolver.index, "first", resolver.index.attributes())
    for exact in (True, False):
        with pytest.raises(UnknownCompany):
            replace(resolver, exact=exact).company("facebook.com")
    for page in ("facebook.com", "https://www.etsy.com/shop/knits"):
        assert matcher.match(ListedCompany(domain=page)).company is None


def test_a_website_of_a_company_without_a_size_does_not_win_over_names_that_begin_alike(resolver: Resolver) -> None:
    resolver.index.upsert("first", [make_embedded("nudge", name="NudgePad", domain="azure.com")])
    assert resolver.company("Azure").document.id == "nudge"
    resolver.index.upsert("first", [make_embedded("AZRE", name="Azure Power Limited", attributes=SMALL)])
    with pytest.raises(UnknownCompany, match="website of NudgePad") as failure:
        resolver.company("Azure")
    assert [each.id for each in failure.value.suggestions] == ["nudge", "AZRE"]
    resolver.index.upsert("first", [make_embedded("sky", name="Skylight", domain="blue.com", attributes=MICRO)])
    resolver.index.upsert("first", [make_embedded("BLU", name="Blue Power Limited", attributes=SMALL)])
    assert resolver.company("Blue").document.id == "sky"


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("AAPL.MX", ["AAPL"]),
        ("MARUTI.NS", ["MARUTI.BO"]),
        ("BUDL.AX", ["BUD.AX"]),
        ("PETR4", ["PETR3.SA"]),
        ("BRK.B", ["BRK-A"]),
        ("TCS.NS", ["TCS.BO", "TCS.IL", "TCS"]),
    ],
)
def test_a_ticker_on_another_exchange_or_of_another_class_is_suggested(
    resolver: Resolver, typed: str, suggested: list[str]
) -> None:
    resolver.index.upsert("first", [make_embedded("PETR3.SA", name="Petrobras"), make_embedded("PTR", name="Petra 4")])
    with pytest.raises(UnknownCompany) as failure:
        resolver.company(typed)
    assert [each.id for each in failure.value.suggestions] == suggested


def test_a_joined_word_such_as_group_is_nearer_than_a_longer_word(resolver: Resolver) -> None:
    named = {"CPF": "Citic Limited", "D": "Citigroup Inc."}
    resolver.index.upsert("first", [make_embedded(i, name=name, attributes=LARGE) for i, name in named.items()])
    with pytest.raises(UnknownCompany) as failure:
        resolver.company("citi")
    assert [each.id for each in failure.value.suggestions] == ["D", "CPF"]


@pytest.mark.parametrize(
    ("typed", "company_id"),
    [
        ("LON:ZQ", "ZQ.L"),
        ("LON:ZQ.L", "ZQ.L"),
        ("LON:ZQ.A", "ZQ-A.L"),
        ("ZQ LN", "ZQ.L"),
        ("ZQ LN Equity", "ZQ.L"),
        ("TSE:ZQ", "ZQ.TO"),
        ("NYSE:ZQ", "ZQ"),
    ],
)
def test_a_ticker_with_an_exchange_opens_the_listing_on_it(resolver: Resolver, typed: str, company_id: str) -> None:
    names = {"ZQ": "Plane Makers", "ZQ.L": "Ship Yards", "ZQ.TO": "Phone Lines", "ZQ-A.L": "Class A"}
    resolver.index.upsert("first", [make_embedded(each, name=name) for each, name in names.items()])
    assert resolver.company(typed).document.id == company_id


def test_a_ticker_on_an_exchange_without_it_is_only_suggested(resolver: Resolver) -> None:
    resolver.index.upsert("first", [make_embedded("ZQ", name="Plane Makers"), make_embedded("ZQ.L", name="Ship Yards")])
    with pytest.raises(UnknownCompany) as failure:
        resolver.company("ASX:ZQ")
    assert [each.id for each in failure.value.suggestions] == ["ZQ", "ZQ.L"]


@pytest.mark.parametrize(
    "typed",
    ["https://www.crunchbase.com/organization/zork-labs", "twitter.com/zork_labs", "https://x.com/@zork-labs?lang=en"],
)
def test_the_address_of_a_profile_stands_for_the_name_in_it(typed: str) -> None:
    assert page_name(typed) == "zork labs"


@pytest.mark.parametrize(
    "typed",
    [
        "linkedin.com/company/9873",
        "https://x.com/HP/status/12",
        "https://x.com/home",
        "facebook.com/pages/",
        "a.wordpress.com/HP",
    ],
)
def test_an_address_that_names_no_company_is_no_name(typed: str) -> None:
    assert page_name(typed) == ""


@pytest.mark.parametrize(
    "typed",
    [
        "https://www.linkedin.com/company/morgan-stanley/?trk=x",
        "https://en.wikipedia.org/wiki/Morgan_Stanley",
        "de.wikipedia.org/wiki/Morgan%20Stanley",
        "https://www.linkedin.com/company/morgan-stanley/about/",
        "https://www.ycombinator.com/companies/morgan-stanley",
    ],
)
def test_the_address_of_a_page_on_a_shared_host_means_the_company_in_it(resolver: Resolver, typed: str) -> None:
    resolver.index.upsert("first", [make_embedded("in", name="Vidpresso", domain="linkedin.com")])
    assert resolver.company(typed).document.id == "MS"
    with pytest.raises(UnknownCompany):  # a page there is not the website
        resolver.company("linkedin.com")
    matcher = RowMatcher(resolver.index, "first", resolver.index.attributes())
    for row in (ListedCompany(domain=typed), ListedCompany(name="Morgan Stanley", domain=typed)):
        found = matcher.match(row).company
        assert found is not None
        assert found.id == "MS"


def test_an_id_wins_but_a_known_company_of_that_name_is_told(resolver: Resolver) -> None:
    found = resolver.company("HP")
    assert (found.document.id, [each.id for each in found.others]) == ("HP", ["HPQ"])
    assert resolver.company("HPQ").others == ()
    # Not for each of thousands of ids, because each is a search.
    [unsearched] = resolver.companies(["HP"], max_similar_searches=0).values()
    assert isinstance(unsearched, FoundCompany)
    assert unsearched.others == ()


@pytest.mark.parametrize(("typed", "others"), [("TCS", {"TCS.IL", "TCS.BO"}), ("apple", {"AAPL"})])
def test_an_id_warns_of_larger_companies_of_that_name_or_website(
    resolver: Resolver, typed: str, others: set[str]
) -> None:
    found = resolver.company(typed)
    assert (found.document.id, {each.id for each in found.others}) == (typed, others)


def test_a_name_that_begins_as_typed_is_suggested_before_a_shorter_one() -> None:
    companies = [make_company("star", name="Star"), make_company("SBUX", name="Starbucks Corporation")]
    assert [each.id for each in most_similar("starb", companies, AttributeSchema())] == ["SBUX", "star"]


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("google", "GOOG"),
        ("google.com", "GOOG"),
        ("www.toyota.co.jp", "7203.T"),
        ("BRK.B", "BRK-A"),
        ("BRK B", "BRK-A"),
        ("BRK/B", "BRK-A"),
        ("GOOGL", "GOOG"),
        ("VOW3.DE", "VOW.DE"),
        ("HEL:VOD", "VOD.L"),
        ("United Healthcare", "UNH"),
        ("CATL", "300750.SZ"),
        ("saudi aramco", "2222.SR"),
        ("AWS", "AMZN"),
        ("Fiat", "FCAU"),
        ("Phillips 67", "PSX"),
    ],
)
def test_who_may_be_meant_is_suggested_and_not_opened(resolver: Resolver, typed: str, suggested: str) -> None:
    with pytest.raises(UnknownCompany) as caught:
        resolver.company(typed)
    assert caught.value.suggestions[0].id == suggested


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [("Mars", ["MARS.L"]), ("BUD", ["BUD.AX", "BUD.V"]), ("Burger King", ["BK.BO"]), ("Castrol", ["CASTROL.BO"])],
)
def test_a_ticker_or_a_local_name_of_a_smaller_company_is_suggested(
    resolver: Resolver, typed: str, suggested: list[str]
) -> None:
    with pytest.raises(UnknownCompany) as caught:
        resolver.company(typed)
    assert [each.id for each in caught.value.suggestions][: len(suggested)] == suggested


def test_a_row_that_names_the_country_is_matched_with_the_local_name(resolver: Resolver) -> None:
    matcher = RowMatcher(resolver.index, "first", resolver.index.attributes())
    assert matcher.match(ListedCompany("Burger King")).company is None
    of_country = matcher.match(ListedCompany("Burger King", country="IN")).company
    large = matcher.match(ListedCompany("Maruti Suzuki")).company
    assert (of_country and of_country.id, large and large.id) == ("BK.BO", "MARUTI.BO")


@pytest.mark.parametrize(
    ("typed", "candidates"),
    [
        ("KFC", {"3420.T", "9873.T"}),
        ("AZN", {"AZN.V", "AZN.L"}),
        ("Hong Leong", {"5274.KL", "5819.KL"}),
        ("Merck KGaA", {"MRK", "MRK.DE"}),
        ("ms", {"MS", "MSADF"}),
        ("Chase", {"CCF", "JPM"}),
        ("Dai-ichi", {"7643.T", "8750.T"}),
        ("Magna", {"magna-1", "magna-2", "MG.TO"}),
    ],
)
def test_a_small_company_is_not_opened_if_a_larger_one_may_be_meant(
    resolver: Resolver, typed: str, candidates: set[str]
) -> None:
    with pytest.raises(AmbiguousCompany) as caught:
        resolver.company(typed)
    assert sorted(each.id for each in caught.value.candidates) == sorted(candidates)  # each once


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("KFC", {"3420.T", "9873.T"}),
        ("BP plc", {"BSU.BE", "BP.L"}),
        ("coke", {"COKE", "KO"}),
        ("ms", {"MS", "MSADF"}),
        ("TCS", {"TCS", "TCS.IL", "TCS.BO"}),
        ("apple", {"apple", "AAPL"}),
        ("Dai-ichi", {"7643.T", "8750.T"}),
        ("Magna", {"magna-1", "magna-2", "MG.TO"}),
        ("COIN", {"yc-coin", "COIN"}),
        ("BABA", {"03012.KL", "BABA.BA"}),
        ("AZN", {"AZN.V", "AZN.L"}),
        ("Goog", {"GOGO", "GOOG"}),
    ],
)
def test_a_row_is_not_matched_if_another_large_company_may_be_meant(
    resolver: Resolver, name: str, candidates: set[str]
) -> None:
    row = RowMatcher(resolver.index, "first", resolver.index.attributes()).match(ListedCompany(name))
    assert (row.company, {each.id for each in row.candidates}) == (None, candidates)


def test_an_id_may_be_the_name_of_a_company_as_large(resolver: Resolver) -> None:
    """TMX is Terminix, and may mean TMX Group."""
    small = {"size": "small"}
    tmx = (
        make_embedded("TMX", name="Terminix Holdings", attributes=small),
        make_embedded("X.TO", name="TMX Ltd", attributes=small),
    )
    resolver.index.upsert("first", tmx)
    found = resolver.company("TMX")
    assert (found.document.id, [each.id for each in found.others]) == ("TMX", ["X.TO"])
    match = RowMatcher(resolver.index, "first", resolver.index.attributes()).match(ListedCompany("TMX"))
    assert (match.company, [each.id for each in match.candidates]) == (None, ["TMX", "X.TO"])


@pytest.mark.parametrize(
    ("typed", "opened", "other"),
    [("Munich Re", "MUV2.DE", "MUV2.BE"), ("BP plc", "BP.L", "BSU.BE"), ("BABA", "BABA.BA", "03012.KL")],
)
def test_a_large_company_wins_over_a_listing_without_size_and_website(
    resolver: Resolver, typed: str, opened: str, other: str
) -> None:
    found = resolver.company(typed)
    assert (found.document.id, [each.id for each in found.others], found.confidence) == (opened, [other], 0.9)


def test_a_large_company_is_found_behind_many_names_that_only_begin_with_the_word(resolver: Resolver) -> None:
    resolver.index.upsert("first", [make_embedded(f"g{number}", name=f"Green {number}") for number in range(60)])
    resolver.index.upsert(
        "first",
        [
            make_embedded("V3U.F", name="GREE, Inc.", attributes=MICRO),
            make_embedded("GREE", name="Gree Electric", attributes=LARGE),
        ],
    )
    with pytest.raises(AmbiguousCompany) as caught:
        resolver.company("Gree")
    assert sorted(each.id for each in caught.value.candidates) == ["GREE", "V3U.F"]


def test_of_two_records_of_one_company_the_large_one_is_opened(resolver: Resolver) -> None:
    found = resolver.company("coinbase")
    assert (found.document.company.id, found.others) == ("COIN", ())


def test_a_ticker_warns_of_a_larger_company_whose_name_begins_its_companys_name(resolver: Resolver) -> None:
    assert [each.id for each in resolver.company("Coke").others] == ["KO"]
    assert resolver.company("hpq").others == ()


@pytest.mark.parametrize(("typed", "described"), [("google", "GOOG"), ("catl", "300750.SZ")])
def test_a_suggestion_by_a_description_or_website_says_so(resolver: Resolver, typed: str, described: str) -> None:
    with pytest.raises(UnknownCompany, match=rf"the description or website of .* \({described}\) mentions it"):
        resolver.company(typed)


def test_a_word_that_a_description_has_in_small_letters_is_no_name(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany) as caught:
        resolver.company("Subway")  # "brakes for subway cars"
    assert "WAB" not in {each.id for each in caught.value.suggestions}


def test_a_brand_is_found_after_many_small_companies_that_mention_it(resolver: Resolver) -> None:
    small = [make_embedded(f"s{number}", name=f"Shop {number}", description="Uses LinkedIn.") for number in range(60)]
    owner = make_embedded("MSFT", name="Microsoft", description=f"Owns LinkedIn. {'Sells it. ' * 50}", attributes=LARGE)
    resolver.index.upsert("first", [*small, owner])
    with pytest.raises(UnknownCompany) as caught:
        resolver.company("linkedin")
    assert [each.id for each in caught.value.suggestions] == ["MSFT"]


@pytest.mark.parametrize(
    ("typed", "company_id", "confidence"),
    [("cocacola", "KO", 0.98), ("cocacola co", "KO", 0.98), ("philipmorris", "PM", 0.9)],
)
def test_a_name_in_one_word_is_compared_with_names_of_several(
    resolver: Resolver, typed: str, company_id: str, confidence: float
) -> None:
    found = resolver.company(typed)
    assert (found.document.id, found.confidence) == (company_id, confidence)


@pytest.mark.parametrize(
    ("typed", "opened", "others"),
    [
        ("Prudential", "PRU.L", ["PRU"]),
        ("Paramount", "1724.KL", ["PGRE"]),
        ("ORION", "orion", ["ORN"]),
        ("Dentsu", "4812.T", ["4324.T"]),
        ("Geely", "0175.HK", []),
    ],
)
def test_companies_as_large_whose_names_begin_with_the_word_are_told(
    resolver: Resolver, typed: str, opened: str, others: list[str]
) -> None:
    found = resolver.company(typed)
    assert (found.document.id, [each.id for each in found.others]) == (opened, others)


def test_a_word_in_a_list_is_no_ticker(resolver: Resolver) -> None:
    matcher = RowMatcher(resolver.index, "first", resolver.index.attributes())
    found = [matcher.match(ListedCompany(name)).company for name in ("HPQ", "hpq", "Hpq")]
    assert [each and each.id for each in found] == ["HPQ", "HPQ", None]


def test_a_row_is_matched_and_has_companies_as_large_as_others(resolver: Resolver) -> None:
    match = RowMatcher(resolver.index, "first", resolver.index.attributes()).match(ListedCompany("Prudential"))
    assert (match.company and match.company.id, [each.id for each in match.others]) == ("PRU.L", ["PRU"])


def test_a_row_in_one_word_is_matched_with_a_name_of_several_unless_it_has_a_legal_form(resolver: Resolver) -> None:
    matcher = RowMatcher(resolver.index, "first", resolver.index.attributes())
    found = matcher.match(ListedCompany("cocacola")).company
    assert found is not None
    assert found.id == "KO"
    assert matcher.match(ListedCompany("CocaCola Co., Ltd.")).company is None


def test_a_row_that_may_mean_an_absent_group_says_what_to_do(resolver: Resolver) -> None:
    match = RowMatcher(resolver.index, "first", resolver.index.attributes()).match(ListedCompany("Burger King Inc."))
    assert match.miss.endswith("is not here under that name; choose BK.BO if it is meant, or add the group")


def test_parts_of_a_name_in_a_description_suggest_no_company(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany) as caught:
        resolver.company("SpaceX")
    assert caught.value.suggestions == ()


def test_a_domain_of_many_unlike_companies_opens_none(resolver: Resolver) -> None:
    sizes = [LARGE, *[SMALL] * (WIDELY_SHARED - 1)]
    companies = [
        make_embedded(
            f"s{number:02}", name=f"Wiwi {'abcdefghijklmnopqrst'[number] * 3}", domain="rh.com", attributes=size
        )
        for number, size in enumerate(sizes)
    ]
    resolver.index.upsert("first", companies)
    with pytest.raises(AmbiguousCompany, match=f"{WIDELY_SHARED} companies match 'rh.com'"):
        resolver.company("rh.com")
    matcher = RowMatcher(resolver.index, "first", resolver.index.attributes())
    assert matcher.match(ListedCompany(domain="rh.com")).company is None
    assert matcher.match(ListedCompany("Wiwi ccc Ltd", "rh.com")).company == companies[2].company
    assert matcher.match(ListedCompany("Zenter Inc", "rh.com")).company == resolver.company("zen").document.company


def test_the_companies_of_a_website_are_read_once_for_many_of_its_pages(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver.index.upsert("first", [make_embedded(f"shop{number}", domain="shop.com") for number in range(30)])
    reads: list[int] = []

    def counted(connection: Connection, scores: Mapping[int, float]) -> list[SimilarCompany]:
        reads.append(len(scores))
        return reading.companies(connection, scores)

    monkeypatch.setattr(words, "companies", counted)
    get = resolver.index.get

    def counted_get(generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        found = get(generation, ids)
        reads.append(len(found))
        return found

    monkeypatch.setattr(resolver.index, "get", counted_get)
    pages = [f"shop.com/{number}" for number in range(1_000)]
    found = replace(resolver, exact=True).companies(pages, max_similar_searches=0)
    assert {str(error).partition(" match")[0] for error in found.values()} == {"30 companies"}
    assert sum(reads) <= 30 + 20


def test_a_name_in_another_script_may_be_here_in_latin_letters(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany, match="try its name in Latin letters"):
        resolver.company("腾讯")
    with pytest.raises(UnknownCompany, match="or a similar one; describe"):
        resolver.company("1000")


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
