"""The neighbourhood as a map: beside the ranking where there is room, above it where there is none."""

import re
from typing import Any

import pytest

from tests.end_to_end.conftest import Opened
from tests.end_to_end.page_parts import address_has, expect, names, ranking, row

pytestmark = pytest.mark.integration


def dot(page: Any, name: str) -> Any:
    return page.locator("#plot a").filter(has=page.locator(f"title:text-matches('^{name}')"))


def test_every_company_of_the_ranking_is_on_the_map(sample: Any) -> None:
    shown = ranking(sample, "/?company=heineken&company=carlsberg&unlike=starbucks&k=10")
    expect(sample.locator("#plot .dot.hit")).to_have_count(len(shown))
    expect(sample.locator("#plot .dot.anchor")).to_have_count(2)
    expect(sample.locator("#plot .dot.negative")).to_have_count(1)
    box = sample.locator("#plot svg").bounding_box()
    for each in sample.locator("#plot .dot").all():
        place = each.bounding_box()
        assert box["x"] <= place["x"]
        assert place["x"] + place["width"] <= box["x"] + box["width"]


def test_a_click_on_a_dot_goes_to_its_row(sample: Any) -> None:
    sample.goto("/?company=heineken&k=25")
    last = names(sample)[-1]
    dot(sample, last).click()
    expect(row(sample, last)).to_have_class("row current")
    expect(dot(sample, last)).to_have_class("dot hit lit")


def test_the_row_one_looks_at_is_lit_on_the_map(sample: Any) -> None:
    sample.goto("/?company=heineken&k=10")
    first = names(sample)[0]
    sample.locator("#plot .dot").first.wait_for()
    row(sample, first).hover()
    expect(sample.locator("#plot .dot.lit")).to_have_attribute("aria-label", re.compile(re.escape(first)))


def test_arrows_walk_over_the_map_and_enter_goes_there(sample: Any) -> None:
    sample.goto("/?company=heineken&k=10")
    first = names(sample)[0]
    sample.locator("#plot .dot.anchor").focus()
    sample.keyboard.press("ArrowRight")
    expect(sample.locator("#plot .dot:focus")).to_have_attribute("aria-label", re.compile(re.escape(first)))
    sample.keyboard.press("Enter")
    expect(sample.locator("#hits > li:focus .rank")).to_have_text("1")
    # One stop for the Tab key, however many companies there are.
    expect(sample.locator("#plot a[tabindex='0']")).to_have_count(1)


def test_on_a_phone_the_map_that_was_asked_for_is_seen(opened: Opened, sample_address: str) -> None:
    page = opened(sample_address, width=390)
    ranking(page, "/?company=heineken&k=10")
    page.get_by_role("button", name="Map").click()
    page.locator("#plot .dot").first.wait_for()
    expect(page.locator("#map")).to_be_in_viewport()


def test_where_there_is_no_room_the_map_waits_to_be_asked_for(opened: Opened, sample_address: str) -> None:
    page = opened(sample_address, width=1024)
    ranking(page, "/?company=heineken&k=10")
    expect(page.locator("#map")).to_be_hidden()
    page.get_by_role("button", name="Map").click()
    page.locator("#plot .dot").first.wait_for()
    address_has(page, "map=1")
    page.reload()
    page.locator("#plot .dot").first.wait_for()
    page.get_by_role("button", name="Map").click()
    page.locator("#map").wait_for(state="hidden")
