"""Lists of companies on the page: kept from a pasted list or from hits, excluded, compared and taken along."""

import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.end_to_end.page_parts import expect, hits, names, ranking, row, settle, toast
from tests.end_to_end.test_page_lists import pasted

pytestmark = pytest.mark.integration


def keep(page: Any, name: str, *ids: str) -> None:
    assert page.request.put(f"/lists/{name}", data={"companies": list(ids)}).ok


def companies_of(page: Any, name: str) -> list[str]:
    found: list[str] = page.request.get(f"/lists/{name}").json()["companies"]
    return found


def save_under(page: Any, name: str) -> Any:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Save", exact=True).click()
    dialog = page.get_by_role("dialog", name=name, exact=True)
    dialog.wait_for()
    return dialog


def part(dialog: Any, title: str) -> Any:
    """Return the locator of the names in one part of the dialog."""
    return dialog.locator("section").filter(has_text=title).locator("tbody .name")


def workbook(page: Any, button: Any) -> tuple[str, list[dict[str, Any]]]:
    """The name of the Excel file that a click brings, and its rows."""
    with page.expect_download() as download:
        button.click()
    content = Path(download.value.path()).read_bytes()
    [header, *rows] = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].values
    return download.value.suggested_filename, [dict(zip(map(str, header), each, strict=True)) for each in rows]


def test_a_pasted_list_of_more_than_ten_is_kept_as_companies(own: Any) -> None:
    hits = own.request.get("/similar/heineken?k=14&reasons=0").json()["hits"]
    ids = [hit["company"]["id"] for hit in hits]
    own.goto("/")
    dialog = pasted(own, "\n".join([*ids, "No Such Brewery 1234"]))
    expect(dialog.get_by_role("button", name="Find companies like at most 10")).to_be_disabled()
    dialog.get_by_role("button", name="Save as a list").click()
    shown = save_under(own, "Brewers & more")
    toast(own, "14 companies saved as “Brewers & more”.")
    expect(part(shown, "14 companies")).to_have_count(14)
    assert companies_of(own, "Brewers & more") == ids


def test_a_website_that_was_written_once_is_shown_once(sample: Any) -> None:
    sample.goto("/")
    dialog = pasted(sample, "theheinekencompany.com\n")
    expect(dialog.locator("#matches td").nth(1)).to_have_text("theheinekencompany.com", use_inner_text=True)


def test_companies_are_added_to_a_list_that_others_made_since_the_page_was_opened(own: Any) -> None:
    own.goto("/")
    dialog = pasted(own, "heineken\ncarlsberg")
    keep(own, "Colleague", "ab-inbev", "heineken")
    dialog.get_by_role("button", name="Save as a list").click()
    save_under(own, "Colleague")
    toast(own, "1 company added to “Colleague”.")
    assert companies_of(own, "Colleague") == ["ab-inbev", "heineken", "carlsberg"]


