"""References as people type them, on both indexes."""

import pytest

from similarity.errors import InvalidInput
from similarity.index.attributes import AttributeSchema, parse_schema
from similarity.index.protocol import CompanyIndex
from similarity.search.errors import AmbiguousCompany, UnknownCompany
from similarity.search.names.resolver import FoundCompany, Resolver
from tests.contract.test_words import AWKWARD
from tests.factories import make_embedded

SIZE = parse_schema(["cap:ordinal=nano,small,large,mega"], size="cap")
COMPANIES = (
    ("NVDA", "NVIDIA Corporation", "nvidia.com", (), "Mega Cap"),
    ("TSM.BA", "Taiwan Semiconductor Manufacturing Company Limited", "tsmc.com", (), "Mega Cap"),
    ("BMW.DE", "Bayerische Motoren Werke AG", "bmwgroup.com", ("BMW",), "Large Cap"),
    ("HM-B.ST", "H & M Hennes & Mauritz AB (publ)", "hmgroup.com", (), "Mega Cap"),
    ("NESN.SW", "Nestlé S.A.", "nestle.com", (), "Mega Cap"),
    ("7203.T", "Toyota Motor Corporation", "global.toyota", (), "Mega Cap"),
    ("3116.T", "Toyota Boshoku Corporation", "toyota-boshoku.com", (), "Large Cap"),
    ("F", "Ford Motor Company", "ford.com", (), "Mega Cap"),
    ("FORD", "Forward Industries, Inc.", "forwardindustries.com", (), "Nano Cap"),
    ("MC.PA", "LVMH Moët Hennessy - Louis Vuitton, Société Européenne", "lvmh.com", ("LVMH",), "Mega Cap"),
    ("JPM", "JPMorgan Chase & Co.", "jpmorganchase.com", (), "Mega Cap"),
    ("ROLEXRINGS.NS", "Rolex Rings Limited", "rolexrings.com", (), "Small Cap"),
    ("delta-us", "Delta Machines Inc.", "delta.com", (), "Small Cap"),
    ("delta-gr", "Delta Machines S.A.", "delta.gr", (), "Small Cap"),
    ("MSFT", "Microsoft Corporation", "microsoft.com", (), "Mega Cap"),
    ("STRA", "Stature, Inc.", "stature.com", (), "Small Cap"),
    ("015760.KS", "한국전력공사", "kepco.co.kr", (), "Small Cap"),
    ("6758.T", "ソニーグループ株式会社", "sony.com", (), "Mega Cap"),
    ("JNJ", "Johnson & Johnson", "jnj.com", (), "Mega Cap"),
    ("MS", "Morgan Stanley", "morganstanley.com", (), "Mega Cap"),
    ("MEC.MI", "M&C S.p.A.", "mec.it", (), "Small Cap"),
    ("VOLV-B.ST", "AB Volvo (publ)", "volvogroup.com", (), "Large Cap"),
    ("VOLCAR-B.ST", "Volvo Car AB (publ)", "volvocars.com", (), "Large Cap"),
    ("bayer-listing", "BAYER", "", (), ""),
    ("BAYN", "Bayer Aktiengesellschaft", "bayer.com", (), "Large Cap"),
    ("sage-startup", "Sage", "sage.ai", (), ""),
    ("SGE.L", "The Sage Group plc", "sage.com", (), "Large Cap"),
    ("meta-startup", "Meta", "metavision.com", (), ""),
    ("fb", "Facebook, Inc.", "fb.com", ("Meta, Inc.",), "Mega Cap"),
    ("dover-startup", "Dover", "dover.ai", (), ""),
    ("dover-shop", "Dover Ltd", "dover.shop", (), ""),
    ("arrow-startup", "Arrow", "arrow.ai", (), ""),
    ("arrow-components", "Arrow Components Inc.", "arrow.com", (), "Mega Cap"),
    ("UBSG.SW", "UBS Group AG", "ubs.com", (), "Large Cap"),
    ("C1SU34.SA", "Credit Suisse DRN", "ubs.com", (), "Large Cap"),
    ("6969.T", "半導体製造装置株式会社", "handotai.co.jp", (), "Small Cap"),
)


@pytest.fixture
def resolver(index: CompanyIndex, live: str) -> Resolver:
    documents = [
        make_embedded(company_id, name=name, domain=domain, aliases=aliases, attributes={"cap": cap})
        for company_id, name, domain, aliases, cap in COMPANIES
    ]
    index.upsert(live, [*documents, make_embedded("about", name="Others", description="The statute of machines.")])
    index.declare(SIZE)
    return Resolver(index, index.live())


@pytest.mark.parametrize(
    ("typed", "company_id"),
    [
        ("nvda", "NVDA"),
        ("nvidia", "NVDA"),
        ("Nvidia Corp", "NVDA"),
        ("Nvidea", "NVDA"),
        ("TSMC", "TSM.BA"),
        ("taiwan semiconductor", "TSM.BA"),
        ("bmw ag", "BMW.DE"),
        ("H&M", "HM-B.ST"),
        ("nestle", "NESN.SW"),
        ("toyota", "7203.T"),
        ("ford", "F"),
        ("louis vuitton", "MC.PA"),
        ("jp morgan", "JPM"),
        ("Mircosoft", "MSFT"),
        ("한국전력공시", "015760.KS"),
        ("ソニー", "6758.T"),
        ("J&J", "JNJ"),
        ("ab volvo", "VOLV-B.ST"),
        ("volvo", "VOLV-B.ST"),
    ],
)
def test_a_name_as_people_type_it_opens_its_company(resolver: Resolver, typed: str, company_id: str) -> None:
    found = resolver.company(typed)
    assert found.document.id == company_id
    assert 0.75 <= found.confidence < 1


