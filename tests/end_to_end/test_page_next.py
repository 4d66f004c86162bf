"""Judging the pairs that are most worth it: one at a time, by key or by click."""

import re
from typing import Any

import pytest

from tests.end_to_end.page_parts import expect, ranking, settle, toast

pytestmark = pytest.mark.integration

PROBLEM = '{"title": "Unknown company", "status": 404, "detail": "It is gone.", "type": "/docs#unknown-company"}'
GONE = {"status": 404, "content_type": "application/problem+json", "body": PROBLEM}


def opened_on(page: Any, path: str) -> Any:
    ranking(page, path)  # before it is there, the dialog knows no company to suggest pairs of
    return opened(page)


def opened(page: Any) -> Any:
    page.get_by_role("button", name="Judge pairs").click()
    dialog = page.get_by_role("dialog", name="What to judge next")
    dialog.wait_for()
    return dialog


def companies(dialog: Any) -> Any:
    """Return the locator of the two names of the pair."""
    return dialog.locator("#pair h3")


def pair(dialog: Any) -> list[str]:
    """The two companies that are shown, once they are."""
    expect(companies(dialog)).to_have_count(2)
    found: list[str] = companies(dialog).all_inner_texts()
    return found


def said(dialog: Any, words: str) -> None:
    dialog.locator("#judge-said").filter(has_text=words).wait_for()


def events(page: Any) -> list[str]:
    """What was ever said, oldest first."""
    return [each["verdict"] for each in reversed(page.request.get("/feedback").json()["events"])]


def test_pairs_are_judged_one_after_the_other_by_single_keys(own: Any) -> None:
    dialog = opened_on(own, "/?company=heineken&k=10")
    first = pair(dialog)
    assert first[0] == "Heineken N.V."
    expect(dialog.locator("#pair")).to_contain_text("brews and sells lager", use_inner_text=True)
    own.keyboard.press("a")
    said(dialog, f"{first[0]} and {first[1]}: competitors.")
    second = pair(dialog)
    assert second != first
    own.keyboard.press("r")
    said(dialog, f"{second[1]}: no competitors.")
    third = pair(dialog)
    own.keyboard.press("c")
    said(dialog, f"{third[1]}: cannot be told.")
    fourth = pair(dialog)
    own.keyboard.press("s")
    said(dialog, f"{fourth[1]}: skipped.")
    expect(dialog.locator("#judge-count")).to_have_text("3 pairs judged", use_inner_text=True)
    assert events(own) == ["competitor", "not_competitor", "unsure"]
    kept = own.request.get("/feedback").json()["events"][0]
    assert (kept["anchor"], kept["score"] is not None, bool(kept["generation"]), bool(kept["bundle_id"])) == (
        *("heineken", True, True, True),
    )


def test_undo_brings_the_pair_back_and_withdraws_what_was_said(own: Any) -> None:
    dialog = opened_on(own, "/?company=heineken&k=10")
    first = pair(dialog)
    own.keyboard.press("a")
    said(dialog, "competitors.")
    own.keyboard.press("u")
    said(dialog, "undone.")
    expect(companies(dialog)).to_have_text(first)
    expect(dialog.get_by_role("button", name="Undo")).to_be_hidden()
    dialog.get_by_role("button", name="No competitors").click()
    said(dialog, "no competitors.")
    dialog.get_by_role("button", name="Undo").click()
    said(dialog, "undone.")
    assert events(own) == ["competitor", "withdrawn", "not_competitor", "withdrawn"]
    assert own.request.get("/feedback/pairs").text() == ""


def test_what_was_judged_there_is_marked_in_the_ranking_behind_it(own: Any) -> None:
    ranking(own, "/?company=heineken&k=100")
    dialog = opened_on(own, "/?company=heineken&k=100")
    _, hit = pair(dialog)
    dialog.get_by_role("button", name="Competitors", exact=False).first.click()
    said(dialog, "competitors.")
    own.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    expect(own.locator("#hits .accepted .name")).to_have_text([hit])
    own.get_by_role("link", name="1 labelled pair").wait_for()


def test_a_skipped_pair_does_not_come_again_and_the_next_ten_do(own: Any) -> None:
    dialog = opened_on(own, "/?company=heineken&k=10")
    seen = set()
    for _ in range(12):
        shown = tuple(pair(dialog))
        assert shown not in seen
        seen.add(shown)
        own.keyboard.press("s")
        said(dialog, f"{shown[1]}: skipped.")
    assert events(own) == []


def test_where_nobody_asked_for_anything_yet_it_says_what_to_do(own: Any) -> None:
    own.goto("/")
    dialog = opened(own)
    dialog.get_by_text("Nothing is left to suggest here.").wait_for()
    expect(dialog.get_by_role("button", name="Skip")).to_be_hidden()
    own.keyboard.press("a")
    own.request.post("/feedback", data={"anchor": "heineken", "hit": "carlsberg", "verdict": "competitor"})
    own.goto("/")
    dialog = opened(own)
    expect(companies(dialog).filter(has_text="Heineken N.V.")).to_have_count(1)
    assert events(own) == ["competitor"]