def test_accepted_hits_are_added_to_a_list_and_marked(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&k=10")
    expect(own.locator("#add-to-list")).to_be_hidden()
    for name in shown[:2]:
        own.get_by_role("button", name=f"Accept {name}").click()
        toast(own, f"{name} accepted.")
    own.get_by_role("button", name="Add 2 accepted companies to a list").click()
    own.get_by_role("dialog", name="Add 2 companies to a list").wait_for()
    expect(own.locator("#list-name")).to_be_focused()
    dialog = save_under(own, "Contacted")
    expect(part(dialog, "On the list and in the ranking")).to_have_text(shown[:2])
    own.keyboard.press("Escape")
    for name in shown[:2]:
        expect(row(own, name)).to_contain_text("on “Contacted”", use_inner_text=True)
    expect(row(own, shown[2])).not_to_contain_text("on “Contacted”", use_inner_text=True)

    own.get_by_role("button", name=f"Accept {shown[2]}").click()
    toast(own, f"{shown[2]} accepted.")
    own.get_by_role("button", name="Add 3 accepted companies to a list").click()
    own.get_by_role("dialog", name="Add 3 companies to a list").get_by_role(
        "button", name="Contacted", exact=True
    ).click()
    own.keyboard.press("Enter")
    dialog = own.get_by_role("dialog", name="Contacted", exact=True)
    dialog.wait_for()
    toast(own, "1 company added to “Contacted”.")
    assert len(companies_of(own, "Contacted")) == 3
    dialog.get_by_role("button", name="Undo").click()
    row(own, shown[2]).locator(".listed").wait_for(state="detached")
    assert len(companies_of(own, "Contacted")) == 2


def test_a_list_is_excluded_and_the_address_carries_it(own: Any) -> None:
    keep(own, "Contacted", "carlsberg", "ab-inbev")
    before = ranking(own, "/?company=heineken&k=10")
    assert "Carlsberg A/S" in before
    own.get_by_role("button", name="Saved lists").click()
    own.get_by_role("dialog", name="Saved lists").get_by_role("button", name="Contacted", exact=True).click()
    own.get_by_role("button", name="Exclude from the ranking").click()
    own.get_by_role("button", name="No longer exclude the list Contacted").wait_for()
    expect(row(own, "Carlsberg A/S")).to_have_count(0)
    own.reload()
    names(own)
    expect(row(own, "Carlsberg A/S")).to_have_count(0)
    own.get_by_role("button", name="No longer exclude the list Contacted").click()
    own.wait_for_url(lambda url: "exclude_list" not in url)
    expect(hits(own)).to_have_text(before)


def test_a_saved_query_keeps_the_lists_that_it_excludes(own: Any) -> None:
    keep(own, "Contacted", "carlsberg")
    shown = ranking(own, "/?company=heineken&k=10&exclude_list=Contacted")
    own.get_by_role("button", name="Save list").click()
    own.get_by_label("Name", exact=True).fill("Brewers")
    own.get_by_role("button", name="Save", exact=True).click()
    toast(own, "Saved as “Brewers”.")
    assert ranking(own, "/?list=Brewers") == shown
    own.get_by_role("button", name="Saved lists").click()
    own.get_by_text("without “Contacted”").wait_for()


def test_a_list_of_companies_is_replaced_by_a_question_only_if_that_is_confirmed(own: Any) -> None:
    keep(own, "Contacted", "carlsberg", "starbucks")
    ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name="Save list").click()
    own.get_by_label("Name", exact=True).fill("Contacted")
    own.get_by_role("button", name="Save", exact=True).click()
    own.get_by_text("“Contacted” is a list of 2 companies. Replace it with this question?").wait_for()
    assert companies_of(own, "Contacted") == ["carlsberg", "starbucks"]
    own.get_by_label("Name", exact=True).fill("Contacted too")  # another name asks nothing
    own.get_by_role("button", name="Save", exact=True).wait_for()
    own.get_by_label("Name", exact=True).fill("Contacted")
    own.get_by_role("button", name="Save", exact=True).click()
    own.get_by_role("button", name="Replace it").click()
    toast(own, "Saved as “Contacted”.")
    own.goto("/?company=heineken&exclude_list=Contacted")
    own.get_by_text("holds a query, not companies; give the name of a list of companies").wait_for()


def test_a_saved_question_is_replaced_by_companies_only_if_that_is_confirmed(own: Any) -> None:
    assert own.request.put("/lists/Brewers", data={"question": {"anchors": [{"company": "heineken"}]}}).ok
    own.goto("/")
    pasted(own, "Carlsberg").get_by_role("button", name="Save as a list").click()
    own.get_by_label("Name", exact=True).fill("Brewers")
    # Twice at once: nobody has read yet what the page asks.
    own.evaluate("const form = document.querySelector('#saving form'); form.requestSubmit(); form.requestSubmit()")
    own.get_by_text("“Brewers” is the saved list of a question. Replace it with 1 company?").wait_for()
    settle(own)
    assert companies_of(own, "Brewers") is None
    own.get_by_role("button", name="Replace it").click()
    toast(own, "1 company saved as “Brewers”.")
    assert companies_of(own, "Brewers") == ["carlsberg"]


