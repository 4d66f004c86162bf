import time
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import (
    Company,
    DeletedCompany,
    check_id,
    name_key,
    normalize_domain,
    time_of_version,
    version_above,
    version_of,
)
from similarity.errors import InvalidCompany
from tests.factories import make_company

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "name: is empty"),
        ({"name": "x" * 513}, "name: has 513 characters; the limit is 512"),
        ({"description": "  "}, "description: is empty"),
        ({"description": "x" * 200_001}, "the limit is 200,000"),
        ({"description": "a\0b"}, "NUL"),
        ({"description": "a\ud800b"}, "lone surrogate"),
        ({"description": 7}, "must be text, not int"),
        ({"domain": "https://acme.com"}, "not a bare host name"),
        ({"domain": "acme"}, "not a bare host name"),
        ({"aliases": ["Acme"]}, "must be a tuple"),
        ({"aliases": ("",)}, "aliases: is empty"),
        ({"tags": ("x",) * 101}, "has 101 entries"),
        ({"attributes": {"has space": "x"}}, "not a name of letters"),
        ({"attributes": {"size": [1]}}, "attributes.size: must be text, a number or true/false"),
        ({"attributes": {"size": float("nan")}}, "finite"),
        ({"attributes": {"size": 10**5000}}, "64 bits"),
    ],
)
def test_a_company_that_breaks_a_rule_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidCompany, match=message):
        make_company("acme", **fields)


@pytest.mark.parametrize("company_id", ["", "a b", "ä", "x" * 129, "a/b", "a\n"])
def test_an_id_of_other_characters_is_refused(company_id: str) -> None:
    with pytest.raises(InvalidCompany, match="id: "):
        make_company(company_id)
    with pytest.raises(InvalidCompany, match="id: "):
        DeletedCompany(id=company_id, version=1)


@pytest.mark.parametrize("company_id", [".", ".."])
def test_an_id_that_addresses_lose_is_only_for_companies_that_have_it_already(company_id: str) -> None:
    with pytest.raises(InvalidCompany, match=r"id: .* cannot be part of a URL"):
        check_id(company_id)
    check_id(f"{company_id}a")
    check_id("...")
    assert make_company(company_id).id == DeletedCompany(id=company_id, version=1).id == company_id


@pytest.mark.parametrize("company_id", ["7203.T", "yc-cherry", "A:b_c", "x" * 128])
def test_ids_of_real_listings_are_allowed(company_id: str) -> None:
    assert make_company(company_id).id == company_id


def test_a_company_cannot_be_changed() -> None:
    company: Any = make_company()
    with pytest.raises(AttributeError):
        company.name = "other"
    assert isinstance(company, Company)


def test_a_version_beyond_the_last_time_has_that_time() -> None:
    """A message can give a company any version up to 2^62; each answer shows the time of its companies."""
    last = version_of(datetime.max.replace(tzinfo=UTC), now=datetime.max.replace(tzinfo=UTC) - timedelta(minutes=5))
    assert {time_of_version(version) for version in (last, last + 2, 2**63 - 1)} == {datetime.max.replace(tzinfo=UTC)}


def test_a_version_is_twice_the_event_time_in_microseconds() -> None:
    assert version_of(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), now=NOW) == 2_000_000


def test_a_delete_wins_a_tie() -> None:
    assert version_of(NOW, now=NOW, deleted=True) == version_of(NOW, now=NOW) + 1


def test_time_zones_do_not_matter() -> None:
    paris = NOW.astimezone(timezone(timedelta(hours=1)))
    assert version_of(paris, now=NOW) == version_of(NOW, now=NOW)


@pytest.mark.parametrize(
    ("event_time", "message"),
    [
        (datetime(2025, 1, 1), "no time zone"),  # noqa: DTZ001 - naive on purpose
        (datetime(1969, 12, 31, tzinfo=UTC), "before 1970"),
        (NOW + timedelta(minutes=5, microseconds=1), "more than 5 minutes in the future"),
    ],
)
def test_event_times_that_cannot_be_true_are_refused(event_time: datetime, message: str) -> None:
    with pytest.raises(InvalidCompany, match=message):
        version_of(event_time, now=NOW)


