"""Accepting and rejecting hits: verdicts last, become labelled pairs, and keep the rejected out of the CSV."""

import csv
import io
import re
from typing import Any

import pytest

from tests.end_to_end.conftest import Opened
from tests.end_to_end.page_parts import expect, names, ranking, row, settle, toast

pytestmark = pytest.mark.integration


def is_pressed(page: Any, label: str, state: str = "true") -> None:
    expect(page.get_by_role("button", name=label, exact=True)).to_have_attribute("aria-pressed", state)


def test_a_verdict_is_remembered_when_the_company_is_asked_again(own: Any, own_address: str, opened: Opened) -> None:
    ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name="Accept Carlsberg A/S").click()
    toast(own, "Carlsberg A/S accepted.")
    again = opened(own_address)
    again.goto("/?company=Heineken")
    again.locator("#hits .accepted").wait_for()
    is_pressed(again, "Accept Carlsberg A/S")
    expect(again.locator("#tally")).to_contain_text("1 accepted", use_inner_text=True)


def test_a_verdict_can_be_undone_and_changed(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name="Reject Carlsberg A/S").click()
    toast(own, "Carlsberg A/S rejected.")
    own.locator("#toast").get_by_role("button", name="Undo").click()
    toast(own, "has no verdict now")
    is_pressed(own, "Reject Carlsberg A/S", "false")
    own.get_by_role("button", name="Reject Carlsberg A/S").click()
    toast(own, "Carlsberg A/S rejected.")
    own.get_by_role("button", name="Accept Carlsberg A/S").click()
    toast(own, "Carlsberg A/S accepted.")
    is_pressed(own, "Reject Carlsberg A/S", "false")
    # The same button again takes it back.
    own.get_by_role("button", name="Accept Carlsberg A/S").click()
    toast(own, "has no verdict now")
    own.reload(wait_until="networkidle")
    names(own)
    expect(own.locator("#hits .accepted, #hits .rejected")).to_have_count(0)
    # Undone is as if it had never been said, and no doubt that would take the label from what others say.
    assert own.request.get("/feedback/pairs").text() == ""


def test_undo_takes_a_verdict_back_when_another_company_is_on_the_page(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name="Reject Asahi Group Holdings, Ltd.").click()
    toast(own, "Asahi Group Holdings, Ltd. rejected.")
    own.get_by_role("link", name="Carlsberg A/S", exact=True).click()
    own.get_by_role("heading", name="Carlsberg A/S", level=1).wait_for()
    own.locator("#toast").get_by_role("button", name="Undo").click()
    toast(own, re.compile(r"^Asahi Group Holdings, Ltd\. has no verdict now, as a competitor of Heineken N\.V\.$"))
    assert own.request.get("/feedback?anchor=heineken").json()["verdicts"] == []
    own.keyboard.press("u")  # nothing is left to undo
    with own.expect_response("**/feedback?anchor=heineken*"):
        own.go_back()
    own.get_by_role("heading", name="Heineken N.V.", level=1).wait_for()
    expect(own.locator("#hits .rejected")).to_have_count(0)


