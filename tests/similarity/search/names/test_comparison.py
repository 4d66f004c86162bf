from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.search.names.comparison import (
    How,
    contains_core,
    core_of,
    cores_of,
    differs_by_typo,
    domain_of,
    exact_match,
    extends_core,
    has_same_words,
    is_domain,
    is_short,
    name_similarity,
)
from similarity.search.names.confidence import OF_ONE_WORD, confidence_of
from tests.factories import make_company


@pytest.mark.parametrize(
    ("names", "core"),
    [
        (("The Coca-Cola Company", "Coca Cola Co.", "COCA-COLA, INC"), "coca cola"),
        (("Nestlé S.A.", "nestle sa", "NESTLE"), "nestle"),
        (("Grupo Bimbo, S.A.B. de C.V.", "Grupo Bimbo"), "grupo bimbo"),
        (("H & M Hennes & Mauritz AB (publ)", "H and M Hennes and Mauritz"), "h and m hennes and mauritz"),
        (("PT Astra International Tbk", "Astra International"), "astra international"),
        (("A.P. Møller - Mærsk A/S", "AP Moller Maersk"), "ap moller maersk"),
        (("McDonald's Corporation", "McDonalds"), "mcdonalds"),
        (("トヨタ自動車株式会社", "トヨタ自動車"), "トヨタ自動車"),
        (("Prada S.p.A.", "PRADA S P A", "Prada"), "prada"),
        (("F.N.B. Corporation", "F N B Corp", "FNB"), "fnb"),
        (("Straße GmbH", "STRASSE"), "strasse"),
    ],
)
def test_names_of_one_company_have_one_core(names: tuple[str, ...], core: str) -> None:
    assert {core_of(name) for name in names} == {core_of(core)}


def test_a_name_of_legal_forms_only_keeps_one() -> None:
    assert core_of("The Company") == "the"
    assert core_of("SE") == "se"
    assert core_of(" !? ") == ""


@given(st.text(max_size=30))
def test_a_core_has_no_case_and_no_spaces_to_spare(name: str) -> None:
    core = core_of(name)
    assert core == core.casefold().strip()
    assert "  " not in core


@pytest.mark.parametrize(
    ("cell", "domain"),
    [
        ("https://www.Nike.com/de?x=1", "nike.com"),
        ("www.nike.com", "nike.com"),
        (" nike.com ", "nike.com"),
        ("info@nike.com", "nike.com"),
        ("bücher.de", "xn--bcher-kva.de"),
        ("nike", ""),
        ("Nike, Inc.", ""),
        ("see nike.com", ""),
        ("", ""),
        ("http://[", ""),
        ("\ud800.com", ""),
    ],
)
def test_a_website_in_any_form_is_its_host(cell: str, domain: str) -> None:
    assert domain_of(cell) == domain


@pytest.mark.parametrize("cell", ["nike.com", "https://nike.com/x", "booking.com", "shop.example.co.uk"])
def test_a_cell_can_read_as_a_website(cell: str) -> None:
    assert is_domain(cell)


@pytest.mark.parametrize("cell", ["Nike", "Nike Inc.", "A.P", "3.14", "", "S.A."])
def test_or_as_a_name(cell: str) -> None:
    assert not is_domain(cell)


def test_a_company_goes_by_its_name_and_its_aliases() -> None:
    company = make_company(name="Acme, Inc.", aliases=("Acme", "ACME Tools"))
    assert exact_match(company, "ACME,  inc.") is How.NAME
    assert exact_match(company, "acme tools") is How.ALIAS
    assert exact_match(company, "Acme Inc") is None


def test_similar_names_are_searched_in_aliases_of_a_bounded_length() -> None:
    company = make_company("zorp", name="Zorp", aliases=tuple("zorp " + "ab" * 250 + f" {each}" for each in range(99)))
    assert cores_of(company) == ["zorp"]
    assert not differs_by_typo(company.aliases[0][:-1] + "x", company)
    assert exact_match(company, company.aliases[0]) is How.ALIAS


def test_a_name_begins_with_whole_words() -> None:
    assert extends_core("coca cola", ["coca cola hellenic"])
    assert extends_core("jp morgan", ["jpmorgan chase"])
    assert not extends_core("coca", ["cocacola"])
    assert not extends_core("coca cola", ["coca cola", "coca colada"])