def test_the_company_asked_about_and_those_without_a_rank_have_headings_of_their_own(own: Any) -> None:
    keep(own, "Contacted", "heineken", "carlsberg", "starbucks")
    ranking(own, "/?company=heineken&min_probability=0.2&k=10")
    own.get_by_role("button", name="Saved lists").click()
    own.get_by_role("dialog", name="Saved lists").get_by_role("button", name="Contacted", exact=True).click()
    dialog = own.get_by_role("dialog", name="Contacted", exact=True)
    dialog.wait_for()
    expect(part(dialog, "On the list: the company you ask about")).to_have_text(["Heineken N.V."])
    expect(part(dialog, "On the list, not among the first 250")).to_have_text(["Starbucks Corporation"])
    expect(part(dialog, "further down")).to_have_count(0)
    expect(dialog).not_to_contain_text("cosine 1.00", use_inner_text=True)


def test_a_list_opens_beside_the_ranking_of_the_page(own: Any) -> None:
    keep(own, "Contacted", "heineken", "starbucks", "asahi")
    address = "/?company=Heinekn&company=carlsberg&unlike=starbucks&filter=country!%3DJapan&exclude_list=Contacted"
    ranking(own, address)
    shown = ranking(own, own.url.replace("&exclude_list=Contacted", ""))
    ranking(own, address)
    own.get_by_role("button", name="Saved lists").click()
    own.get_by_role("dialog", name="Saved lists").get_by_role("button", name="Contacted", exact=True).click()
    dialog = own.get_by_role("dialog", name="Contacted", exact=True)
    words = (
        "competitors of Heineken N.V. + Carlsberg A/S, unlike Starbucks Corporation, not Japan, ranked by comparable"
    )
    dialog.get_by_text(words).wait_for()
    for place, name in enumerate(shown):
        expect(part(dialog, "In the ranking, not on the list").nth(place)).to_have_text(name)
    expect(part(dialog, "On the list: the company you ask about")).to_have_text(["Heineken N.V."])
    expect(part(dialog, "On the list: the company you look away from")).to_have_text(["Starbucks Corporation"])
    # The filter leaves it out, as it does in the ranking.
    expect(part(dialog, "On the list, not among the first 250")).to_have_text(["Asahi Group Holdings, Ltd."])
    likely = row(own, shown[0]).locator(".match > span").first.text_content()
    expect(dialog.locator("tr").filter(has_text=shown[0])).to_contain_text(likely, use_inner_text=True)
    dialog.get_by_role("button", name="CSV").click()
    toast(own, "Its ranks are those among the competitors of Heineken N.V. alone")


def test_an_excluded_list_that_is_gone_is_said_and_can_be_dropped(own: Any) -> None:
    keep(own, "Contacted", "asahi")
    own.goto("/?company=heineken&exclude_list=Contacted&exclude_list=Gone")
    own.get_by_role("heading", name="Unknown list").wait_for()
    own.get_by_role("button", name="No longer exclude it").click()
    expect(row(own, "Carlsberg A/S")).to_be_visible()
    expect(own).to_have_url("/?company=heineken&exclude_list=Contacted")


def test_a_list_shows_ranks_and_what_is_missing_and_can_be_changed(own: Any) -> None:
    keep(own, "Contacted", "starbucks", "carlsberg")
    shown = ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name="Saved lists").click()
    own.get_by_role("dialog", name="Saved lists").get_by_role("button", name="Contacted", exact=True).click()
    dialog = own.get_by_role("dialog", name="Contacted", exact=True)
    dialog.get_by_text("Beside the first 50 competitors of Heineken N.V.").wait_for()
    cells = dialog.locator("tr").filter(has_text="Carlsberg A/S").locator("td")
    expect(cells.nth(1)).to_have_text(str(shown.index("Carlsberg A/S") + 1))
    missing = [name for name in shown if name != "Carlsberg A/S"]
    for place, name in enumerate(missing[:3]):
        expect(part(dialog, "In the ranking, not on the list").nth(place)).to_have_text(name)
    dialog.get_by_role("button", name=f"Add {missing[0]} to the list").click()
    dialog.get_by_role("button", name=f"Remove {missing[0]} from the list").wait_for()
    dialog.get_by_role("button", name="Remove Carlsberg A/S from the list").click()
    dialog.get_by_role("button", name="Add Carlsberg A/S to the list").wait_for()
    assert len(companies_of(own, "Contacted")) == 2
    dialog.get_by_role("link", name=missing[0], exact=True).click()
    own.get_by_role("heading", name=missing[0], level=1).wait_for()
    expect(dialog).to_be_hidden()


