"""The ranking as one wants to see it: order, least probability, table, and what was asked before."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.search.app import WEB
from similarity.bundle import ModelBundle, seed_folder
from similarity.index.attributes import parse_schema
from similarity.search.reranking.pair_features import FINE_INDUSTRY
from tests.end_to_end.conftest import Opened, serving
from tests.end_to_end.page_parts import address_has, expect, hits, names, ranking, row, toast
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import CALIBRATION, add_generation, company, filled_index

pytestmark = pytest.mark.integration

DOCS = Path(__file__).parents[2] / "docs"
RANKED = ["Boots GmbH", "Clogs", "Zapatos SA", "Delta", "A/S Nord"]


@pytest.fixture(scope="module")
def sized_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The six companies, and shoe shops with a declared size."""
    folder = tmp_path_factory.mktemp("sized")
    index = filled_index(folder / "sized.db", calibration=CALIBRATION)
    index.declare(parse_schema(["market_cap:ordinal=small,mid,large"], "market_cap"))
    shops = [
        company("acme", 1.0, 1, name="Acme Shoes, Inc."),
        company("a", 0.9, 2, name="Shoe Shop A", attributes={"market_cap": "Small Cap"}),
        company("b", 0.8, 3, name="Shoe Shop B", attributes={"market_cap": "Large Cap"}),
        company("c", 0.7, 4, name="Shoe Shop C"),
        company("d", 0.6, 5, name="Shoe Shop D", attributes={"market_cap": "Mid Cap"}),
    ]
    add_generation(index, "second", shops, calibration=CALIBRATION)
    index.promote("second")
    with serving(index, AxisEncoder(), folder / "workspace.db") as running:
        yield running
    index.close()


def lines(page: Any) -> Any:
    """Return the locator of the names in the table."""
    return page.locator("#table-rows .name")


def heads(page: Any) -> Any:
    """Return the locator of the column headings; the first column holds the checkboxes."""
    return page.locator("#table-head th")


def heading(label: str) -> re.Pattern[str]:
    """Return the pattern of a column heading: its label, and an arrow if the table is sorted by it."""
    return re.compile(rf"^{re.escape(label)}( [↑↓])?$")


def test_rows_are_sorted_by_what_is_chosen_and_the_link_keeps_it(page: Any) -> None:
    assert ranking(page, "/?company=acme") == RANKED
    page.get_by_label("Sort by").select_option(label="Name")
    expect(hits(page)).to_have_text(["A/S Nord", "Boots GmbH", "Clogs", "Delta", "Zapatos SA"])
    expect(page.locator("#tally")).to_contain_text("5 companies by name", use_inner_text=True)
    address_has(page, "sort=name")
    page.reload()
    expect(hits(page).first).to_have_text("A/S Nord")
    # The keys follow the order that is seen.
    page.keyboard.press("j")
    expect(page.locator("#hits > li:focus .name")).to_have_text("A/S Nord")
    page.get_by_label("Sort by").select_option(label="Rank")
    expect(hits(page)).to_have_text(RANKED)


def test_a_declared_size_is_sorted_by_its_levels(opened: Opened, sized_address: str) -> None:
    page = opened(sized_address)
    ranking(page, "/?company=acme")
    page.get_by_label("Sort by").select_option(label="Market cap")
    expect(hits(page)).to_have_text(["Shoe Shop B", "Shoe Shop D", "Shoe Shop A", "Shoe Shop C"])


def test_the_cosine_is_an_order_of_its_own_only_where_it_differs_from_the_rank(sample: Any) -> None:
    ranking(sample, "/?company=heineken&rank=cosine")
    expect(sample.get_by_label("Sort by")).not_to_contain_text("Cosine")
    ranked = ranking(sample, "/?company=heineken&company=starbucks")
    sample.get_by_label("Sort by").select_option(label="Cosine")
    expect(hits(sample)).not_to_have_text(ranked)
    assert sorted(names(sample)) == sorted(ranked)


def test_a_least_probability_says_how_many_it_hides(page: Any) -> None:
    ranking(page, "/?company=acme")
    page.get_by_label("At least this likely, %").fill("80")
    page.keyboard.press("Enter")
    page.get_by_text("hides 3 of the first 5").wait_for()
    expect(hits(page)).to_have_text(["Boots GmbH", "Clogs"])
    address_has(page, "min_probability=0.8")
    ranking(page, "/?company=acme&min_probability=1")
    expect(page.locator("#misses")).to_contain_text(re.compile(r"the highest is 0\.982 \(98\.2 %\)"))


