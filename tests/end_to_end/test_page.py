"""The page in a real browser: an analyst's way from a name to competitors, by keyboard and by mouse.

The browser is Chromium: the one that CHROMIUM names, one found on the PATH, or playwright's own.
"""

import importlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from services.search.app import create_app
from similarity.index.sqlite import SqliteIndex
from tests.servers.browser import find_browser
from tests.services.search.corpus import CALIBRATION, filled_index
from tests.services.search.test_routes import AxisEncoder

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service on a free port of this machine."""
    index = filled_index(tmp_path_factory.mktemp("page") / "page.db", calibration=CALIBRATION)
    yield from serving(index)
    index.close()


def serving(index: SqliteIndex) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = create_app(index=index, encoder=AxisEncoder())
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.started
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Imported here, by name: only the integration environment has it.
    playwright = importlib.import_module("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A fresh window on the service; errors on the page and requests to other hosts fail the test."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 860})
    context.set_default_timeout(5_000)
    page = context.new_page()
    errors: list[str] = []
    elsewhere: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if "Refused" in message.text else None)
    page.on("request", lambda request: None if request.url.startswith(address) else elsewhere.append(request.url))
    yield page
    context.close()
    assert errors == []
    assert [url for url in elsewhere if not url.startswith("blob:")] == []


def names(page: Any) -> list[str]:
    page.locator("#results:not([aria-busy])").wait_for()
    found: list[str] = page.locator("#hits .name").all_inner_texts()
    return found


def test_a_name_typed_and_chosen_by_keyboard_shows_its_competitors(page: Any) -> None:
    page.goto("/")
    box = page.get_by_role("combobox", name="Company name, domain or id")
    box.press_sequentially("acm")
    page.get_by_role("option", name="Acme Shoes, Inc.").wait_for()
    assert box.get_attribute("aria-expanded") == "true"
    box.press("ArrowDown")
    assert box.get_attribute("aria-activedescendant") == "option-0"
    box.press("Enter")
    page.get_by_role("heading", name="Acme Shoes, Inc.").wait_for()
    assert names(page) == ["Boots GmbH", "Clogs", "Zapatos SA", "Delta", "A/S Nord"]
    assert "company=acme" in page.url
    assert box.get_attribute("aria-expanded") == "false"


def test_escape_closes_the_list_and_keeps_the_words(page: Any) -> None:
    page.goto("/")
    box = page.get_by_role("combobox")
    box.press_sequentially("acm")
    page.get_by_role("option").first.wait_for()
    box.press("Escape")
    assert page.locator("#options").is_hidden()
    assert box.input_value() == "acm"


def test_a_name_entered_as_it_is_finds_the_company(page: Any) -> None:
    page.goto("/")
    page.get_by_role("combobox").fill("ACME.com")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Acme Shoes, Inc.").wait_for()
    assert "found as “ACME.com”" in page.locator("#anchor").inner_text()


def test_a_click_on_a_competitor_asks_about_it_and_back_returns(page: Any) -> None:
    page.goto("/?company=acme")
    page.get_by_role("link", name="Clogs", exact=True).click()
    page.get_by_role("heading", name="Clogs").wait_for()
    assert "company=clogs" in page.url
    assert page.evaluate("document.activeElement.id") == "anchor-name"
    page.go_back()
    page.get_by_role("heading", name="Acme Shoes, Inc.").wait_for()


def test_a_row_shows_probability_cosine_country_industry_and_website(page: Any) -> None:
    page.goto("/?company=acme")
    row = page.locator("#hits li").first
    text = row.inner_text()
    for part in ("1", "98 %", "cosine 0.90", "Germany", "Footwear"):
        assert part in text
    assert row.get_by_role("link", name="boots.de").get_attribute("href") == "https://boots.de"
    bar, track = row.locator(".track i").bounding_box(), row.locator(".track").bounding_box()
    assert bar["width"] / track["width"] == pytest.approx(0.982, abs=0.02)


def test_without_a_calibration_no_percentage_is_claimed(browser: Any, tmp_path: Path) -> None:
    index = filled_index(tmp_path / "plain.db", calibration=None)
    server = serving(index)
    page = browser.new_page(base_url=next(server))
    page.goto("/?company=acme")
    text = page.locator("#hits li").first.inner_text()
    assert "0.90" in text
    assert "%" not in text
    page.close()
    next(server, None)
    index.close()


def test_filters_come_from_what_is_shown_and_stay_in_the_address(page: Any) -> None:
    page.goto("/?company=acme")
    page.get_by_role("checkbox", name="Germany").check()
    page.get_by_role("button", name="Remove filter Germany").wait_for()
    assert names(page) == ["Boots GmbH"]
    assert "country=Germany" in page.url
    page.get_by_role("checkbox", name="Spain").check()
    page.get_by_role("button", name="Remove filter Spain").wait_for()
    assert names(page) == ["Boots GmbH", "Zapatos SA"]
    page.get_by_role("button", name="Remove filter Germany").click()
    page.get_by_role("button", name="Remove filter Germany").wait_for(state="detached")
    assert names(page) == ["Zapatos SA"]


def test_a_shared_address_shows_the_same_view(page: Any) -> None:
    page.goto("/?company=acme&industry=Footwear&country=France&k=50")
    assert names(page) == ["Clogs"]
    assert page.get_by_role("checkbox", name="France").is_checked()
    # The filters still offer what the unfiltered answer holds.
    assert page.get_by_role("checkbox", name="Germany").is_visible()
    assert page.locator("#k").input_value() == "50"


def test_filters_that_leave_nothing_can_be_removed(page: Any) -> None:
    page.goto("/?company=acme&country=Atlantis")
    page.get_by_text("No company passes these filters.").wait_for()
    page.get_by_role("button", name="Remove the filters").click()
    page.get_by_text("Boots GmbH").wait_for()
    assert len(names(page)) == 5


def test_a_description_opens_and_closes(page: Any) -> None:
    page.goto("/?company=acme")
    button = page.get_by_role("button", name="Description of Boots GmbH")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    page.get_by_role("button", name="Full descriptions").click()
    assert page.locator(".more[aria-expanded=false]").count() == 0


def test_own_words_find_companies(page: Any) -> None:
    page.goto("/")
    page.get_by_text("Your own words").click()
    page.get_by_label("What does the company do?").fill("makes shoes")
    page.get_by_role("button", name="Find companies").click()
    page.get_by_role("heading", name="Your description").wait_for()
    assert names(page)[0] == "Acme Shoes, Inc."
    assert "text=makes+shoes" in page.url


def test_an_unknown_company_says_so_and_offers_what_was_meant(page: Any) -> None:
    page.goto("/?company=boot")
    alert = page.get_by_role("alert")
    alert.get_by_role("heading", name="Unknown company").wait_for()
    assert "did you mean Boots GmbH (boots)?" in alert.inner_text()
    alert.get_by_role("link", name="Boots GmbH").click()
    page.get_by_role("heading", name="Boots GmbH").wait_for()
    assert alert.inner_text() == ""


def test_a_contested_name_offers_its_candidates(page: Any) -> None:
    page.goto("/?company=Delta")
    page.get_by_role("heading", name="Several companies go by that name").wait_for()
    assert page.get_by_role("alert").get_by_role("link").count() == 2


def test_a_service_that_is_gone_is_said_and_can_be_tried_again(page: Any) -> None:
    page.goto("/?company=acme")
    page.route("**/similar/**", lambda route: route.abort())
    page.get_by_role("link", name="Clogs", exact=True).click()
    page.get_by_role("heading", name="The service does not answer").wait_for()
    page.unroute("**/similar/**")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name="Clogs").wait_for()


def test_an_empty_index_says_how_to_fill_it(browser: Any, tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    for address in serving(index):
        page = browser.new_page(base_url=address)
        page.goto("/")
        page.get_by_role("heading", name="The index holds no companies yet").wait_for(timeout=5_000)
        assert "similarity ingest FILE" in page.get_by_role("alert").inner_text()
        page.close()
    index.close()


def test_the_table_goes_along_as_csv(page: Any) -> None:
    page.goto("/?company=acme&country=Germany")
    page.get_by_text("Boots GmbH").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "competitors-acme.csv"
    lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "rank,id,name,domain,country,industry,score,probability,description"
    assert lines[1].startswith('"1","boots","Boots GmbH","boots.de","Germany","Footwear","0.9","0.982"')
    assert len(lines) == 2


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
@pytest.mark.parametrize("path", ["/", "/?company=acme", "/?company=nobody", "/?text=shoes", "/docs"])
def test_nothing_is_wider_than_the_window(page: Any, path: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/?company=acme&country=Germany", "/?company=nobody", "/?text=shoes", "/docs"])
def test_the_page_passes_the_accessibility_rules(page: Any, path: str, scheme: str) -> None:
    axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    page.emulate_media(color_scheme=scheme)
    page.goto(path)
    page.wait_for_load_state("networkidle")
    results = axe.run(page)
    assert results.violations_count == 0, results.generate_report()
