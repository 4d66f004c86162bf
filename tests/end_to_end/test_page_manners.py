"""When something is missing, slow or refused: the page says so, waits, asks, and goes on."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.end_to_end.page_parts import expect, hits, names, ranking, settle, toast

pytestmark = pytest.mark.integration

PROBLEM = "application/problem+json"


def api(*names: str) -> re.Pattern[str]:
    """The addresses of these parts of the service, not the page's own files."""
    return re.compile(rf"^http://[^/]+/({'|'.join(names)})([/?]|$)")


def refused(status: int, title: str, kind: str) -> dict[str, Any]:
    body = f'{{"type": "/docs#{kind}", "title": "{title}", "status": {status}, "detail": "why", "instance": "/"}}'
    return {"status": status, "content_type": PROBLEM, "body": body}


def answering(answers: list[dict[str, Any]]) -> Callable[[Any], None]:
    """Gives these answers, one to a request, then lets the service answer."""

    def answer(route: Any) -> None:
        if answers:
            route.fulfill(**answers.pop())
        else:
            route.continue_()

    return answer


def guard_with_a_key(page: Any) -> list[str | None]:
    """Lets the service answer only with the key "right"; the Authorization headers that came."""
    given: list[str | None] = []

    def guarded(route: Any) -> None:
        given.append(route.request.headers.get("authorization"))
        if given[-1] == "Bearer right":
            route.continue_()
        else:
            route.fulfill(**refused(401, "A valid key is needed", "key-needed"))

    page.route(api("similar", "map", "lists", "feedback", "match", "companies"), guarded)
    return given


def test_a_service_that_is_gone_is_said_and_can_be_tried_again(page: Any) -> None:
    ranking(page, "/?company=acme")
    page.route("**/similar/**", lambda route: route.abort())
    page.get_by_role("link", name="Clogs", exact=True).click()
    page.get_by_role("heading", name="The service does not answer").wait_for()
    page.unroute("**/similar/**")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name="Clogs").wait_for()


def test_a_service_with_keys_asks_for_one_and_the_tab_keeps_it(page: Any) -> None:
    guard_with_a_key(page)
    page.goto("/?company=acme")
    page.get_by_role("dialog", name="This service asks for a key").wait_for()
    page.get_by_label("Key", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="The service does not know this key").wait_for()
    page.get_by_label("Key", exact=True).fill("right")
    page.get_by_role("button", name="Use this key").click()
    expect(hits(page).first).to_have_text("Boots GmbH")
    page.reload()
    expect(hits(page).first).to_have_text("Boots GmbH")
    assert page.evaluate("Object.values(sessionStorage)") == ["right"]
    assert "right" not in page.evaluate("JSON.stringify(localStorage)")  # recent searches are there
    expect(page).not_to_have_url(re.compile("right"))


def test_without_a_key_the_page_says_what_is_needed(page: Any) -> None:
    page.route("**/similar/**", lambda route: route.fulfill(**refused(401, "A valid key is needed", "key-needed")))
    page.goto("/?company=acme")
    page.get_by_role("button", name="Without a key").click()
    page.get_by_role("heading", name="A valid key is needed").wait_for()


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        ([{**refused(429, "Too many requests", "rate-limited"), "headers": {"Retry-After": "3"}}], [3]),
        ([refused(503, "Too busy just now", "overloaded")] * 2, [1, 2]),
    ],
)
def test_a_service_that_asks_for_a_pause_is_asked_again_after_it(
    page: Any, answers: list[dict[str, Any]], pauses: list[int]
) -> None:
    waiting = [*answers]
    page.route("**/similar/**", answering(waiting))
    page.clock.install(time=0)
    page.clock.pause_at(1)
    page.goto("/?company=acme")
    for seconds in pauses:
        toast(page, f"The service asks for a pause. Going on in {seconds} s.")
        page.clock.run_for(1000 * seconds)
    expect(hits(page).first).to_have_text("Boots GmbH")
    expect(page.locator("#toast")).to_be_hidden()
    assert waiting == []