def test_the_table_has_the_columns_that_are_chosen_and_remembers_them(opened: Opened, sized_address: str) -> None:
    page = opened(sized_address)
    ranking(page, "/?company=acme")
    page.get_by_role("button", name="Table").click()
    expect(lines(page)).to_have_text(["Shoe Shop A", "Shoe Shop B", "Shoe Shop C", "Shoe Shop D"])
    usual = ["#", "Company", "Likely", "Country", "Industry", "Website", "Market cap", "Competitor?"]
    expect(heads(page)).to_have_text(["Select", *map(heading, usual)])
    page.locator("#columns summary").click()
    page.get_by_role("checkbox", name="Industry", exact=True).uncheck()
    page.get_by_role("checkbox", name="Cosine", exact=True).check()
    expect(page.get_by_role("checkbox", name="Cosine", exact=True)).to_be_focused()
    labels = ["#", "Company", "Likely", "Cosine", "Country", "Website", "Market cap", "Competitor?"]
    chosen = ["Select", *map(heading, labels)]
    expect(heads(page)).to_have_text(chosen)
    expect(page).to_have_url(re.compile("view=table&columns=.*score"))
    link = page.url
    # For the next question, and after the window was closed, too.
    page.locator("#table-rows").get_by_role("link", name="Shoe Shop C").click()
    page.get_by_role("heading", name="Shoe Shop C", level=1).wait_for()
    page.goto("/?company=acme")
    expect(heads(page)).to_have_text(chosen)
    # Others see the same by the link.
    other = opened(sized_address)
    other.goto(link)
    expect(heads(other)).to_have_text(chosen)
    other.get_by_role("button", name="Rows").click()
    expect(hits(other).first).to_have_text("Shoe Shop A")


def test_the_head_of_a_column_sorts_and_turns_the_order_round(opened: Opened, sized_address: str) -> None:
    page = opened(sized_address)
    page.goto("/?company=acme&view=table")
    head = page.locator("#table-head th").filter(has_text="Market cap")
    head.get_by_role("button").click()
    expect(lines(page)).to_have_text(["Shoe Shop B", "Shoe Shop D", "Shoe Shop A", "Shoe Shop C"])
    expect(head).to_have_attribute("aria-sort", "descending")
    head.get_by_role("button").click()
    expect(lines(page)).to_have_text(["Shoe Shop A", "Shoe Shop D", "Shoe Shop B", "Shoe Shop C"])
    expect(head).to_have_attribute("aria-sort", "ascending")


def test_the_sorted_column_is_seen_beside_the_map(opened: Opened, sized_address: str) -> None:
    page = opened(sized_address, width=1400)
    for sort, label in (("attributes.market_cap", "Market cap"), ("score", "Cosine")):
        page.goto(f"/?company=acme&view=table&map=1&sort={sort}")
        for place, words in enumerate(("#", "Company", label), 1):
            expect(heads(page).nth(place)).to_have_text(heading(words))


def test_the_verdict_is_seen_beside_many_columns(opened: Opened, sized_address: str) -> None:
    page = opened(sized_address, width=1024)
    page.goto("/?company=acme&view=table")
    page.locator("#columns summary").click()
    for column in ("Cosine", "Tags", "Note"):
        page.get_by_role("checkbox", name=column, exact=True).check()
    part = page.locator("#table-part")
    assert part.evaluate("each => each.scrollWidth > each.clientWidth")
    expect(page.get_by_role("button", name="Reject Shoe Shop A")).to_be_in_viewport(ratio=1)


def test_files_say_that_they_keep_the_order_of_the_ranking(page: Any) -> None:
    ranking(page, "/?company=acme&sort=name")
    with page.expect_download():
        page.get_by_role("button", name="Download CSV").click()
    toast(page, "5 companies downloaded, in the order of the ranking.")
    expect(page.locator("#xlsx")).to_have_attribute("title", re.compile("in the order of the ranking"))


def test_the_buttons_of_a_located_company_leave_its_cosine_to_be_read(page: Any) -> None:
    ranking(page, "/?company=acme")
    page.get_by_label("Where is this company in the ranking?").fill("clogs")
    page.keyboard.press("Enter")
    page.locator(".located").wait_for()
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 860})
        cosine = page.locator(".located .match small").bounding_box()
        accept = page.locator(".located .verdict").first.bounding_box()
        assert cosine["x"] + cosine["width"] <= accept["x"] or cosine["y"] + cosine["height"] <= accept["y"], width


