"""What is asked, and how it is narrowed down: every part of it by a click, and all of it in the address."""

import re
from typing import Any

import pytest

from tests.end_to_end.page_parts import address_has, downloaded, expect, hits, names, ranking, row, toast

pytestmark = pytest.mark.integration


def test_a_hit_becomes_an_anchor_or_a_negative_by_a_click(page: Any) -> None:
    page.goto("/?company=acme")
    page.get_by_role("button", name="More like Clogs").click()
    page.get_by_role("heading", name="Acme Shoes, Inc. + 1").wait_for()
    expect(row(page, "Clogs")).to_have_count(0)
    page.get_by_role("button", name="Unlike Delta").click()
    page.get_by_role("heading", name="Unlike").wait_for()
    expect(row(page, "Delta")).to_have_count(0)
    address_has(page, "company=acme&company=clogs&unlike=delta-air")
    page.get_by_role("button", name="No longer unlike Delta").click()
    page.get_by_role("heading", name="Unlike").wait_for(state="detached")
    page.get_by_role("button", name="No longer like Clogs").click()
    page.get_by_role("heading", name="Acme Shoes, Inc.", exact=True).wait_for()
    expect(row(page, "Clogs")).to_be_visible()


def test_an_address_with_a_company_as_anchor_and_negative_offers_a_way_on(page: Any) -> None:
    page.goto("/?company=acme&unlike=clogs&unlike=Acme.com")
    page.get_by_role("heading", name="Invalid request").wait_for()
    page.get_by_role("button", name="No longer unlike Acme.com").click()
    page.get_by_role("button", name="No longer unlike Clogs").wait_for()
    expect(page).to_have_url("/?company=acme&unlike=clogs")


def test_an_eleventh_company_is_refused_with_a_word(page: Any) -> None:
    ranking(page, f"/?company=acme{''.join(f'&company=nobody-{number}' for number in range(9))}")
    page.get_by_role("button", name="More like Clogs").click()
    toast(page, "At most 10 companies: remove one first.")


def test_parts_of_an_address_that_mean_nothing_are_said(page: Any) -> None:
    wrong = "rank=foo&min_probability=7&filter=bad&filter=size>=&k=9999&segment=x&weight=5000&contry=France&sort=zzz"
    others = "".join(f"&company=nobody-{number}" for number in range(9))
    ranking(page, f"/?company=acme&{wrong}{others}&company=clogs&segment=2")
    ignored = f"Ignored in the address: {wrong.replace('&', ', ')}, clogs (more than 10)."
    expect(page.locator("#misses .note").filter(has_text="Ignored")).to_have_text([ignored])
    page.get_by_role("checkbox", name="Germany").check()
    page.get_by_role("button", name="Remove filter Germany").wait_for()
    expect(page.locator("#misses")).not_to_contain_text("Ignored")


def test_a_refusal_names_no_member_of_the_api(page: Any) -> None:
    page.goto(f"/?company=acme&text={'makes+shoes+' * 500}")
    words = "the description of company 2 must have at most 5000 characters"
    expect(page.locator("#message .detail")).to_have_text(words)


def test_weights_change_the_ranking_and_stay_in_the_address(page: Any) -> None:
    ranking(page, "/?company=acme&company=delta-air")
    page.get_by_label("Weight of Delta").select_option("5")
    address_has(page, "company=delta-air&weight=5")
    names(page)
    expect(page.get_by_label("Weight of Delta")).to_have_value("5")
    expect(page.get_by_label("Weight of Delta")).to_be_focused()


def test_filters_come_from_what_is_near_and_stay_in_the_address(page: Any) -> None:
    page.goto("/?company=acme")
    page.get_by_role("checkbox", name="Germany").check()
    page.get_by_role("button", name="Remove filter Germany").wait_for()
    expect(hits(page)).to_have_text(["Boots GmbH"])
    address_has(page, "country=Germany")
    page.get_by_role("checkbox", name="Spain").check()
    page.get_by_role("button", name="Remove filter Spain").wait_for()
    expect(hits(page)).to_have_text(["Boots GmbH", "Zapatos SA"])
    page.get_by_role("button", name="Remove filter Germany").click()
    page.get_by_role("button", name="Remove filter Germany").wait_for(state="detached")
    expect(hits(page)).to_have_text(["Zapatos SA"])


def test_a_value_can_be_left_out_instead(page: Any) -> None:
    page.goto("/?company=acme")
    page.get_by_role("button", name="Not Footwear", exact=True).click()
    page.get_by_role("button", name="Remove filter not Footwear").wait_for()
    expect(hits(page)).to_have_text(["Delta", "A/S Nord"])
    left_out = page.get_by_role("button", name="Not Footwear", exact=True)
    expect(left_out).to_have_attribute("aria-pressed", "true")
    expect(left_out).to_be_focused()


def test_a_number_among_the_facts_is_a_range(sample: Any) -> None:
    everything = ranking(sample, "/?company=heineken")
    sample.get_by_label("Employees at least").fill("1000")
    sample.get_by_label("Employees at least").press("Enter")
    sample.get_by_role("button", name="Remove filter Employees ≥ 1000").wait_for()
    expect(hits(sample)).not_to_have_text(everything)
    address_has(sample, "attributes.employees%3E%3D1000")


def test_only_likely_ones_by_the_chance_that_is_shown(page: Any) -> None:
    page.goto("/?company=acme")
    page.get_by_label("At least this likely, %").fill("80")
    page.get_by_label("At least this likely, %").press("Enter")
    page.get_by_role("button", name="Remove filter at least 80 % likely").wait_for()
    expect(hits(page)).to_have_text(["Boots GmbH", "Clogs"])


