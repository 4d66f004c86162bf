"""The page in a real browser, on a service of its own.

The browser is Chromium: the one that CHROMIUM names, one found on the PATH, or playwright's own.
"""

import importlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import uvicorn

from services.search.app import create_app
from services.search.guards.guards import Guards
from services.search.settings import ServiceSettings
from similarity.bundle import ModelBundle, seed_folder
from similarity.encoder import TextEncoder
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from similarity.model.encoder_protocol import Encoder
from tests.servers.browser import find_browser
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import CALIBRATION, filled_index

SAMPLE = Path(__file__).parents[2] / "data" / "sample" / "companies.jsonl"
GROUPS = (
    "beer",
    "coffee-chains",
    "dairy",
    "chocolate-and-confectionery",
    "tobacco",
    "plant-based-meat",
    "grocery-retail",
)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

PATIENCE = (
    60_000  # milliseconds until a click, a wait or an assertion fails; on a busy machine an answer took over 30 s
)
# The page hides a toast after 8 s. On a busy machine a test may look for it, or press its button, later than that.
TOASTS_STAY = """((wait) => {
  window.setTimeout = (act, delay, ...given) => wait(act, delay >= 5_000 ? 3_600_000 : delay, ...given);
})(window.setTimeout)"""

Opened: TypeAlias = Callable[..., Any]
"""`opened(address)`: a fresh window on the service there; `opened(address, width=390)` a narrow one."""


@contextmanager
def serving(index: SqliteIndex, encoder: Encoder, workspace: Path) -> Iterator[str]:
    """The service on a free port of this machine: its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = SqliteWorkspace(workspace)
    # A busy machine must not make the service refuse a request: the page would pause, and say so.
    guards = Guards(settings=ServiceSettings(queue=100, queue_seconds=60))
    app = create_app(index=index, encoder=encoder, workspace=kept, guards=guards)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.started
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        kept.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    # Imported here, by name: only the integration environment has it.
    playwright = importlib.import_module("playwright.sync_api")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Opened]:
    """Opens windows; errors on a page and requests to other hosts fail the test."""
    contexts: list[Any] = []
    errors: list[str] = []
    elsewhere: list[str] = []

    def open_window(address: str, *, width: int = 1280, height: int = 860, **options: Any) -> Any:
        context = browser.new_context(base_url=address, viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(TOASTS_STAY)
        contexts.append(context)
        window = context.new_page()
        window.on("pageerror", lambda error: errors.append(str(error)))
        window.on("console", lambda message: errors.append(message.text) if "Refused" in message.text else None)
        window.on("request", lambda request: None if request.url.startswith(address) else elsewhere.append(request.url))
        return window

    yield open_window
    for context in contexts:
        context.close()
    assert errors == []
    assert [url for url in elsewhere if not url.startswith("blob:")] == []


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service on six companies whose cosines are set by hand, for tests that only read."""
    folder = tmp_path_factory.mktemp("page")
    index = filled_index(folder / "page.db", calibration=CALIBRATION)
    with serving(index, AxisEncoder(), folder / "workspace.db") as running:
        yield running
    index.close()


@pytest.fixture
def page(opened: Opened, address: str) -> Any:
    """A fresh window on the six companies."""
    return opened(address)


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteIndex]:
    """What the sample says about food and drink, embedded by the model that ships; `employees` is made up."""
    folder = tmp_path_factory.mktemp("sample")
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    chosen = [{**row, "employees": 100 * place} for place, row in enumerate(rows) if row["group"] in GROUPS]
    file, database = folder / "companies.jsonl", folder / "sample.db"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in chosen), encoding="utf-8")
    command = ["-m", "similarity", "ingest", str(file), "--index", str(database), "--attribute", "employees"]
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    index = SqliteIndex(database)
    yield index
    index.close()


@pytest.fixture(scope="session")
def shipped_encoder() -> TextEncoder:
    return TextEncoder(ModelBundle.load(seed_folder()), threads=1)


@pytest.fixture(scope="session")
def sample_address(
    sample_index: SqliteIndex, shipped_encoder: TextEncoder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A service on the sample, for tests that save nothing."""
    with serving(sample_index, shipped_encoder, tmp_path_factory.mktemp("shared") / "workspace.db") as running:
        yield running


@pytest.fixture
def own_address(sample_index: SqliteIndex, shipped_encoder: TextEncoder, tmp_path: Path) -> Iterator[str]:
    """A service on the sample where nothing has been saved yet."""
    with serving(sample_index, shipped_encoder, tmp_path / "workspace.db") as running:
        yield running


@pytest.fixture
def sample(opened: Opened, sample_address: str) -> Any:
    """A fresh window on the sample."""
    return opened(sample_address, width=1440, height=900)


@pytest.fixture
def own(opened: Opened, own_address: str) -> Any:
    """A fresh window on the sample where nothing has been saved yet."""
    return opened(own_address, width=1440, height=900)