@given(st.datetimes(datetime(1970, 1, 2), datetime(2025, 1, 1), timezones=st.just(UTC)), st.booleans())  # noqa: DTZ001 - hypothesis adds the zone
def test_a_version_leads_back_to_its_event_time(event_time: datetime, deleted: bool) -> None:
    assert time_of_version(version_of(event_time, now=NOW, deleted=deleted)) == event_time


@pytest.mark.parametrize(("version", "write", "delete"), [(0, 2, 1), (1, 2, 3), (6, 8, 7), (7, 8, 9)])
def test_the_next_version_of_a_write_is_even_and_of_a_delete_odd(version: int, write: int, delete: int) -> None:
    assert version_above(version, deleted=False) == write
    assert version_above(version, deleted=True) == delete


@pytest.mark.parametrize(
    ("website", "domain"),
    [
        ("https://www.Example.com/about?x=1", "example.com"),
        ("example.co.uk", "example.co.uk"),
        ("http://user@shop.example.com:8080", "shop.example.com"),
        ("https://münchen.de", "xn--mnchen-3ya.de"),
        ("http://www.aircraft_co.avic.com", "aircraft_co.avic.com"),
        ("  ", ""),
    ],
)
def test_a_website_becomes_its_domain(website: str, domain: str) -> None:
    assert normalize_domain(website) == domain


@pytest.mark.parametrize(
    "website", ["http://", "not a site", "http://url", "http://[::1", "https://a.com, https://b.com"]
)
def test_a_website_without_a_host_name_is_refused(website: str) -> None:
    with pytest.raises(InvalidCompany, match="host name"):
        normalize_domain(website)


def test_a_host_name_of_millions_of_letters_is_refused_at_once() -> None:
    started = time.process_time()
    with pytest.raises(InvalidCompany, match="host name"):
        normalize_domain("é." * 1_000_000)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("host", ["\ufdfa" * 500, ("\u3300" * 15 + "\u3002") * 17, "\ufdfa.\ufdfa\u3002" * 125])
def test_a_host_name_that_grows_in_a_normal_form_is_refused_at_once(host: str) -> None:
    started = time.process_time()
    for _ in range(100):  # where each character is encoded first, 1 to 3 s
        with pytest.raises(InvalidCompany, match="host name"):
            normalize_domain(host)
    assert time.process_time() - started < 0.5


def test_a_host_name_has_labels_of_63_characters_and_253_in_all() -> None:
    longest = ".".join(["a" * 63] * 3 + ["b" * 57, "com"])
    assert normalize_domain(f"{longest}.") == longest
    for host in ("a" + longest, "a" * 64 + ".com"):
        with pytest.raises(InvalidCompany, match="host name"):
            normalize_domain(host)
    assert normalize_domain("例え\u3002テスト") == "xn--r8jz45g.xn--zckzah"


def test_the_names_that_are_compared_have_a_bounded_length() -> None:
    aliases = ("x" * 201, *(f"{number:02d}" + "x" * 198 for number in range(26)))
    names = make_company("a", name="Alpha", aliases=aliases).compared_names()
    assert names == ["Alpha", *aliases[1:26]]
    assert make_company("a", name="Alpha", aliases=("Bee", "Sea")).compared_names() == ["Alpha", "Bee", "Sea"]


def test_all_texts_of_a_company_are_counted() -> None:
    company = make_company("a", name="bb", description="ccc", aliases=("dd", "e"), tags=("f",), attributes={"gg": "hh"})
    assert company.characters() == 1 + 2 + 3 + 3 + 1 + 4


def test_names_compare_without_case_width_and_spacing() -> None:
    assert name_key("  ＡＣＭＥ\u00a0Straße ") == name_key("acme strasse")


def test_the_content_is_all_that_was_given_but_the_id() -> None:
    company = Company(id="a", name="  ACME ", description="Makes anvils.", tags=("B", "a"), attributes={"size": 10.0})
    assert company.content() == {
        "name": "  ACME ",
        "description": "Makes anvils.",
        "aliases": [],
        "domain": "",
        "country": "",
        "industry": "",
        "tags": ["B", "a"],
        "attributes": {"size": 10.0},
    }
    assert {"id", *company.content()} == {field.name for field in fields(Company)}