def test_verdicts_and_keys_work_in_the_table(own: Any) -> None:
    own.goto("/?company=heineken&k=10&view=table")
    first = lines(own).first.inner_text()
    own.keyboard.press("j")
    own.keyboard.press("a")
    expect(own.locator("#table-rows tr.accepted .name")).to_have_text(first)
    own.keyboard.press("ArrowDown")
    expect(own.locator("#table-rows tr").nth(1)).to_be_focused()
    own.get_by_role("button", name="Rows").click()
    expect(hits(own).first).to_have_text(first)
    row(own, first).locator(".because q").first.wait_for()


def test_what_was_asked_is_offered_again_and_forgotten_by_a_click(page: Any) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.post_data or ''}"))
    ranking(page, "/?company=acme&country=Germany")
    ranking(page, "/?company=clogs")
    page.goto("/")
    expect(page.locator("#recent-searches a")).to_have_text(["Clogs", "Acme Shoes, Inc."])
    box = page.get_by_role("combobox", name="Company name, domain or id")
    box.press("ArrowDown")
    page.get_by_role("option", name="Acme Shoes, Inc.").wait_for()
    box.press("ArrowDown")
    box.press("ArrowDown")
    box.press("Enter")
    expect(hits(page)).to_have_text(["Boots GmbH"])
    address_has(page, "country=Germany")
    page.goto("/")
    page.get_by_role("button", name="Clear them").click()
    expect(page.locator("#recent")).to_be_hidden()
    assert page.evaluate("localStorage.getItem('similarity-recent')") is None
    assert not any("recent" in each for each in sent if "/assets/" not in each)


def test_a_browser_that_keeps_damaged_things_opens_the_page(opened: Opened, address: str, tmp_path: Path) -> None:
    page = opened(address)
    page.goto("/")
    page.evaluate("localStorage.setItem('similarity-recent', '{\"a\"'); localStorage.setItem('similarity-view', '[')")
    assert ranking(page, "/?company=acme") == RANKED


def test_the_foot_says_what_each_reading_counts_and_how_much_of_a_text_is_read(page: Any) -> None:
    limit = ModelBundle.load(seed_folder()).manifest.max_tokens
    for path, words in (
        ("/?company=acme", "and shared words), industry, size and country."),
        ("/?company=acme&rank=business", "(cosine and shared words) and industry."),
        ("/?company=acme&rank=cosine", "from the cosine of the two descriptions."),
        ("/?company=acme", f"Only the first {limit} tokens of a description"),
    ):
        ranking(page, path)
        expect(page.locator("#provenance")).to_contain_text(words, use_inner_text=True)


def test_the_box_for_words_names_the_languages_that_the_encoder_reads(page: Any) -> None:
    page.goto("/")
    page.get_by_text("Your own words", exact=True).click()
    languages = (DOCS / "languages.md").read_text(encoding="utf-8").split("The encoder reads ")[1].split(", and")[0]
    assert languages.startswith("English, German")
    expect(page.locator("#words-note")).to_contain_text(languages, use_inner_text=True)


def with_industries(route: Any) -> None:
    """Answers as if the anchor and the hits had a finer industry that differs."""
    answer = route.fetch()
    found = answer.json()
    found["anchors"][0]["company"]["attributes"]["industry_fine"] = "Apparel Retail"
    for place, hit in enumerate(found["hits"]):
        hit["company"]["attributes"]["industry_fine"] = ["Footwear Makers", "Apparel Retail"][place % 2]
        relation, effect = [("other", -0.3), ("same", 0.4)][place % 2]
        hit["reason"] = {
            "shared": [],
            "moved": [{"field": "industry", "relation": relation, "effect": effect}],
            "phrases": None,
        }
        hit["company"]["industry"] = found["anchors"][0]["company"]["industry"] if place < 2 else "Other"
    route.fulfill(response=answer, json=found)


def test_a_fact_that_moved_the_rank_names_the_finer_industries(page: Any) -> None:
    assert f'"{FINE_INDUSTRY}"' in (WEB / "reasons.js").read_text(encoding="utf-8")
    page.route("**/similar/acme?*", with_industries)
    ranking(page, "/?company=acme")
    moved = page.locator("#hits .moved")
    for place, words in (
        (0, "down: other industry: Footwear Makers, not Apparel Retail"),
        (1, "up: same industry"),
        (3, "up: same industry: Apparel Retail"),
    ):
        expect(moved.nth(place)).to_have_text(words, use_inner_text=True)