def test_single_keys_do_nothing_where_they_are_switched_off(own: Any) -> None:
    own.goto("/")
    own.get_by_role("button", name="Keys").click()
    own.get_by_role("dialog", name="Keys").get_by_role("checkbox").uncheck()
    own.keyboard.press("Escape")
    dialog = opened_on(own, "/?company=heineken&k=10")
    shown = pair(dialog)
    for key in "arcs":
        own.keyboard.press(key)
    dialog.get_by_role("button", name="Cannot tell").click()
    said(dialog, f"{shown[1]}: cannot be told.")
    assert events(own) == ["unsure"]


def test_a_verdict_that_is_not_kept_leaves_the_pair(own: Any) -> None:
    dialog = opened_on(own, "/?company=heineken&k=10")
    shown = pair(dialog)
    own.route("**/feedback", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    own.keyboard.press("a")
    toast(own, "The service does not answer")
    expect(companies(dialog)).to_have_text(shown)
    expect(dialog.locator("#judge-count")).to_have_text("")


def test_a_pair_that_cannot_be_shown_cannot_be_judged(own: Any) -> None:
    dialog = opened_on(own, "/?company=heineken&k=10")
    first = pair(dialog)
    own.route("**/companies/*", lambda route: route.fulfill(**GONE))
    # The page has read the companies of the second pair already, not those of the third.
    own.keyboard.press("a")
    said(dialog, f"{first[1]}: competitors.")
    second = pair(dialog)
    own.keyboard.press("s")
    said(dialog, f"{second[1]}: skipped.")
    dialog.get_by_text("cannot be shown. Unknown company:").wait_for()
    own.keyboard.press("r")
    own.unroute("**/companies/*")
    dialog.get_by_role("button", name="Try again").click()
    third = pair(dialog)
    assert events(own) == ["competitor"]
    own.keyboard.press("r")
    said(dialog, f"{third[0]} and {third[1]}: no competitors.")
    assert events(own) == ["competitor", "not_competitor"]


def test_while_a_pair_is_read_none_stands_there_and_no_key_meets_it(own: Any) -> None:
    dialog = opened_on(own, "/?company=heineken&k=10")
    first = pair(dialog)
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    own.route("**/companies/*", hold)
    own.keyboard.press("a")
    said(dialog, f"{first[1]}: competitors.")
    second = pair(dialog)  # read beforehand
    own.keyboard.press("s")
    said(dialog, f"{second[1]}: skipped.")
    expect(companies(dialog)).to_have_count(0)
    for key in "rcs":
        own.keyboard.press(key)
    expect(dialog.locator("#judge-said")).to_have_text(re.compile(rf"{re.escape(second[1])}: skipped\.$"))
    # Meanwhile what was said last can be undone.
    own.keyboard.press("u")
    said(dialog, f"{first[1]}: undone.")
    expect(companies(dialog)).to_have_text(first)
    for route in held:
        route.continue_()
    own.unroute("**/companies/*")
    settle(own)
    expect(companies(dialog)).to_have_text(first)
    assert events(own) == ["competitor", "withdrawn"]


def test_a_pair_that_cannot_be_shown_can_be_skipped(own: Any) -> None:
    own.route("**/companies/*", lambda route: route.fulfill(**GONE))
    dialog = opened_on(own, "/?company=heineken&k=10")
    dialog.get_by_text("cannot be shown. Unknown company:").wait_for()
    own.unroute("**/companies/*")
    own.keyboard.press("s")
    said(dialog, "skipped.")
    pair(dialog)
    assert events(own) == []


def test_where_nothing_can_be_suggested_the_last_pair_is_gone_and_it_can_be_tried_again(own: Any) -> None:
    dialog = opened_on(own, "/?company=heineken&k=10")
    first = pair(dialog)
    own.keyboard.press("a")
    said(dialog, f"{first[1]}: competitors.")
    pair(dialog)
    own.route("**/feedback/next*", lambda route: route.abort())
    dialog.get_by_label("Pairs of").select_option("")
    dialog.get_by_text("No pair can be suggested. The service does not answer:").wait_for()
    dialog.locator("#pair").focus()
    for key in "rcs":
        own.keyboard.press(key)
    own.unroute("**/feedback/next*")
    dialog.get_by_role("button", name="Try again").click()
    pair(dialog)
    assert events(own) == ["competitor"]


def test_a_key_held_down_judges_one_pair(own: Any) -> None:
    dialog = opened_on(own, "/?company=heineken&k=10")
    first = pair(dialog)
    sent: list[str] = []
    own.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    own.keyboard.down("a")
    said(dialog, f"{first[1]}: competitors.")
    second = pair(dialog)
    for _ in range(3):
        own.keyboard.down("a")  # repeats
    own.keyboard.up("a")
    expect(companies(dialog)).to_have_text(second)
    assert len(sent) == 1
    assert events(own) == ["competitor"]


def test_who_may_give_no_feedback_is_not_asked_for_it(own: Any) -> None:
    problem = '{"title": "The key is not allowed this", "status": 403, "detail": "", "type": "/docs#scope-missing"}'
    own.route("**/feedback*/**", lambda route: route.fulfill(status=403, content_type="application/json", body=problem))
    ranking(own, "/?company=heineken&k=10")
    own.wait_for_load_state("networkidle")
    expect(own.locator("#open-judge")).to_be_hidden()