def test_two_lists_are_compared(own: Any) -> None:
    keep(own, "Contacted", "carlsberg", "heineken")
    keep(own, "Clients", "carlsberg", "starbucks")
    own.goto("/?list=Contacted")  # a list of companies shows itself
    dialog = own.get_by_role("dialog", name="Contacted", exact=True)
    dialog.get_by_text("Ask about a company").wait_for()
    dialog.get_by_label("Compare with").select_option("Clients")
    dialog.get_by_text("Beside the list “Clients”").wait_for()
    expect(part(dialog, "On both lists")).to_have_text(["Carlsberg A/S"])
    expect(part(dialog, "Only on this list")).to_have_text(["Heineken N.V."])
    expect(part(dialog, "Only on “Clients”")).to_have_text(["Starbucks Corporation"])


def test_lists_that_are_read_after_one_was_opened_can_be_compared_with_it(own: Any) -> None:
    keep(own, "Contacted", "carlsberg")
    keep(own, "Clients", "carlsberg", "starbucks")
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    own.route("**/lists", hold)
    own.goto("/?list=Contacted")
    dialog = own.get_by_role("dialog", name="Contacted", exact=True)
    dialog.get_by_text("Ask about a company").wait_for()
    for route in held:
        route.continue_()
    own.unroute("**/lists")
    dialog.get_by_label("Compare with").select_option("Clients")
    dialog.get_by_text("Beside the list “Clients”").wait_for()


@pytest.mark.parametrize("others", [[], ["ab-inbev"]])
def test_undoing_a_new_list_keeps_what_others_added(own: Any, others: list[str]) -> None:
    own.goto("/")
    pasted(own, "heineken\ncarlsberg").get_by_role("button", name="Save as a list").click()
    dialog = save_under(own, "Contacted")
    assert own.request.post("/lists/Contacted/companies", data={"add": others}).ok
    dialog.get_by_role("button", name="Undo").click()
    expect(dialog).to_be_hidden()
    own.wait_for_load_state("networkidle")
    lists = own.request.get("/lists").json()["lists"]
    assert [each["companies"] for each in lists] == ([others] if others else [])


def test_ranking_and_list_go_along_as_excel(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&k=10")
    own.get_by_role("button", name=f"Accept {shown[0]}").click()
    toast(own, f"{shown[0]} accepted.")  # else the later of two answers decides which toast stays
    own.get_by_role("button", name=f"Reject {shown[1]}").click()
    toast(own, f"{shown[1]} rejected.")
    own.get_by_role("button", name=f"Note on {shown[0]}").click()
    own.get_by_label("Why? A few words").fill("same shelf")
    own.get_by_role("button", name="Save the note").click()
    toast(own, f"{shown[0]} noted.")
    name, rows = workbook(own, own.get_by_role("button", name="Download Excel"))
    assert name == "competitors-heineken.xlsx"
    assert [each["name"] for each in rows] == [shown[0], *shown[2:]]
    assert [(each["verdict"], each["note"]) for each in rows[:2]] == [("competitor", "same shelf"), (None, None)]
    assert rows[0]["employees"] is not None

    keep(own, "Contacted", "carlsberg", "starbucks")
    own.get_by_role("button", name="Saved lists").click()
    own.get_by_role("dialog", name="Saved lists").get_by_role("button", name="Contacted", exact=True).click()
    dialog = own.get_by_role("dialog", name="Contacted", exact=True)
    name, rows = workbook(own, dialog.get_by_role("button", name="Excel"))
    assert name == "Contacted.xlsx"
    assert [(each["id"], isinstance(each["probability"], float)) for each in rows] == [
        ("carlsberg", True),
        ("starbucks", True),
    ]
