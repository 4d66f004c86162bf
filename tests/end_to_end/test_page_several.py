"""Several verdicts in one step, notes with them, the place of a company, and companies that are added."""

import re
from typing import Any

import pytest

from tests.end_to_end.page_parts import expect, hits, ranking, row, settle, toast
from tests.end_to_end.test_page_manners import refused

pytestmark = pytest.mark.integration


def accepted(page: Any) -> Any:
    """Return the locator of the names of accepted hits."""
    return page.locator("#hits > li.accepted .name")


def located(page: Any, company: str) -> Any:
    page.get_by_label("Where is this company in the ranking?").fill(company)
    page.keyboard.press("Enter")
    return page.locator(".located")


def test_ticked_rows_are_accepted_in_one_step_and_undone_in_one(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&k=10")
    own.get_by_role("checkbox", name=f"Select {shown[1]}").check()
    own.keyboard.press("j")
    own.keyboard.press("x")
    expect(own.locator("#bulk")).to_contain_text("2 selected", use_inner_text=True)
    own.get_by_role("button", name="Accept", exact=True).click()
    toast(own, "2 companies accepted.")
    expect(accepted(own)).to_have_text(shown[1:3])
    own.locator("#ticked").wait_for(state="hidden")  # just after the toast
    own.locator("#toast").get_by_role("button", name="Undo").click()
    toast(own, "2 companies have no verdict now.")
    expect(accepted(own)).to_have_count(0)
    ranking(own, "/?company=heineken&k=10")
    own.wait_for_load_state("networkidle")
    expect(accepted(own)).to_have_count(0)


def test_all_without_a_verdict_from_a_probability_on_are_accepted(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name=f"Reject {shown[0]}").click()
    toast(own, "rejected")
    third = int(row(own, shown[2]).locator(".match > span").first.inner_text().split()[0])
    own.get_by_label("Select all from this probability on, %").fill(str(third - 1))
    own.keyboard.press("Enter")
    own.locator("#ticked").wait_for()
    count = own.locator("#hits .tick:checked").count()
    assert count >= 2
    own.get_by_role("button", name="Accept", exact=True).click()
    toast(own, f"{count} companies accepted.")
    expect(accepted(own)).to_have_text(shown[1 : count + 1])
    expect(own.locator("#hits > li.rejected .name")).to_have_text([shown[0]])
    own.locator("#ticked").wait_for(state="hidden")
    expect(own.locator("#tick-count")).to_have_text("")
    own.get_by_label("Select all from this probability on, %").fill(str(third - 1))
    own.keyboard.press("Enter")
    own.get_by_text("All that likely have a verdict").wait_for()


def test_verdicts_that_several_at_once_replace_are_counted_and_come_back_with_undo(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name=f"Reject {shown[0]}").click()
    toast(own, "rejected")
    own.get_by_role("checkbox", name="Select all", exact=True).check()
    own.get_by_role("button", name="Accept", exact=True).click()
    toast(own, "10 companies accepted; 1 had another verdict.")
    own.locator("#ticked").wait_for(state="hidden")
    own.keyboard.press("u")
    toast(own, "10 companies have their earlier verdicts.")
    expect(own.locator("#hits > li.rejected .name")).to_have_text([shown[0]])
    expect(accepted(own)).to_have_count(0)


def test_a_probability_that_no_company_has_is_said_to_select_none(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    own.get_by_label("Select all from this probability on, %").fill("100")
    own.keyboard.press("Enter")
    own.get_by_text("None is that likely").wait_for()


def test_what_was_saved_before_a_failure_stays_and_can_be_undone(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&k=10")
    own.wait_for_load_state("networkidle")
    sent: list[str] = []

    def second_fails(route: Any) -> None:
        sent.append(route.request.method)
        if sent.count("POST") == 2:
            route.abort()
        else:
            route.continue_()

    own.route("**/feedback", second_fails)
    own.get_by_role("checkbox", name="Select all", exact=True).check()
    own.get_by_role("button", name="Accept", exact=True).click()
    toast(own, "The service does not answer")
    expect(accepted(own)).to_have_text(shown[:1])
    own.unroute("**/feedback")
    own.keyboard.press("u")
    toast(own, f"{shown[0]} has no verdict now.")
    expect(accepted(own)).to_have_count(0)


def test_verdicts_that_are_read_slowly_do_not_undo_a_newer_one(own: Any) -> None:
    held: list[Any] = []
    is_slow = True

    def hold(route: Any) -> None:
        if is_slow:
            held.append(route)
        else:
            route.continue_()

    own.route("**/feedback?*", hold)
    shown = ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name=f"Accept {shown[0]}").click()
    toast(own, "accepted")
    is_slow = False
    before_the_verdict = {"anchor": "heineken", "verdicts": []}
    with own.expect_request("**/feedback?*"):  # the answer is older than the verdict: the page asks again
        for route in held:
            route.fulfill(json=before_the_verdict)
    expect(accepted(own)).to_have_text([shown[0]])


def test_verdicts_that_are_read_while_one_is_saved_do_not_undo_it(own: Any) -> None:
    reads: list[Any] = []
    saves: list[Any] = []

    def hold_read(route: Any) -> None:
        reads.append(route)

    def hold_save(route: Any) -> None:
        saves.append(route)

    own.route("**/feedback?*", hold_read)
    own.route("**/feedback", hold_save)
    shown = ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name=f"Accept {shown[0]}").click()
    expect(accepted(own)).to_have_text([shown[0]])
    for route in reads:
        route.continue_()
    own.unroute("**/feedback?*")
    settle(own)
    for route in saves:
        route.continue_()
    toast(own, "accepted")
    expect(accepted(own)).to_have_text([shown[0]])


def test_a_note_is_kept_with_its_verdict_and_shown_again(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&k=10")
    expect(row(own, shown[0]).locator(".note-button")).to_be_hidden()
    own.keyboard.press("j")
    own.keyboard.press("n")
    toast(own, f"Accept or reject {shown[0]} first")
    own.keyboard.press("a")
    toast(own, "accepted")
    own.keyboard.press("n")
    own.get_by_role("dialog", name=f"Note on {shown[0]}").wait_for()
    own.keyboard.type("Same shelves")
    own.keyboard.press("Enter")
    toast(own, f"{shown[0]} noted.")
    ranking(own, "/?company=heineken&k=10")
    row(own, shown[0]).get_by_text("Same shelves").wait_for()
    expect(accepted(own)).to_have_text([shown[0]])
    # Another verdict keeps the note; one that is taken back loses it, and Undo brings both back.
    own.get_by_role("button", name=f"Reject {shown[0]}").click()
    toast(own, "rejected")
    expect(row(own, shown[0]).get_by_text("Same shelves")).to_be_visible()
    expect(row(own, shown[0]).locator(".note-button")).to_be_visible()
    own.get_by_role("button", name=f"Reject {shown[0]}").click()
    toast(own, "has no verdict now")
    expect(row(own, shown[0]).locator(".noted")).to_be_hidden()
    own.keyboard.press("u")
    row(own, shown[0]).get_by_text("Same shelves").wait_for()
    expect(row(own, shown[0]).locator("[aria-pressed=true]")).to_have_text(re.compile("Reject$"), use_inner_text=True)


def test_a_company_far_down_is_located_with_its_reason_and_can_be_judged(own: Any) -> None:
    every = ranking(own, "/?company=heineken&k=50")
    assert len(ranking(own, "/?company=heineken&k=10")) == 10
    expect(located(own, every[29])).to_contain_text("Rank 30.", use_inner_text=True)
    own.locator(".located .because q").first.wait_for()
    own.locator(".located").get_by_role("button", name=f"Accept {every[29]}").click()
    toast(own, f"{every[29]} accepted.")
    own.get_by_role("button", name="Show the first 50").click()
    expect(hits(own)).to_have_text(every)
    expect(own.locator("#hits > li:focus .name")).to_have_text(every[29])


def test_a_located_company_can_be_looked_away_from(page: Any) -> None:
    ranking(page, "/?company=acme&k=2")
    page.get_by_label("Where is this company in the ranking?").fill("A/S Nord")
    page.keyboard.press("Enter")
    page.locator(".located").get_by_role("button", name="Unlike A/S Nord").click()
    page.wait_for_url("**&unlike=as-nord**")
    page.get_by_role("button", name="No longer unlike A/S Nord").wait_for()
    expect(located(page, "A/S Nord")).to_contain_text("You look away from it.")
    page.locator(".located").get_by_role("button", name="More like A/S Nord").click()
    page.get_by_role("heading", name="Acme Shoes, Inc. + 1").wait_for()
    expect(page).to_have_url("/?company=acme&company=as-nord&k=2")


def test_what_removes_a_company_from_the_ranking_is_said(page: Any) -> None:
    ranking(page, "/?company=acme&country=Germany&min_probability=0.97")
    found = located(page, "clogs")
    for part in (
        "Removed by the filter on country: it has France.",
        "Removed by the minimum probability:",
        "Without filters and the minimum: Rank 2.",
    ):
        expect(found).to_contain_text(part, use_inner_text=True)
    found.get_by_role("button", name="Close").click()
    expect(found).to_have_count(0)
    expect(located(page, "acme")).to_contain_text("This is the company that you ask about", use_inner_text=True)
    expect(found).not_to_contain_text("likely", use_inner_text=True)
    expect(found.locator(".verdict")).to_have_count(0)


def removed_by_two(route: Any) -> None:
    """Answers as if a better hit and an exclusion were the same company."""
    answer = route.fetch()
    removed = [
        {"by": "duplicate", "company": "delta-air", "field": None},
        {"by": "exclude", "company": "zapatos", "field": None},
    ]
    route.fulfill(response=answer, json={**answer.json(), "removed_by": removed})


def test_the_company_that_another_counts_as_is_named(page: Any) -> None:
    page.route("**/similar/locate", removed_by_two)
    ranking(page, "/?company=acme&country=Germany")  # without rows of these two
    found = located(page, "clogs")
    expect(found).to_contain_text("Folded into Delta: the same company", use_inner_text=True)
    expect(found).to_contain_text("It counts as the same company as Zapatos SA", use_inner_text=True)


def test_a_name_that_several_have_offers_them_and_one_is_located(page: Any) -> None:
    ranking(page, "/?company=acme")
    located(page, "Delta").get_by_role("button", name="Clogs").click()
    page.get_by_text("Rank 2.", exact=True).wait_for()
    page.get_by_role("button", name="Go to its row").click()
    expect(page.locator("#hits > li:focus .name")).to_have_text("Clogs")


@pytest.fixture
def adding(own: Any) -> Any:
    """The form for a company that nobody knows."""
    own.goto("/?company=Quuxo Brews Ltd.")
    own.get_by_role("button", name="Add it").click()
    own.get_by_role("dialog", name="Add a company").wait_for()
    return own


def test_a_pasted_name_that_nobody_knows_can_be_added(own: Any) -> None:
    own.goto("/")
    own.get_by_role("button", name="Paste a list").click()
    own.get_by_label("Names or domains, one a line").fill("Carlsberg\nQuuxo Brews Ltd.")
    own.get_by_role("button", name="Find them").click()
    own.get_by_role("button", name="Add it").click()
    adding = own.get_by_role("dialog", name="Add a company")
    expect(adding.get_by_label("Its name")).to_have_value("Quuxo Brews Ltd.")


def test_a_name_that_nobody_knows_can_be_added_and_is_asked_about(adding: Any, sample_index: Any) -> None:
    adding.get_by_label("What does it do?").fill("Brews lager and ale, and sells them to pubs and supermarkets.")
    adding.get_by_label("Website (optional)").fill("https://www.quuxo.example/about")
    expect(adding.locator("#new-id")).to_have_text("quuxo-brews-ltd", use_inner_text=True)
    try:
        adding.get_by_role("button", name="Add it, and show its competitors").click()
        adding.get_by_role("heading", name="Quuxo Brews Ltd.", level=1).wait_for()
        expect(row(adding, "Heineken N.V.")).to_be_visible()
        stored = sample_index.get(sample_index.live().name, ["quuxo-brews-ltd"])["quuxo-brews-ltd"].company
        assert (stored.name, stored.domain) == ("Quuxo Brews Ltd.", "quuxo.example")
    finally:
        adding.request.delete("/companies/quuxo-brews-ltd")


def test_a_description_that_is_too_short_to_rank_by_can_be_corrected_at_once(adding: Any) -> None:
    adding.get_by_label("What does it do?").fill("Brews lager.")
    add = adding.get_by_role("button", name="Add it, and show its competitors")
    try:
        add.click()
        adding.get_by_text("It is stored, but the description has fewer than 3 words").wait_for()
        adding.get_by_label("What does it do?").fill("Brews lager and ale, and sells them to pubs and supermarkets.")
        add.click()
        adding.get_by_role("heading", name="Quuxo Brews Ltd.", level=1).wait_for()
        expect(row(adding, "Heineken N.V.")).to_be_visible()
    finally:
        adding.request.delete("/companies/quuxo-brews-ltd")


def test_a_stored_company_with_too_few_words_can_be_described_instead(adding: Any) -> None:
    adding.get_by_label("What does it do?").fill("Brews lager.")
    try:
        adding.get_by_role("button", name="Add it, and show its competitors").click()
        adding.get_by_role("link", name="Show it as it is").click()
        adding.get_by_role("button", name="Describe it instead").click()
        expect(adding.get_by_label("What does the company do?")).to_be_visible()
    finally:
        adding.request.delete("/companies/quuxo-brews-ltd")


def test_a_company_that_exists_is_not_replaced(adding: Any, sample_index: Any) -> None:
    live = sample_index.live().name
    before = sample_index.get(live, ["heineken"])["heineken"].company
    adding.get_by_label("Its name").fill("Heineken")
    adding.get_by_label("What does it do?").fill("Something else that is long enough to be stored.")
    adding.get_by_role("button", name="Add it, and show its competitors").click()
    adding.get_by_text("There is a company with this id or name already").wait_for()
    adding.get_by_label("Its name").fill("Heineken N.V.")  # whose id would be another one
    adding.get_by_role("button", name="Add it, and show its competitors").click()
    adding.get_by_role("link", name="Heineken N.V. (heineken)").click()
    adding.get_by_role("dialog", name="Add a company").wait_for(state="hidden")
    assert sample_index.get(live, ["heineken"])["heineken"].company == before


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (403, "scope-missing", "Ask the person who runs this service"),
        (403, "writes-off", "Companies cannot be added here"),
    ],
)
def test_who_may_not_write_is_told_whom_to_ask(page: Any, status: int, kind: str, words: str) -> None:
    page.route("**/companies/probe", lambda route: route.fulfill(**refused(status, "No", kind)))
    page.goto("/?company=nobody")
    page.get_by_role("button", name="Add it").click()
    dialog = page.get_by_role("dialog", name="Add a company")
    dialog.get_by_text(words).wait_for()
    expect(dialog.get_by_label("What does it do?")).to_be_hidden()
