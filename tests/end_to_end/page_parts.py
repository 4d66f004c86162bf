"""What tests of the page look at again and again."""

import importlib
import re
from pathlib import Path
from typing import Any


def expect(thing: Any) -> Any:
    """Return playwright's assertions on a page or a locator: each is retried until it holds or its time is over."""
    # Imported here, by name: only the integration environment has it.
    return importlib.import_module("playwright.sync_api").expect(thing)


def hits(page: Any) -> Any:
    """Return the locator of the names in the ranking."""
    return page.locator("#hits .name")


def names(page: Any) -> list[str]:
    """The companies of the ranking, once it has come; fails with the page's own words where a problem came instead."""
    problem = page.locator("#message .problem")
    page.locator("#results:not([aria-busy])").or_(problem).first.wait_for()
    assert problem.all_inner_texts() == []
    page.locator("#hits .name, #none:not([hidden])").first.wait_for()
    found: list[str] = hits(page).all_inner_texts()
    return found


def ranking(page: Any, path: str) -> list[str]:
    """Opens a path, and returns the companies of the ranking."""
    page.goto(path)
    return names(page)


def row(page: Any, name: str) -> Any:
    """The row of one company."""
    return page.locator("#hits > li").filter(has=page.get_by_role("link", name=name, exact=True))


def toast(page: Any, words: str | re.Pattern[str]) -> None:
    """Waits for a short word at the foot of the window."""
    page.locator("#toast").filter(has_text=words).wait_for()


def address_has(page: Any, words: str) -> None:
    """Wait until the address of the page contains these words."""
    expect(page).to_have_url(re.compile(re.escape(words)))


def settle(page: Any) -> None:
    """Wait half a second for a late answer to change the page, where the page shows no sign that none comes.

    The load state "networkidle" cannot tell: once a document has reached it, playwright returns at once.
    """
    page.wait_for_timeout(500)


def downloaded(page: Any, button: Any) -> tuple[str, str]:
    """The name and the text of the file that a click brings."""
    with page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, Path(download.value.path()).read_text(encoding="utf-8-sig")


def offences(page: Any) -> list[str]:
    """What axe finds wrong with the page as it is now."""
    axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]
