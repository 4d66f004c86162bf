"""The neighbourhood as a map: beside the ranking where there is room, above it where there is none."""

from typing import Any

import pytest

from tests.end_to_end.conftest import Opened
from tests.end_to_end.page_parts import names, ranking, row

pytestmark = pytest.mark.integration


def dot(page: Any, name: str) -> Any:
    return page.locator("#plot a").filter(has=page.locator(f"title:text-matches('^{name}')"))


def test_every_company_of_the_ranking_is_on_the_map(sample: Any) -> None:
    shown = ranking(sample, "/?company=heineken&company=carlsberg&unlike=starbucks&k=10")
    sample.locator("#plot .dot").first.wait_for()
    assert sample.locator("#plot .dot.hit").count() == len(shown)
    assert sample.locator("#plot .dot.anchor").count() == 2
    assert sample.locator("#plot .dot.negative").count() == 1
    box = sample.locator("#plot svg").bounding_box()
    for each in sample.locator("#plot .dot").all():
        place = each.bounding_box()
        assert box["x"] <= place["x"]
        assert place["x"] + place["width"] <= box["x"] + box["width"]


def test_a_click_on_a_dot_goes_to_its_row(sample: Any) -> None:
    sample.goto("/?company=heineken&k=25")
    last = names(sample)[-1]
    dot(sample, last).click()
    assert row(sample, last).get_attribute("class") == "row current"
    assert "lit" in dot(sample, last).get_attribute("class")


def test_the_row_one_looks_at_is_lit_on_the_map(sample: Any) -> None:
    sample.goto("/?company=heineken&k=10")
    first = names(sample)[0]
    sample.locator("#plot .dot").first.wait_for()
    row(sample, first).hover()
    sample.locator("#plot .dot.lit").wait_for()
    assert first in sample.locator("#plot .dot.lit").get_attribute("aria-label")


def test_arrows_walk_over_the_map_and_enter_goes_there(sample: Any) -> None:
    sample.goto("/?company=heineken&k=10")
    first = names(sample)[0]
    sample.locator("#plot .dot.anchor").focus()
    sample.keyboard.press("ArrowRight")
    assert first in sample.evaluate("document.activeElement.getAttribute('aria-label')")
    sample.keyboard.press("Enter")
    assert sample.evaluate("document.activeElement.querySelector('.rank').textContent") == "1"
    # One stop for the Tab key, however many companies there are.
    assert sample.locator("#plot a[tabindex='0']").count() == 1


def test_on_a_phone_the_map_that_was_asked_for_is_seen(opened: Opened, sample_address: str) -> None:
    page = opened(sample_address, width=390)
    ranking(page, "/?company=heineken&k=10")
    page.get_by_role("button", name="Map").click()
    page.locator("#plot .dot").first.wait_for()
    assert page.evaluate("document.getElementById('map').getBoundingClientRect().top < innerHeight")


def test_where_there_is_no_room_the_map_waits_to_be_asked_for(opened: Opened, sample_address: str) -> None:
    page = opened(sample_address, width=1024)
    ranking(page, "/?company=heineken&k=10")
    assert page.locator("#map").is_hidden()
    page.get_by_role("button", name="Map").click()
    page.locator("#plot .dot").first.wait_for()
    assert "map=1" in page.url
    page.reload()
    page.locator("#plot .dot").first.wait_for()
    page.get_by_role("button", name="Map").click()
    page.locator("#map").wait_for(state="hidden")
