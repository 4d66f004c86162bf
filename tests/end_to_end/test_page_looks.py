"""Every state of the page, light and dark, wide and narrow: nothing spills over, and axe finds nothing wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.end_to_end.conftest import Opened
from tests.end_to_end.page_parts import expect, offences, ranking, toast

pytestmark = pytest.mark.integration

PATHS = [
    "/",
    "/?company=acme",
    "/?company=acme&country=Germany&map=1",
    "/?company=acme&company=clogs&weight=2&unlike=delta-air&exclude=boots&company=nobody",
    "/?company=acme&country=Atlantis",
    "/?company=nobody",
    "/?company=Delta",
    "/?text=makes+leather+shoes",
    "/docs",
]


WIDTHS = [1440, 1024, 768, 390, 320]
SCHEMES = ["light", "dark"]


def spilt(page: Any) -> int:
    """By how many pixels the page is wider than its window."""
    over: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return over


@pytest.mark.parametrize("path", PATHS)
def test_every_address_fits_all_widths_and_passes_the_accessibility_rules(page: Any, path: str) -> None:
    page.goto(path)
    page.wait_for_load_state("networkidle")
    assert offences_by_scheme(page) == {"light": [], "dark": []}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert spilt(page) <= 0, f"at {width} pixels"


def offences_by_scheme(page: Any) -> dict[str, list[str]]:
    """What axe finds wrong in light colours and in dark ones."""
    found = {}
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found[scheme] = offences(page)
    return found


def judged(page: Any) -> None:
    page.keyboard.press("j")
    page.keyboard.press("a")
    toast(page, "accepted")
    page.keyboard.press("j")
    page.keyboard.press("r")
    toast(page, "rejected")


def opened_all(page: Any) -> None:
    page.get_by_role("button", name="Expand all").click()


def typed(page: Any) -> None:
    page.get_by_role("combobox", name="Company name, domain or id").press_sequentially("car")
    expect(page.locator("#options b").first).to_have_text("Car")
    page.keyboard.press("ArrowDown")


def helped(page: Any) -> None:
    page.keyboard.press("?")


def saving(page: Any) -> None:
    page.get_by_role("button", name="Save list").click()


def listed(page: Any) -> None:
    saving(page)
    page.get_by_label("Name", exact=True).fill("Brewers")
    page.keyboard.press("Enter")
    toast(page, "Saved as")
    page.get_by_role("button", name="Saved lists").click()
    page.get_by_role("dialog", name="Saved lists").wait_for()


def shortlisted(page: Any) -> None:
    for name, ids in (("Contacted", ["carlsberg", "starbucks"]), ("Clients", ["carlsberg"])):
        assert page.request.put(f"/lists/{name}", data={"companies": ids}).ok
    page.goto("/?company=heineken&k=10&exclude_list=Clients")
    page.locator("#hits > li").first.wait_for()
    page.get_by_role("button", name="Saved lists").click()
    page.get_by_role("button", name="Contacted", exact=True).click()
    page.get_by_role("dialog", name="Contacted", exact=True).wait_for()


def judging(page: Any) -> None:
    page.get_by_role("button", name="Judge pairs").click()
    page.locator("#pair article").first.wait_for()
    page.keyboard.press("c")
    page.locator("#judge-undo:visible").wait_for()


def matched(page: Any) -> None:
    page.get_by_role("button", name="Paste a list").click()
    page.get_by_label("Names or domains, one a line").fill("Carlsberg\nheinek\nNo Such Brewery 1234")
    page.get_by_role("button", name="Find them").click()
    page.locator("#matches tr").first.wait_for()


def asked_for_a_key(page: Any) -> None:
    page.route("**/similar/**", lambda route: route.fulfill(status=401, content_type="application/json", body="{}"))
    page.locator("#filters").evaluate("each => { each.open = true; }")
    page.get_by_label("Rank by").select_option("business")
    page.get_by_role("dialog", name="This service asks for a key").wait_for()


def tabled(page: Any) -> None:
    page.get_by_role("button", name="Table").click()
    page.locator("#columns summary").click()
    page.get_by_role("checkbox", name="Note", exact=True).check()


def located(page: Any) -> None:
    page.get_by_label("Where is this company in the ranking?").fill("starbucks")
    page.keyboard.press("Enter")
    page.locator(".located").wait_for()


def ticked(page: Any) -> None:
    page.get_by_label("Select all from this probability on, %").fill("5")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Accept", exact=True).click()
    toast(page, "accepted")
    page.keyboard.press("j")
    page.keyboard.press("x")


def noted(page: Any) -> None:
    page.keyboard.press("j")
    page.keyboard.press("a")
    toast(page, "accepted")
    page.keyboard.press("n")
    page.get_by_role("dialog", name="Note on").wait_for()


def adding(page: Any) -> None:
    page.goto("/?company=Quuxotronics")
    page.get_by_role("button", name="Add it").click()
    page.get_by_label("What does it do?").wait_for()


def started_again(page: Any) -> None:
    page.goto("/")
    page.locator("#recent-searches a").wait_for()
    page.get_by_role("combobox", name="Company name, domain or id").click()
    page.get_by_role("option").first.wait_for()


STATES = [
    tabled,
    located,
    ticked,
    noted,
    adding,
    started_again,
    judged,
    opened_all,
    typed,
    helped,
    saving,
    listed,
    shortlisted,
    judging,
    matched,
    asked_for_a_key,
]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_every_state_passes_them_too(
    opened: Opened, own_address: str, state: Callable[[Any], None], width: int
) -> None:
    page = opened(own_address, width=width)
    ranking(page, "/?company=heineken&k=10")
    page.wait_for_load_state("networkidle")
    state(page)
    assert offences_by_scheme(page) == {"light": [], "dark": []}
    assert spilt(page) <= 0