def test_the_reading_can_be_chosen(page: Any) -> None:
    page.goto("/?company=acme")
    page.get_by_label("Rank by").select_option("business")
    page.get_by_role("button", name="Remove filter ranked by business").wait_for()
    address_has(page, "rank=business")


def test_a_shared_address_shows_the_same_view(page: Any) -> None:
    assert ranking(page, "/?company=acme&industry=Footwear&country=France&k=50") == ["Clogs"]
    expect(page.get_by_role("checkbox", name="France")).to_be_checked()
    # The filters still offer what the unfiltered answer holds.
    page.get_by_role("checkbox", name="Germany").wait_for()
    expect(page.locator("#k")).to_have_value("50")


def test_filters_that_leave_nothing_can_be_removed(page: Any) -> None:
    page.goto("/?company=acme&country=Atlantis")
    page.get_by_text("No company is left.").wait_for()
    page.get_by_role("button", name="Remove the filters").click()
    expect(hits(page)).to_have_count(5)


def test_many_exclusions_travel_where_no_server_sees_them(page: Any) -> None:
    many = "&".join(f"exclude=company-{number}" for number in range(2_000))
    assert "Boots GmbH" not in ranking(page, f"/?company=acme#{many}&exclude=boots")
    expect(page.locator("#question")).to_contain_text("2,001 companies excluded", use_inner_text=True)
    page.get_by_role("button", name="More like Clogs").click()
    page.get_by_role("heading", name="Acme Shoes, Inc. + 1").wait_for()
    address_has(page, "company=clogs")
    address, _, fragment = page.url.partition("#")
    assert "exclude" not in address
    assert fragment.count("exclude=") == 2_001
    # The way past the header must not take them out of the address.
    page.locator("#skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#results")).to_be_focused()
    expect(page).to_have_url(re.compile("exclude=boots$"))


def test_a_part_that_is_unknown_is_said_and_the_rest_is_answered(page: Any) -> None:
    assert ranking(page, "/?company=acme&company=nobody&exclude=boots")[0] == "Clogs"
    miss = page.locator(".miss")
    expect(miss).to_contain_text("nobody is left out", use_inner_text=True)
    miss.get_by_role("button", name="Remove it").click()
    miss.wait_for(state="detached")
    expect(page).not_to_have_url(re.compile("nobody"))


def test_a_company_that_may_be_meant_takes_the_place_of_the_unknown_one(page: Any) -> None:
    ranking(page, "/?company=acme&weight=2&company=clog&country=Spain")
    page.locator(".miss").get_by_role("button", name="Clogs").click()
    page.locator(".miss").wait_for(state="detached")
    expect(page).to_have_url("/?company=acme&weight=2&company=clogs&country=Spain")


def test_a_company_that_may_be_meant_is_excluded_instead_of_the_unknown_one(page: Any) -> None:
    assert "Clogs" in ranking(page, "/?company=acme&exclude=clog")
    page.locator("#misses").get_by_role("button", name="Clogs").click()
    expect(page).to_have_url("/?company=acme&exclude=clogs")
    expect(hits(page).filter(has_text="Clogs")).to_have_count(0)


def test_an_address_without_a_name_is_the_start(page: Any) -> None:
    page.goto("/?company=&text=")
    page.get_by_role("heading", name="Who else does this?").wait_for()


def test_the_first_company_may_be_the_unknown_one(page: Any) -> None:
    assert ranking(page, "/?company=nobody&company=acme")[0] == "Boots GmbH"
    page.locator(".miss").get_by_role("button", name="Remove it").click()
    page.locator(".miss").wait_for(state="detached")
    expect(page).to_have_url("/?company=acme")


def test_reasons_come_after_the_ranking_for_what_is_on_the_screen(sample: Any) -> None:
    asked_for: list[str] = []
    sample.on("request", lambda request: asked_for.append(request.url) if "/similar/" in request.url else None)
    sample.goto("/?company=heineken&k=50")
    carlsberg = row(sample, "Carlsberg A/S")
    carlsberg.locator(".because q").first.wait_for()
    expect(carlsberg).to_contain_text("because", use_inner_text=True)
    expect(carlsberg.locator(".about-hit mark")).not_to_have_count(0)
    assert "reasons=0" in asked_for[0]
    assert all("reasons=50" not in url for url in asked_for)
    with sample.expect_response("**reasons=50**"):
        sample.locator("#hits > li").last.scroll_into_view_if_needed()


def test_the_row_one_looks_at_marks_its_phrases_in_the_anchor_too(sample: Any) -> None:
    sample.goto("/?company=heineken")
    row(sample, "Carlsberg A/S").locator(".because q").first.wait_for()
    row(sample, "Carlsberg A/S").hover()
    sample.locator("#anchor-0 mark").first.wait_for()


def test_facts_that_are_shared_are_marked(sample: Any) -> None:
    ranking(sample, "/?company=heineken")
    expect(row(sample, "Carlsberg A/S").locator(".same").first).to_contain_text("Brewing", use_inner_text=True)


def test_a_question_that_no_address_can_carry_is_downloaded_all_the_same(page: Any) -> None:
    ranking(page, "/?company=acme&weight=2&company=clogs")
    _, text = downloaded(page, page.get_by_role("button", name="Download CSV"))
    assert len(text.splitlines()) == 5