def test_a_key_that_is_held_down_is_one_verdict(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    own.keyboard.press("j")
    for _ in range(4):
        own.keyboard.down("a")  # the second one and those after it are repeats
    own.keyboard.up("a")
    own.get_by_role("link", name="1 labelled pair").wait_for()  # counted after the verdict is kept
    assert len(own.request.get("/feedback").json()["events"]) == 1


def test_the_count_of_pairs_never_takes_the_place_of_undo(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    busy = {
        "status": 503,
        "content_type": "application/problem+json",
        "headers": {"Retry-After": "9"},
        "body": '{"title": "Too busy", "status": 503, "detail": "", "type": "/docs#overloaded"}',
    }
    own.route("**/feedback/pairs*", lambda route: route.fulfill(**busy))
    with own.expect_response("**/feedback/pairs*"):
        own.get_by_role("button", name="Reject Carlsberg A/S").click()
    settle(own)
    expect(own.locator("#toast").get_by_role("button", name="Undo")).to_be_visible()
    own.unroute("**/feedback/pairs*")  # the count comes without another verdict
    own.get_by_role("link", name="1 labelled pair").wait_for()


def test_a_verdict_that_is_not_kept_is_not_shown(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    own.route("**/feedback", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    own.get_by_role("button", name="Accept Carlsberg A/S").click()
    toast(own, "The service does not answer")
    is_pressed(own, "Accept Carlsberg A/S", "false")


def test_ten_competitors_two_rejected_a_csv_and_the_labelled_pairs_by_keyboard_alone(own: Any) -> None:
    """What an analyst comes for, without a mouse and without the manual."""
    keys = own.keyboard
    own.goto("/")
    expect(own.locator("#search")).to_be_focused()
    keys.type("heinek")
    expect(own.get_by_role("option", name="Heineken N.V.").locator("b")).to_have_text("Heinek")
    keys.press("ArrowDown")
    keys.press("Enter")
    own.get_by_role("heading", name="Heineken N.V.").wait_for()
    names(own)

    tab_to(own, "k")
    keys.press("ArrowUp")
    own.wait_for_url("**k=10**")
    shown = names(own)
    assert len(shown) == 10

    for _ in range(2):
        keys.press("j")
    keys.press("r")
    toast(own, f"{shown[1]} rejected.")
    keys.press("ArrowDown")
    keys.press("r")
    toast(own, f"{shown[2]} rejected.")
    keys.press("k")
    keys.press("k")
    keys.press("a")
    toast(own, f"{shown[0]} accepted.")
    own.get_by_role("link", name="3 labelled pairs").wait_for()

    tab_to(own, "csv", back=True)
    with own.expect_download() as table:
        keys.press("Enter")
    rows = list(csv.DictReader(io.StringIO(table.value.path().read_text(encoding="utf-8-sig"))))
    assert [each["name"] for each in rows] == [shown[0], *shown[3:]]

    tab_to(own, "pairs", back=True)
    with own.expect_download() as pairs:
        keys.press("Enter")
    labels = [each["label"] for each in csv.DictReader(io.StringIO(pairs.value.path().read_text(encoding="utf-8-sig")))]
    assert len(labels) == 3
    assert len(set(labels)) == 2


def tab_to(page: Any, element: str, *, back: bool = False) -> None:
    for _ in range(80):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if page.evaluate("document.activeElement.id") == element:
            return
    raise AssertionError(f"no way to #{element} by Tab")


def test_keys_act_on_the_current_row(own: Any) -> None:
    own.goto("/?company=heineken&k=10")
    second = names(own)[1]
    own.keyboard.press("j")
    own.keyboard.press("j")
    expect(row(own, second)).to_have_class("row current")
    own.keyboard.press("e")
    expect(row(own, second).locator(".more")).to_have_attribute("aria-expanded", "true")
    own.keyboard.press("a")
    toast(own, f"{second} accepted.")
    own.keyboard.press("u")
    toast(own, f"{second} has no verdict now.")
    own.keyboard.press("-")
    own.get_by_role("heading", name="Unlike").wait_for()
    names(own)
    own.keyboard.press("j")
    own.keyboard.press("+")
    own.get_by_role("heading", name="Heineken N.V. + 1").wait_for()
    own.keyboard.press("/")
    search = own.get_by_role("combobox", name="Company name, domain or id")
    expect(search).to_be_focused()
    own.keyboard.type("ajar?")
    expect(search).to_have_value("ajar?")


def test_the_help_says_the_keys_and_can_switch_them_off(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    own.keyboard.press("?")
    dialog = own.get_by_role("dialog", name="Keys")
    dialog.wait_for()
    expect(dialog).to_contain_text("Reject: it is not", use_inner_text=True)
    dialog.get_by_role("checkbox").uncheck()
    own.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    own.keyboard.press("j")
    expect(own.locator("#hits .current")).to_have_count(0)
    own.get_by_role("button", name="Keys").click()
    own.get_by_role("dialog", name="Keys").get_by_role("checkbox").check()
