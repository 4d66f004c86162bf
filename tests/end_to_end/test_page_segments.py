"""The lines of business of a company on the page: chips that ask about one of them."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.contract.steps import add_candidate
from tests.end_to_end.conftest import Opened, serving
from tests.end_to_end.page_parts import names, offences, ranking
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
    chips.first.wait_for()
    assert chips.evaluate_all("all => all.map((each) => each.ariaPressed)") == ["true", "false", "false"]
    assert offences(page) == []
    page.get_by_role("button", name="rent out sailing boats").click()
    assert names(page) == ["Yard", "Cobbler"]
    assert page.url.endswith("?company=group&segment=2")
    page.reload()
    assert names(page) == ["Yard", "Cobbler"]
    page.get_by_role("button", name="All of it").click()
    assert names(page) == ["Cobbler", "Yard"]
    assert page.url.endswith("?company=group")


def test_a_company_of_one_business_has_no_chips(opened: Opened, group_address: str) -> None:
    page = opened(group_address)
    with page.expect_response("**/segments/cobbler*"):
        ranking(page, "/?company=cobbler")
    assert page.locator("#segments .chip").count() == 0
