"""Lists: questions that are kept by name, and names that are pasted."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.page_parts import address_has, expect, hits, names, ranking, row, toast

pytestmark = pytest.mark.integration

BREWERS = "Carlsberg\nheineken\nNo Such Brewery 1234\n"


def save_as(page: Any, name: str) -> None:
    page.get_by_role("button", name="Save list").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Save", exact=True).click()
    toast(page, f"Saved as “{name}”.")


def pasted(page: Any, words: str) -> Any:
    page.get_by_role("button", name="Paste a list").click()
    dialog = page.get_by_role("dialog", name="Paste a list")
    dialog.get_by_label("Names or domains, one a line").fill(words)
    dialog.get_by_role("button", name="Find them").click()
    dialog.locator("#matches tr").first.wait_for()
    return dialog


def test_a_saved_list_is_opened_again_with_all_of_its_question(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&company=carlsberg&weight=2&filter=country!%3DJapan&exclude=starbucks&k=10")
    save_as(own, "Brewers")
    address_has(own, "list=Brewers")
    own.goto("/")
    own.get_by_role("button", name="Saved lists").click()
    own.get_by_role("dialog", name="Saved lists").get_by_role("button", name="Brewers", exact=True).click()
    own.get_by_role("heading", name="Heineken N.V. + 1").wait_for()
    expect(hits(own)).to_have_text(shown)
    address_has(own, "weight=2")


def test_a_ranking_of_a_typed_name_is_saved_with_the_id_that_was_found(own: Any) -> None:
    # "Heinekn" is no name of a company, only similar to one: a list is not saved by it.
    own.goto("/?company=Heinekn&company=Carlsberg&unlike=Danone&k=10")
    shown = names(own)
    address_has(own, "company=heineken&company=carlsberg&unlike=danone")
    save_as(own, "Brewers")
    kept = own.request.get("/lists/Brewers").json()["question"]
    assert [each["company"] for each in (*kept["anchors"], *kept["negatives"])] == ["heineken", "carlsberg", "danone"]
    own.get_by_role("button", name="More companies").click()  # the cursor belongs to the names as they were typed
    own.locator("#hits > li").nth(10).wait_for()
    assert names(own)[:10] == shown


def test_a_typed_name_gets_its_id_and_its_verdicts_and_likes_are_about_that(own: Any) -> None:
    own.goto("/")
    own.get_by_role("combobox", name="Company name").fill("Heinekn")
    own.keyboard.press("Enter")
    shown = names(own)
    own.get_by_text("found as “Heinekn”").wait_for()
    own.get_by_role("button", name="Add Heinekn").click()
    expect(own.get_by_role("dialog", name="Add a company").get_by_label("Name")).to_have_value("Heinekn")
    own.keyboard.press("Escape")
    own.get_by_role("button", name=f"Accept {shown[0]}").click()
    toast(own, f"{shown[0]} accepted.")
    [verdict] = own.request.get("/feedback?anchor=heineken").json()["verdicts"]
    assert verdict["verdict"] == "competitor"
    own.get_by_role("button", name=f"More like {shown[0]}").click()
    own.wait_for_url("**/?company=heineken&company=**")
    save_as(own, "Brewers")


def test_an_address_that_names_a_list_shows_it(own: Any) -> None:
    shown = ranking(own, "/?company=heineken&k=10")
    save_as(own, "Beer & more")
    own.goto("/?list=Beer+%26+more")
    own.get_by_role("heading", name="Heineken N.V.").wait_for()
    expect(hits(own)).to_have_text(shown)


def test_what_was_not_there_at_the_last_look_is_marked_as_new(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10&exclude=carlsberg")
    save_as(own, "Brewers")
    # The same name with another question: the hit that it brings in was never looked at.
    own.evaluate(
        """fetch("/lists/Brewers", {method: "PUT", headers: {"Content-Type": "application/json"},
           body: JSON.stringify({question: {anchors: [{company: "heineken"}], k: 10, rank: "comparable"}})})
           .then(() => 1)"""
    )
    own.goto("/?list=Brewers")
    toast(own, "1 company is new on “Brewers”.")
    expect(row(own, "Carlsberg A/S").locator(".title")).to_contain_text("new", use_inner_text=True)
    own.locator("#toast").get_by_role("button", name="Mark as seen").click()
    own.locator("#hits .new:visible").first.wait_for(state="hidden")
    own.reload(wait_until="networkidle")
    names(own)
    expect(own.locator("#hits .new:visible")).to_have_count(0)


def test_what_is_new_on_all_lists_is_asked_with_one_request(own: Any) -> None:
    for name in ("a", "b", "c"):
        question = {"question": {"anchors": [{"company": "heineken"}], "k": 10}}
        assert own.request.put(f"/lists/{name}", data=question).status == 201
    assert own.request.post("/lists/b/looked").status == 200
    own.goto("/")
    own.wait_for_load_state("networkidle")
    asked: list[str] = []
    own.on(
        "request", lambda request: asked.append(request.url.partition("/lists")[2]) if "/lists" in request.url else None
    )
    own.get_by_role("button", name="Saved lists").click()
    dialog = own.get_by_role("dialog", name="Saved lists")
    expect(dialog.locator(".new:visible")).to_have_text(["10 new", "10 new"])
    assert asked == ["", "?new=true"]


def test_saved_lists_name_their_companies_and_what_they_are_unlike(own: Any) -> None:
    question = {
        "anchors": [{"company": "heineken"}, {"company": "carlsberg"}, {"text": "brews beer"}, {"company": "ab-inbev"}],
        "negatives": [{"company": "starbucks"}],
        "filters": [{"field": "country", "none_of": ["Japan"]}],
    }
    assert own.request.put("/lists/Brewers", data={"question": question}).ok
    own.goto("/")
    own.get_by_role("button", name="Saved lists").click()
    words = "Heineken N.V. + Carlsberg A/S + “brews beer” and 1 more · unlike Starbucks Corporation · 1 filter · saved"
    own.get_by_role("dialog", name="Saved lists").get_by_text(words).wait_for()


def anchors_of(page: Any, name: str) -> list[str]:
    return [each["company"] for each in page.request.get(f"/lists/{name}").json()["question"]["anchors"]]


def test_a_list_that_was_changed_is_no_longer_that_list(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    save_as(own, "Brewers")
    own.get_by_role("button", name="More like Carlsberg A/S").click()
    own.get_by_role("heading", name="Heineken N.V. + 1").wait_for()
    expect(own).not_to_have_url(re.compile("list="))


def test_the_question_of_a_list_is_replaced_only_by_a_second_press(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    save_as(own, "Drinks")
    own.get_by_role("link", name="Carlsberg A/S", exact=True).click()
    own.get_by_role("heading", name="Carlsberg A/S", level=1).wait_for()
    own.get_by_role("button", name="Save list").click()
    expect(own.get_by_label("Name", exact=True)).to_have_value("")
    own.get_by_label("Name", exact=True).fill("Drinks")
    own.get_by_role("button", name="Save", exact=True).click()
    alert = own.get_by_role("dialog", name="Save this question as a list").get_by_role("alert")
    expect(alert).to_contain_text("is the saved list of a question. Replace it with this question?")
    assert anchors_of(own, "Drinks") == ["heineken"]
    with own.expect_response(lambda answer: answer.request.method == "PUT"):
        own.get_by_role("button", name="Replace it").click()
    assert anchors_of(own, "Drinks") == ["carlsberg"]


def test_the_same_companies_are_saved_again_under_the_name_they_had(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    save_as(own, "Drinks")
    own.get_by_label("Show").select_option("50")
    own.wait_for_url("**k=50")
    names(own)
    own.get_by_role("button", name="Save list").click()
    expect(own.get_by_label("Name", exact=True)).to_have_value("Drinks")


def test_the_same_companies_with_another_filter_are_another_question(own: Any) -> None:
    ranking(own, "/?company=Heineken&k=10")
    save_as(own, "Drinks")
    save_as(own, "Drinks")  # the same again replaces nothing
    ranking(own, "/?company=heineken&k=10&country=Japan")
    own.get_by_role("button", name="Save list").click()
    own.get_by_label("Name", exact=True).fill("Drinks")
    own.get_by_role("button", name="Save", exact=True).click()
    own.get_by_role("button", name="Replace it").wait_for()
    assert own.request.get("/lists/Drinks").json()["question"]["filters"] == []


def test_a_pasted_list_is_not_offered_the_name_of_the_open_one(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    save_as(own, "Drinks")
    pasted(own, "Carlsberg\nDiageo\n").get_by_role("button", name="Save as a list").click()
    expect(own.get_by_label("Name", exact=True)).to_have_value("")


def test_a_list_is_deleted_only_if_that_is_confirmed(own: Any) -> None:
    ranking(own, "/?company=heineken&k=10")
    save_as(own, "Brewers")
    own.get_by_role("button", name="Saved lists").click()
    dialog = own.get_by_role("dialog", name="Saved lists")
    own.once("dialog", lambda asked: asked.dismiss())
    dialog.get_by_role("button", name="Delete Brewers").click()
    assert anchors_of(own, "Brewers") == ["heineken"]
    own.once("dialog", lambda asked: asked.accept())
    dialog.get_by_role("button", name="Delete Brewers").click()
    dialog.get_by_text("No list yet").wait_for()


def test_a_link_to_a_list_that_is_gone_leads_on(own: Any) -> None:
    own.goto("/?list=clients")
    alert = own.locator("#message")
    words = "no saved list 'clients'; it may have been deleted or renamed"
    expect(alert.locator(".detail")).to_contain_text(words)
    own.get_by_role("heading", name="Who else does this?").wait_for()
    alert.get_by_role("button", name="Saved lists").click()
    own.get_by_role("dialog", name="Saved lists").get_by_text("No list yet").wait_for()
    own.request.put("/lists/clients", data={"companies": ["carlsberg"]})
    own.goto("/")
    own.get_by_role("button", name="Saved lists").click()
    own.request.delete("/lists/clients")
    own.get_by_role("button", name="clients", exact=True).click()
    toast(own, words)


def test_pasted_names_become_anchors_and_misses_are_said(sample: Any) -> None:
    sample.goto("/")
    dialog = pasted(sample, BREWERS)
    dialog.get_by_role("heading", name="2 of 3 lines found").wait_for()
    rows = dialog.locator("#matches tr")
    expect(rows.nth(0)).to_contain_text("Carlsberg A/S", use_inner_text=True)
    expect(rows.nth(0)).to_contain_text("%", use_inner_text=True)
    expect(rows.nth(2).get_by_role("checkbox")).to_be_disabled()
    expect(rows.get_by_role("button", name="Add it")).to_have_count(1)
    expect(dialog.get_by_role("button", name="Exclude 2")).to_have_attribute("title", re.compile("ask about a company"))
    dialog.get_by_role("button", name="Find companies like these 2").click()
    sample.get_by_role("heading", name="Carlsberg A/S + 1").wait_for()
    address_has(sample, "company=carlsberg&company=heineken")


def test_pasted_names_can_be_left_out(sample: Any) -> None:
    sample.goto("/?company=ab-inbev&k=10")
    expect(row(sample, "Heineken N.V.")).to_be_visible()
    pasted(sample, BREWERS).get_by_role("button", name="Exclude 2").click()
    sample.get_by_text("2 companies excluded").wait_for()
    for name in ("Heineken N.V.", "Carlsberg A/S"):
        expect(row(sample, name)).to_have_count(0)


def test_a_table_is_read_by_its_columns(sample: Any) -> None:
    sample.goto("/")
    dialog = pasted(sample, "name,domain\nSome brewer,theheinekencompany.com\n")
    expect(dialog.locator("#matches tr").first).to_contain_text("Heineken N.V.", use_inner_text=True)


def test_a_table_without_a_known_column_of_names_is_told_how_to_name_it(sample: Any) -> None:
    sample.goto("/")
    dialog = pasted(sample, "Partner,Revenue\nNike,5\nAdidas,6\n")
    expect(dialog.get_by_role("alert")).to_contain_text("its first line must name the columns")


@pytest.mark.parametrize(("name", "start"), [("list.xlsx", b"PK\x03\x04\x14\0"), ("list.parquet", b"PAR1\x15\0")])
def test_a_file_that_is_not_text_is_refused(sample: Any, tmp_path: Path, name: str, start: bytes) -> None:
    sheet, table = tmp_path / name, tmp_path / "list.csv"
    sheet.write_bytes(start)
    table.write_text("name\nStarbucks\n")
    sample.goto("/")
    sample.get_by_role("button", name="Paste a list").click()
    dialog = sample.get_by_role("dialog", name="Paste a list")
    dialog.get_by_label("Open a CSV file").set_input_files(sheet)
    expect(dialog.get_by_role("alert")).to_contain_text("save it as CSV")
    dialog.get_by_label("Open a CSV file").set_input_files(table)
    expect(dialog.get_by_role("alert")).to_have_text("")
    names = dialog.get_by_label("Names or domains, one a line")
    expect(names).to_have_value("name\nStarbucks\n")
    table.write_bytes("Nestlé\n".encode("cp1252"))
    dialog.get_by_label("Open a CSV file").set_input_files(table)
    expect(names).to_have_value("Nestlé\n")
    expect(dialog.get_by_role("alert")).to_contain_text("was read as Windows-1252")


def test_a_name_with_a_comma_is_no_table(sample: Any) -> None:
    sample.goto("/")
    dialog = pasted(sample, "Coca-Cola Company, The\nHeineken\n")
    expect(dialog.locator("#matches tr")).to_have_count(2)


def test_a_corrected_line_leaves_the_choices_of_the_others(sample: Any) -> None:
    sample.goto("/")
    dialog = pasted(sample, "Starbucks\nTobacco\nNo Such Brewery 1234\n")
    dialog.get_by_label("Company for Tobacco").select_option("japan-tobacco")
    dialog.get_by_role("checkbox", name="Use Starbucks Corporation").uncheck()
    dialog.get_by_label("Names or domains, one a line").fill("Starbucks\nTobacco\nHeineken\n")
    dialog.get_by_role("button", name="Find them").click()
    dialog.get_by_role("checkbox", name="Use Heineken N.V.").wait_for()
    expect(dialog.get_by_label("Company for Tobacco")).to_have_value("japan-tobacco")
    ticked = dialog.locator("#matches").get_by_role("checkbox", checked=True)
    expect(ticked).to_have_count(2)
    for place, label in enumerate(("Use Tobacco", "Use Heineken N.V.")):
        expect(ticked.nth(place)).to_have_attribute("aria-label", label)


def test_several_names_in_one_line_are_told_to_be_written_below_each_other(sample: Any) -> None:
    for words in ("Heineken, Carlsberg, Diageo, Starbucks", "Heineken; Diageo; Starbucks\nCarlsberg"):
        sample.goto("/")
        dialog = pasted(sample, words)
        dialog.get_by_text("Write one company per line: a line with several finds nothing.").wait_for()


def test_nothing_pasted_is_said(sample: Any) -> None:
    sample.goto("/")
    sample.get_by_role("button", name="Paste a list").click()
    sample.get_by_role("button", name="Find them").click()
    expect(sample.locator("#paste-error")).to_have_text("Write or paste at least one name.", use_inner_text=True)