def test_an_exact_reference_is_certain_and_wins(resolver: Resolver) -> None:
    for typed in ("FORD", "forwardindustries.com", "Forward Industries, Inc.", "LVMH"):
        assert resolver.company(typed).confidence == 1
    assert resolver.company("FORD").document.id == "FORD"


@pytest.mark.parametrize(
    ("typed", "company_id", "confidence", "others"),
    [
        ("bayer", "BAYN", 0.9, ["bayer-listing"]),
        ("sage", "SGE.L", 0.9, ["sage-startup"]),
        ("meta", "fb", 0.9, ["meta-startup"]),
        ("Meta, Inc.", "fb", 1, []),
        ("dover", "dover-startup", 0.97, ["dover-shop"]),
        ("arrow", "arrow-startup", 0.97, ["arrow-components"]),
        ("sage.ai", "sage-startup", 1, []),
        ("UBS", "UBSG.SW", 0.9, []),
        ("ubs.com", "UBSG.SW", 0.9, []),
    ],
)
def test_a_much_larger_company_of_the_same_name_is_opened(
    resolver: Resolver, typed: str, company_id: str, confidence: float, others: list[str]
) -> None:
    found = resolver.company(typed)
    assert (found.document.id, found.confidence) == (company_id, confidence)
    assert [each.id for each in found.others] == others
    with_exact = Resolver(resolver.index, resolver.generation, exact=True).companies([typed], max_similar_searches=1)
    assert getattr(with_exact[typed], "confidence", 1) == 1


def test_a_small_company_is_not_opened_by_the_first_word_of_its_name(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany) as refused:
        resolver.company("rolex")
    assert [each.id for each in refused.value.suggestions][:1] == ["ROLEXRINGS.NS"]


def test_initials_are_no_other_companies_id_or_initials(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany):
        resolver.company("M&S")


def test_a_part_of_a_name_without_spaces_is_suggested(resolver: Resolver) -> None:
    for typed in ("半導体", "製造装置"):
        with pytest.raises(UnknownCompany) as refused:
            resolver.company(typed)
        assert [each.id for each in refused.value.suggestions][:1] == ["6969.T"]


def test_companies_of_one_size_and_name_are_candidates(resolver: Resolver) -> None:
    with pytest.raises(AmbiguousCompany) as refused:
        resolver.company("delta machines")
    assert {each.id for each in refused.value.candidates} == {"delta-us", "delta-gr"}


def test_a_word_of_some_text_is_no_typing_error(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany):
        resolver.company("Statute")  # not Stature, Inc.: "statute" stands in a description


def test_words_of_a_description_open_nothing(resolver: Resolver) -> None:
    with pytest.raises(UnknownCompany):
        resolver.company("machines")


@pytest.mark.parametrize("typed", ["nvidia", "Nvidea", "nvda", "TSMC", "toyota"])
def test_an_exact_resolver_only_suggests(resolver: Resolver, typed: str) -> None:
    exact = Resolver(resolver.index, resolver.generation, exact=True)
    with pytest.raises(UnknownCompany) as refused:
        exact.company(typed)
    assert refused.value.suggestions[0].id == resolver.company(typed).document.id


def test_without_sizes_the_largest_is_not_known(index: CompanyIndex, resolver: Resolver) -> None:
    index.declare(AttributeSchema(SIZE.types))
    assert index.attributes() == SIZE  # a declaration without a size keeps the size
    names = [make_embedded("a", name="Acme Tools Group"), make_embedded("b", name="Acme Tools Works")]
    index.upsert(resolver.generation.name, names)
    with pytest.raises(AmbiguousCompany):
        resolver.company("acme tools")


def test_declared_types_are_kept_and_replaced(index: CompanyIndex) -> None:
    assert index.attributes() == AttributeSchema()
    index.declare(parse_schema(["employees:number", "cap:ordinal=low,high"], size="employees"))
    index.declare(SIZE)
    assert index.attributes() == parse_schema(["cap:ordinal=nano,small,large,mega", "employees:number"], size="cap")
    index.declare(AttributeSchema(withdrawn=frozenset({"employees", "unknown"})))
    assert index.attributes() == SIZE
    with pytest.raises(InvalidInput, match="its type cannot be withdrawn"):
        index.declare(AttributeSchema(withdrawn=frozenset({"cap"})))
    assert index.attributes() == SIZE


def test_any_text_may_be_typed(index: CompanyIndex, resolver: Resolver) -> None:
    for typed in AWKWARD:
        found = resolver.companies([typed], max_similar_searches=1)[typed]
        assert isinstance(found, FoundCompany | UnknownCompany | AmbiguousCompany)
        assert isinstance(index.find_misspelled(resolver.generation.name, typed), list)
