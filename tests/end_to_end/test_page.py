"""From a name to competitors, in a real browser: by keyboard and by mouse."""

import re
from pathlib import Path
from typing import Any

import pytest

from similarity.index.attributes import parse_schema
from similarity.index.sqlite import SqliteIndex
from tests.contract.steps import add_live
from tests.end_to_end.conftest import Opened, serving
from tests.end_to_end.page_parts import address_has, downloaded, expect, hits, names, ranking, row, toast
from tests.factories import make_embedded
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import add_generation, companies, company, filled_index

pytestmark = pytest.mark.integration


def test_a_name_typed_and_chosen_by_keyboard_shows_its_competitors(page: Any) -> None:
    page.goto("/")
    box = page.get_by_role("combobox", name="Company name, domain or id")
    box.press_sequentially("acm")
    # The options of all that was typed: those of its first letters are replaced.
    expect(page.get_by_role("option", name="Acme Shoes, Inc.").locator("b")).to_have_text("Acm")
    expect(box).to_have_attribute("aria-expanded", "true")
    box.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", "option-0")
    box.press("Enter")
    page.get_by_role("heading", name="Acme Shoes, Inc.").wait_for()
    expect(hits(page)).to_have_text(["Boots GmbH", "Clogs", "Zapatos SA", "Delta", "A/S Nord"])
    address_has(page, "company=acme")
    expect(box).to_have_attribute("aria-expanded", "false")


def test_escape_closes_the_list_and_keeps_the_words(page: Any) -> None:
    page.goto("/")
    box = page.get_by_role("combobox", name="Company name, domain or id")
    box.press_sequentially("acm")
    page.get_by_role("option").first.wait_for()
    box.press("Escape")
    expect(page.locator("#options")).to_be_hidden()
    expect(box).to_have_value("acm")


def test_a_company_found_by_another_name_says_which(page: Any) -> None:
    page.goto("/")
    page.get_by_role("combobox", name="Company name, domain or id").press_sequentially("delt")
    page.get_by_role("option", name="Clogs also Delta").wait_for()


def test_a_name_entered_as_it_is_finds_the_company(page: Any) -> None:
    page.goto("/")
    page.get_by_role("combobox", name="Company name, domain or id").fill("ACME.com")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Acme Shoes, Inc.").wait_for()
    expect(page.locator("#question")).to_contain_text("found as “ACME.com”", use_inner_text=True)


def test_a_click_on_a_competitor_asks_about_it_and_back_returns(page: Any) -> None:
    page.goto("/?company=acme")
    page.get_by_role("link", name="Clogs", exact=True).click()
    page.get_by_role("heading", name="Clogs").wait_for()
    address_has(page, "company=clogs")
    expect(page.locator("#question-title")).to_be_focused()
    page.go_back()
    page.get_by_role("heading", name="Acme Shoes, Inc.").wait_for()


def test_a_row_shows_probability_cosine_country_industry_and_website(page: Any) -> None:
    page.goto("/?company=acme")
    boots = row(page, "Boots GmbH")
    for part in ("1", "98 %", "cosine 0.90", "Germany", "Footwear"):
        expect(boots).to_contain_text(part, use_inner_text=True)
    expect(boots.get_by_role("link", name="boots.de")).to_have_attribute("href", "https://boots.de")
    bar, track = boots.locator(".track i").bounding_box(), boots.locator(".track").bounding_box()
    assert bar["width"] / track["width"] == pytest.approx(0.982, abs=0.02)


def test_without_a_calibration_no_percentage_is_claimed(opened: Opened, tmp_path: Path) -> None:
    index = filled_index(tmp_path / "plain.db", calibration=None)
    with serving(index, AxisEncoder(), tmp_path / "workspace.db") as address:
        page = opened(address)
        ranking(page, "/?company=acme")
        expect(row(page, "Boots GmbH")).to_contain_text("0.90", use_inner_text=True)
        expect(page.locator("#results")).not_to_contain_text("%", use_inner_text=True)
        expect(page.get_by_label("At least this likely, %")).to_have_count(0)
        page.close()
    index.close()