def test_a_service_that_has_given_up_is_not_asked_again_by_itself(page: Any) -> None:
    asked: list[str] = []

    def slow(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(**refused(503, "Not answered in time", "took-too-long"))

    page.route("**/similar/**", slow)
    page.goto("/?company=acme")
    page.get_by_role("heading", name="Not answered in time").wait_for()
    assert len(asked) == 1


def test_a_service_without_the_other_parts_still_ranks(page: Any) -> None:
    missing = refused(404, "No such address", "unknown-address")
    page.route(api("feedback", "lists", "map"), lambda route: route.fulfill(**missing))
    page.set_viewport_size({"width": 1440, "height": 900})
    assert ranking(page, "/?company=acme")[0] == "Boots GmbH"
    page.wait_for_load_state("networkidle")
    for element in ("#pairs", "#open-lists", "#save", "#map", "#map-toggle", "#toast"):
        expect(page.locator(element)).to_be_hidden()
    expect(page.get_by_role("button", name="Accept Boots GmbH")).to_be_hidden()


def test_a_service_that_is_busy_for_a_moment_loses_no_part(page: Any) -> None:
    busy = refused(503, "Too busy", "overloaded")
    page.route(api("feedback/pairs"), lambda route: route.fulfill(**busy))
    with page.expect_response("**/feedback/pairs*"):
        ranking(page, "/?company=acme")
    page.get_by_role("button", name="Judge pairs").wait_for()


def test_a_map_that_fails_leaves_the_ranking(page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.route("**/map/**", lambda route: route.fulfill(**refused(500, "Internal error", "internal-error")))
    page.goto("/?company=acme")
    toast(page, "Internal error")
    expect(hits(page).first).to_have_text("Boots GmbH")


def test_while_the_first_answer_is_awaited_its_shape_is_there(page: Any) -> None:
    waiting: list[Any] = []

    def hold(route: Any) -> None:
        waiting.append(route)

    page.route("**/similar/**", hold)
    page.goto("/?company=acme")
    page.locator("#skeleton .row").first.wait_for()
    expect(page.locator("#results")).to_have_attribute("aria-busy", "")
    for route in waiting:
        route.continue_()
    page.unroute("**/similar/**")
    expect(hits(page).first).to_have_text("Boots GmbH")
    expect(page.locator("#skeleton")).to_be_hidden()


def test_an_answer_that_comes_late_does_not_replace_a_newer_one(page: Any) -> None:
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/similar/clogs**", hold)
    ranking(page, "/?company=acme")
    page.get_by_role("link", name="Clogs", exact=True).click()
    page.go_back()
    names(page)
    for route in held:
        route.continue_()
    settle(page)
    expect(page.get_by_role("heading", name="Acme Shoes, Inc.")).to_be_visible()
    expect(hits(page).first).to_have_text("Boots GmbH")


HALF_AN_ANSWER = """
const whole = window.fetch;
window.fetch = (address, request) => {
  if (!address.includes("/similar/clogs")) return whole(address, request);
  const body = new ReadableStream({ start(stream) {
    stream.enqueue(new TextEncoder().encode('{"hits": ['));
    request.signal.addEventListener("abort", () => stream.error(request.signal.reason));
  } });
  return Promise.resolve(new Response(body, { headers: { "Content-Type": "application/json" } }));
};
"""


def test_a_question_that_was_left_amid_its_answer_is_not_told_of(page: Any) -> None:
    page.add_init_script(HALF_AN_ANSWER)
    ranking(page, "/?company=acme")
    page.get_by_role("link", name="Clogs", exact=True).click()
    page.locator("body.waiting").wait_for()
    page.go_back()
    names(page)
    expect(hits(page).first).to_have_text("Boots GmbH")
    settle(page)
    expect(page.locator("#message")).to_have_text("")
    expect(page.locator("#toast")).to_be_hidden()


def test_a_key_is_cleared_of_what_nobody_sees_and_refused_where_it_cannot_be_one(page: Any) -> None:
    given = guard_with_a_key(page)
    page.goto("/?company=acme")
    dialog = page.get_by_role("dialog", name="This service asks for a key")
    page.get_by_label("Key", exact=True).fill("“right”")
    page.get_by_role("button", name="Use this key").click()
    expect(dialog).to_be_visible()
    page.get_by_label("Key", exact=True).fill(" ri\u200bght\ufeff\n")
    page.get_by_role("button", name="Use this key").click()
    expect(hits(page).first).to_have_text("Boots GmbH")
    assert set(given) == {None, "Bearer right"}


def test_what_is_asked_beside_the_rest_waits_for_the_key_too(page: Any) -> None:
    guard_with_a_key(page)
    page.goto("/?company=acme")
    page.get_by_label("Key", exact=True).fill("right")
    page.get_by_role("button", name="Use this key").click()
    names(page)
    page.get_by_role("button", name="Judge pairs").wait_for()


def test_a_key_that_is_given_later_brings_the_parts_that_lacked_it(page: Any) -> None:
    guard_with_a_key(page)
    page.goto("/")
    page.get_by_role("button", name="Without a key").click()
    page.get_by_label("Company name, domain or id").fill("acme")
    page.keyboard.press("Enter")
    page.get_by_label("Key", exact=True).fill("right")
    page.get_by_role("button", name="Use this key").click()
    names(page)
    page.get_by_role("button", name="Saved lists").wait_for()


def test_nothing_moves_for_those_who_asked_for_calm(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.route("**/similar/**", lambda route: None)
    page.goto("/?company=acme")
    expect(page.locator("#skeleton i").first).to_have_css("animation-name", "none")