def test_a_part_of_a_name_is_whole_words_side_by_side() -> None:
    assert contains_core("louis vuitton", ["lvmh moet hennessy louis vuitton"])
    assert not contains_core("moet vuitton", ["lvmh moet hennessy louis vuitton"])
    assert not contains_core("vuit", ["louis vuitton"])


@pytest.mark.parametrize("core", ["nike", "j and j", "h m"])
def test_one_word_and_initials_begin_many_names(core: str) -> None:
    assert is_short(core)
    assert not is_short(f"{core} hennes")


def test_the_same_words_come_in_any_order_and_with_any_spaces() -> None:
    assert has_same_words("volvo group", ["other", "group volvo"])
    assert has_same_words("face book", ["facebook"])
    assert not has_same_words("volvo group", ["volvo"])


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("Microsoft Corporation", "micrsoft"),
        ("Microsoft Corporation", "microssoft"),
        ("Microsoft Corporation", "microzoft"),
        ("Microsoft Corporation", "mircosoft"),
        ("Microsoft Corporation", "Microsof corporation"),
        ("Delta Airlines", "delta airlnes"),
        ("Bank of America", "bank ofamerica"),
        ("Adidas AG", "addidas"),  # a letter twice: however short the name
    ],
)
def test_one_letter_can_be_mistyped(name: str, typed: str) -> None:
    assert differs_by_typo(typed, make_company(name=name))
    assert differs_by_typo(typed, make_company(name="Other", aliases=(name,)))


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("Microsoft Corporation", "microsoft"),
        ("Microsoft Corporation", "macrosaft"),
        ("Shell plc", "shelf"),
        ("Volex plc", "rolex"),
        ("Pfizer Inc.", "phize"),
        ("Kolonel Corp.", "Holonel"),  # a short name with another first letter
        ("Invacare Corporation", "InvoCare Limited"),  # another legal form
        ("Delta Airlines", "dalta airlnes"),
        ("Phillips 66", "Phillips 67"),  # another number
        ("Acme", ""),
    ],
)
def test_other_names_are_not_mistyped_ones(name: str, typed: str) -> None:
    assert not differs_by_typo(typed, make_company(name=name))


def test_a_prominent_company_is_meant_by_a_shorter_mistyped_name() -> None:
    assert differs_by_typo("phizer", make_company(name="Pfizer Inc."), prominent=True)
    assert not differs_by_typo("rolex", make_company(name="Volex plc"), prominent=True)


@given(st.text(max_size=20), st.text(max_size=20))
def test_name_similarity_is_a_share_and_symmetric(one: str, other: str) -> None:
    assert 0 <= name_similarity(one, other) == name_similarity(other, one) <= 1
    assert name_similarity(core_of("Acme Tools"), core_of("tools acme")) == 1


def test_confidence_falls_from_exact_to_similar() -> None:
    assert 0.5 < confidence_of(How.SPELLING, "two words") < confidence_of(How.LEGAL_FORM, "two words")
    assert confidence_of(How.LEGAL_FORM, "one") < confidence_of(How.LEGAL_FORM, "two words")
    assert all(0 < confidence_of(how, "two words") < 1 for how in How)


def test_the_guide_says_the_confidence_in_use() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "matching.md").read_text(encoding="utf-8")
    for how in How:
        [row] = [line for line in guide.splitlines() if line.startswith(f"| `{how.value}` |")]
        assert f"| {confidence_of(how, 'two words'):.2f}" in row
        if how in OF_ONE_WORD:
            assert f"{confidence_of(how, 'one'):.2f} for a name of one word" in row


def test_a_website_that_is_the_name_is_also_a_name_without_its_ending() -> None:
    assert cores_of(make_company(name="Amazon.com, Inc.", domain="amazon.com")) == ["amazoncom", "amazon"]
    assert cores_of(make_company(name="Nike", domain="nike.com")) == ["nike"]


def test_few_letters_with_a_space_are_not_joined_because_they_may_be_an_id() -> None:
    assert not extends_core(core_of("BF-B"), ["bfb health"])
    assert extends_core(core_of("JP Morgan"), ["jpmorgan chase"])