def test_a_description_opens_and_closes(page: Any) -> None:
    page.goto("/?company=acme")
    button = page.get_by_role("button", name="Description of Boots GmbH")
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    page.get_by_role("button", name="Expand all").click()
    expect(page.locator(".more[aria-expanded=false]")).to_have_count(0)


def test_own_words_find_companies(page: Any) -> None:
    page.goto("/")
    page.get_by_text("Your own words", exact=True).click()
    page.get_by_label("What does the company do?").fill("makes leather shoes")
    page.get_by_role("button", name="Find companies").click()
    page.get_by_role("heading", name="Your description").wait_for()
    expect(hits(page).first).to_have_text("Acme Shoes, Inc.")
    address_has(page, "text=makes+leather+shoes")
    # A verdict is about two companies.
    expect(page.get_by_role("button", name="Accept Acme Shoes, Inc.")).to_be_hidden()


def test_more_companies_come_at_the_end_and_the_keyboard_goes_on_there(sample: Any) -> None:
    first = ranking(sample, "/?company=heineken&k=10")
    assert len(first) == 10
    sample.get_by_role("button", name="More companies").click()
    sample.locator("#hits > li").nth(19).wait_for()
    every = names(sample)
    assert every[:10] == first
    assert len(set(every)) == 20
    expect(sample.locator("#hits > li:focus .rank")).to_have_text("11")


def test_a_double_click_brings_more_companies_once(sample: Any) -> None:
    ranking(sample, "/?company=heineken&k=10")
    asked: list[str] = []
    more = re.compile("reasons=0.*cursor=")
    sample.on("request", lambda request: asked.append(request.url) if more.search(request.url) else None)
    sample.get_by_role("button", name="More companies").dblclick()
    sample.locator("#hits > li").nth(19).wait_for()
    assert asked
    assert len(asked) == len(set(asked))


def test_where_the_rest_of_a_ranking_is_gone_it_begins_anew(sample: Any) -> None:
    ranking(sample, "/?company=heineken&k=10")
    gone = '{"title": "Not a cursor", "status": 422, "detail": "", "type": "/docs#wrong-cursor"}'
    sample.route(
        "**/similar/*cursor=*", lambda route: route.fulfill(status=422, content_type="application/json", body=gone)
    )
    sample.get_by_role("button", name="More companies").click()
    toast(sample, "The ranking begins anew: the service has changed since.")
    sample.unroute("**/similar/*cursor=*")
    expect(hits(sample)).to_have_count(10)
    sample.get_by_role("button", name="More companies").click()
    sample.locator("#hits > li").nth(19).wait_for()


def test_reasons_of_a_ranking_that_is_gone_are_said_to_be_missing(sample: Any) -> None:
    gone = '{"title": "Gone", "status": 410, "detail": "", "type": "/docs#cursor-expired"}'
    ranking(sample, "/?company=heineken&k=10")
    sample.route(
        re.compile(r"/similar/.*reasons=[1-9].*cursor="),
        lambda route: route.fulfill(status=410, content_type="application/json", body=gone),
    )
    sample.get_by_role("button", name="More companies").click()
    sample.locator("#hits > li").nth(19).scroll_into_view_if_needed()
    toast(sample, "These companies come without reasons: the service has changed since.")
    sample.unroute_all()
    sample.locator("#toast").get_by_role("button", name="Ask again").click()
    expect(hits(sample)).to_have_count(10)


def test_while_another_question_is_asked_the_old_ranking_brings_no_more(sample: Any) -> None:
    ranking(sample, "/?company=heineken&k=10")
    asked: list[str] = []
    sample.on("request", lambda request: asked.append(request.url) if "cursor=" in request.url else None)
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    sample.route("**/similar/carlsberg*", hold)
    sample.get_by_role("link", name="Carlsberg A/S", exact=True).click()
    sample.locator("body.waiting").wait_for()
    sample.get_by_role("button", name="More companies").click()
    for route in held:
        route.continue_()
    sample.unroute("**/similar/carlsberg*")
    sample.get_by_role("heading", name="Carlsberg A/S", level=1).wait_for()
    names(sample)
    assert asked == []


