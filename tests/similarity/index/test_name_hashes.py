"""Names as keyed hashes: which references and texts are recognised, and which are not."""

import pytest

from similarity.company import Company
from similarity.index.name_hashes import hashes_of, names_of
from tests.factories import make_company
from tests.workspace_records import make_erased, make_names

NAMES = ("Acme, Inc.", "Nestlé", "acme.com", "阿里巴巴有限公司")


@pytest.mark.parametrize(
    "text",
    [
        "ACME",
        "acme",
        "like Acme's",
        "Acme\u2011Tools",
        "A\u00adc\u200bme",
        "nestle and others",
        "NESTLE\u0301",
        "see https://www.acme.com/about",
        "ａｃｍｅ",
        "我们与阿里巴巴竞争",
        "case c-17",
    ],
)
def test_a_text_that_contains_a_name_is_found(text: str) -> None:
    assert make_names("c-17", *NAMES).contained_in(text)


@pytest.mark.parametrize("text", ["", "acmes", "pacme", "Inc.", "com", "c 18", "阿里山", "nest le"])
def test_other_texts_are_not(text: str) -> None:
    assert not make_names("c-17", *NAMES).contained_in(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Vakıfbank", "VAKIFBANK"),
        ("YILDIZ HOLDING", "Yıldız Holding"),
        ("Møller-Kelvo", "moller-kelvo"),
        ("Łukasz Drim", "LUKASZ DRIM"),
        ("ᾳkelvo", "ΑΙKELVO"),
        ("Zorvik", "Zorvik™"),
        ("Zorvik℠", "zorvik"),
        ("Zorvik", "Zorvik¹ and others"),
        ("J.P. Morgan Chase", "JP Morgan Chase"),
        ("BMW", "B.M.W. cars"),
        ("E.ON SE", "EON is large"),
        ("AT&T Inc.", "ATT"),
        ("Zorvik & Kelvo", "from zorvik and kelvo"),
        ("Zorvik & Kelvo AG", "Zorvik und Kelvo"),
        ("Zorvik & Kelvo", "ZORVIK ET KELVO"),
        ("Zorvik & Kelvo", "Zorvik y Kelvo"),
        ("Z & K", "Z and K"),
        ("T-Mobile", "TMobile"),
        ("TMobile", "the T-Mobile shop"),
        ("Zor-vik", "zorvik"),
        ("Dick's Zorvs", "Dicks Zorvs"),
        ("ゾル・ヴィク", "ゾルヴィクの製品"),
    ],
)
def test_letters_signs_and_punctuation_within_a_name_do_not_matter(name: str, text: str) -> None:
    assert make_names("c-17", name).contained_in(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Hill's", "over the hills"),
        ("E.ON SE", "for an eon"),
        ("3M", "3m of rope"),
        ("Zorvi", "Zor-vik"),
        ("Z & K", "z and k"),
    ],
)
def test_other_words_are_not_taken_for_a_name(name: str, text: str) -> None:
    assert not make_names("c-17", name).contained_in(text)


@pytest.mark.parametrize("reference", ["c-17", "acme inc", "ACME", "https://www.ACME.com/about", "NESTLÉ"])
def test_a_reference_that_is_a_name_means_the_company(reference: str) -> None:
    assert make_names("c-17", *NAMES).matches(reference)


@pytest.mark.parametrize("reference", ["C-17", "Acme Tools", "acme.org", "", None, 17])
def test_other_references_do_not(reference: object) -> None:
    assert not make_names("c-17", *NAMES).matches(reference)


def test_a_reference_may_have_a_word_for_the_sign_of_a_name() -> None:
    assert make_names("c-17", "Z & K").matches("z und k")
    assert not make_names("c-17", "- & -").contained_in("this and that")


@pytest.mark.parametrize("name", ["Energy", "X", "360", "!!!", "水"])
def test_what_every_text_holds_is_compared_with_whole_values_only(name: str) -> None:
    names = make_names("c-17", name)
    assert names.matches(name)
    assert not names.contained_in(f"in {name} as well")


def test_a_company_goes_by_its_name_aliases_and_domain() -> None:
    company = Company(id="a", name="Acme", description="Makes anvils.", aliases=("Acme Works",), domain="acme.com")
    assert names_of(company) == {"Acme", "Acme Works", "acme.com"}


def test_hashes_depend_on_the_key_and_hold_no_word() -> None:
    hashes = hashes_of(b"one key", NAMES)
    assert hashes.isdisjoint(hashes_of(b"another key", NAMES))
    assert not any("acme" in each for each in hashes)


def test_texts_that_are_searched_for_several_companies_give_what_each_finds_alone() -> None:
    named = {"c1": ("Acme Tools, Inc.",), "c2": ("KelvoDrimpax", "H & M"), "c3": ("Acme",), "c4": ("阿里巴巴",)}
    texts = [
        "We met Acme Tools",
        "acme again",
        "Kelvo Drimpax fell",
        "H and M",
        "阿里巴巴 rose",
        "c3 and c4",
        "nothing",
    ]
    alone = {company_id: make_names(company_id, *names) for company_id, names in named.items()}
    together = make_erased(named)
    for text in texts:
        assert together.contained_in(text) == {each for each, names in alone.items() if names.contained_in(text)}
    assert together.compared == len(texts)


def test_a_host_of_many_is_no_name_of_a_company() -> None:
    """Otherwise, its erasure would empty all notes with an address of gmail.com."""
    assert names_of(make_company("a", name="Bob's Sofas", domain="gmail.com")) == {"Bob's Sofas"}
