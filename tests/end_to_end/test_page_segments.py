"""The lines of business of a company on the page: chips that ask about one of them."""

import re
from collections.abc import Iterator

import numpy as np
import pytest

from tests.contract.steps import add_candidate
from tests.end_to_end.conftest import Opened, serving
from tests.end_to_end.page_parts import expect, hits, offences, ranking
from tests.factories import make_embedded
from tests.services.search.corpus import filled_index
from tests.similarity.search.explanations.test_segments import GROUP
from tests.word_encoder import WordEncoder

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def group_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A group that sells shoes and rents out boats, a cobbler and a shipyard."""
    folder = tmp_path_factory.mktemp("segments")
    axes = np.eye(3, dtype=np.float32)
    index = filled_index(folder / "index.db")
    add_candidate(index, "second", dimension=3)
    group = make_embedded("group", name=GROUP.name, description=GROUP.description, vector=axes[0])
    others = [
        make_embedded("cobbler", name="Cobbler", vector=axes[0]),
        make_embedded("yard", name="Yard", vector=axes[1]),
    ]
    index.upsert("second", [group, *others])
    index.promote("second")
    with serving(index, WordEncoder("shoes", "boats"), folder / "workspace.db") as running:
        yield running
    index.close()


def test_a_chip_asks_about_one_line_of_business_and_another_one_goes_back(opened: Opened, group_address: str) -> None:
    page = opened(group_address)
    assert ranking(page, "/?company=Group AG") == ["Cobbler", "Yard"]
    chips = page.locator("#segments .chip")
    expect(chips).to_have_count(3)
    for place, state in enumerate(("true", "false", "false")):
        expect(chips.nth(place)).to_have_attribute("aria-pressed", state)
    assert offences(page) == []
    page.get_by_role("button", name="rent out sailing boats").click()
    expect(hits(page)).to_have_text(["Yard", "Cobbler"])
    expect(page).to_have_url("/?company=group&segment=2")
    page.reload()
    expect(hits(page)).to_have_text(["Yard", "Cobbler"])
    page.get_by_role("button", name="All of it").click()
    expect(hits(page)).to_have_text(["Cobbler", "Yard"])
    expect(page).to_have_url("/?company=group")


def test_a_company_of_one_business_has_no_chips(opened: Opened, group_address: str) -> None:
    page = opened(group_address)
    with page.expect_response("**/segments/cobbler*"):
        ranking(page, "/?company=cobbler")
    page.wait_for_load_state("networkidle")
    expect(page.locator("#segments .chip")).to_have_count(0)


def test_the_chosen_line_of_business_is_said_beside_the_ranking(opened: Opened, group_address: str) -> None:
    page = opened(group_address)
    ranking(page, "/?company=group&segment=2")
    only = page.locator("#question .only")
    expect(only).to_contain_text("Only this line of business: rent out sailing boats", use_inner_text=True)
    expect(page).to_have_title(re.compile(r"^Competitors of Group AG \(rent out sailing boats"))
    expect(page.locator("#tally")).to_contain_text("verdicts are about all of Group AG", use_inner_text=True)
    expect(page.locator("#provenance")).to_contain_text("the industry does not count", use_inner_text=True)
    expect(page.locator("#segments .chip").nth(2)).to_have_text(re.compile(r"^2\. rent out"), use_inner_text=True)
    assert page.locator("#segments .chips").evaluate("all => all.scrollHeight <= all.clientHeight")
    assert offences(page) == []


def test_several_companies_may_have_one_of_a_line_of_business_only(opened: Opened, group_address: str) -> None:
    page = opened(group_address)
    ranking(page, "/?company=group&segment=2&company=cobbler&unlike=group&segment=1")
    expect(page.locator("#question .only")).to_contain_text("rent out sailing boats", use_inner_text=True)
    page.get_by_role("button", name="No longer unlike Group AG (").wait_for()
    page.get_by_role("button", name="All of Group AG").click()
    page.locator("#question .only").wait_for(state="detached")
    expect(page).to_have_url("/?company=group&company=cobbler&unlike=group&segment=1")


def test_two_lines_of_business_are_removed_one_at_a_time(opened: Opened, group_address: str) -> None:
    page = opened(group_address)
    ranking(page, "/?company=group&segment=1&company=group&segment=2")
    page.get_by_role("button", name="No longer like Group AG (rent out").click()
    page.wait_for_url("**/?company=group&segment=1")


def test_a_line_of_business_that_is_gone_is_said_once_and_the_company_can_be_asked_about(
    opened: Opened, group_address: str
) -> None:
    page = opened(group_address)
    page.goto("/?company=group&segment=9")
    expect(page.locator("#message .problem").get_by_text("no segment 9 of Group AG")).to_have_count(1)
    page.get_by_role("button", name="Ask about the whole company").click()
    expect(hits(page)).to_have_text(["Cobbler", "Yard"])
    expect(page).to_have_url("/?company=group")


def test_a_filter_that_the_index_does_not_know_can_be_removed(opened: Opened, group_address: str) -> None:
    page = opened(group_address)
    page.goto("/?company=group&filter=attributes.size>%3Dhuge")
    page.get_by_role("button", name="Remove the filters").click()
    expect(hits(page)).to_have_text(["Cobbler", "Yard"])
    expect(page).to_have_url("/?company=group")


def test_a_saved_question_says_which_line_of_business(opened: Opened, group_address: str) -> None:
    page = opened(group_address)
    ranking(page, "/?company=group&segment=2")
    page.get_by_role("button", name="Save list").click()
    page.get_by_role("textbox", name="Name").fill("boats")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Saved lists").click()
    page.locator("#all-lists").get_by_text("Group AG (line of business 2)").wait_for()