def test_an_unknown_company_says_so_and_offers_what_was_meant(page: Any) -> None:
    page.goto("/?company=boot")
    alert = page.locator("#message")
    alert.get_by_role("heading", name="Unknown company").wait_for()
    expect(alert).to_contain_text("did you mean Boots GmbH (boots)?", use_inner_text=True)
    alert.get_by_role("link", name="Boots GmbH").click()
    page.get_by_role("heading", name="Boots GmbH").wait_for()
    expect(alert).to_have_text("")


def test_a_contested_name_offers_its_candidates(page: Any) -> None:
    page.goto("/?company=Delta")
    heading = page.get_by_role("heading", name="Several companies go by that name")
    heading.wait_for()
    above, below = heading.bounding_box(), page.locator("#message .detail").bounding_box()
    assert below["y"] >= above["y"] + above["height"]
    expect(page.locator("#message").get_by_role("link")).to_have_count(2)
    expect(page.locator("#message").get_by_role("button")).to_have_text(["Describe it instead", "Add it"])


def test_words_in_the_box_for_names_become_a_description(page: Any) -> None:
    page.goto("/?company=electric scooters")
    page.get_by_role("button", name="Describe it instead").click()
    expect(page.get_by_label("What does the company do?")).to_have_value("electric scooters")
    page.get_by_role("button", name="Find companies").click()
    page.get_by_role("heading", name="Your description").wait_for()
    page.goto("/")
    expect(page.locator("#recent-searches a")).to_have_text(["“electric scooters”"])


def test_another_company_of_the_name_can_be_chosen_instead(opened: Opened, tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first")
    index.declare(parse_schema(["size:ordinal=micro,small,large"], "size"))
    named = [("HP", "Helmerich & Payne, Inc.", "micro"), ("HPQ", "HP Inc.", "large")]
    index.upsert("first", [make_embedded(id_, name=name, attributes={"size": size}) for id_, name, size in named])
    with serving(index, AxisEncoder(), tmp_path / "workspace.db") as address:
        page = opened(address)
        page.goto("/?company=HP")
        page.get_by_text("it may also mean HPQ").wait_for()
        page.locator("#misses").get_by_role("button", name="HP Inc.").click()
        page.get_by_role("heading", name="HP Inc.").wait_for()
        address_has(page, "company=HPQ")
        page.get_by_label("Where is this company in the ranking?").fill("HP")
        page.keyboard.press("Enter")
        expect(page.locator(".located")).to_contain_text("it may also mean HPQ")
        page.close()


def test_an_empty_index_says_how_to_fill_it(opened: Opened, tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    with serving(index, AxisEncoder(), tmp_path / "workspace.db") as address:
        page = opened(address)
        page.goto("/")
        page.get_by_role("heading", name="The index holds no companies yet").wait_for()
        expect(page.locator("#message")).to_contain_text("similarity ingest FILE", use_inner_text=True)
        page.close()
    index.close()


def test_the_ranking_goes_along_as_csv(page: Any) -> None:
    ranking(page, "/?company=acme&country=Germany")
    name, text = downloaded(page, page.get_by_role("button", name="Download CSV"))
    assert name.endswith(".csv")
    header, line = text.splitlines()
    assert header.startswith("rank,id,name,domain,country,industry,score,probability")
    assert line.startswith("1,boots,Boots GmbH,boots.de,Germany,Footwear,0.9")


def test_a_table_of_more_than_an_answer_holds_says_how_many_it_brings(opened: Opened, tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "many.db")
    many = [company(f"shoe-{number}", 0.7 - number / 1_000, 2, name=f"Shoe {number}") for number in range(260)]
    add_generation(index, "first", [*companies(), *many])
    index.promote("first")
    with serving(index, AxisEncoder(), tmp_path / "workspace.db") as address:
        page = opened(address)
        ranking(page, "/?company=acme&k=250")
        button = page.get_by_role("button", name="Download CSV")
        expect(button).to_have_attribute("title", "250 companies")
        page.get_by_role("button", name="More companies").click()
        page.locator("#hits > li").nth(264).wait_for()
        expect(button).to_have_attribute("title", "the first 250 companies")
        _, text = downloaded(page, button)
        assert len(text.splitlines()) == 1 + 250
        toast(page, "250 companies downloaded")
        page.close()
    index.close()
