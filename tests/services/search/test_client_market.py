"""The example that maps a market: its page shows its own code and what it really prints."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from fastapi.testclient import TestClient

from examples.mapping_a_market import drawing, map_market
from services.search.app import create_app
from similarity.client import Client
from similarity.client.queries import CompanyMap, MapPoint
from similarity.company import EmbeddedCompany
from similarity.index.sqlite import SqliteIndex
from tests.factories import make_embedded
from tests.fakes import CountingEncoder
from tests.servers.ports import free_ports
from tests.services.search.corpus import CALIBRATION, add_generation

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "mapping-a-market.md"
SAMPLE = ROOT / "data" / "sample" / "companies.jsonl"
EXAMPLE = ROOT / "examples" / "mapping_a_market.py"
SECONDS_TO_START = 60


def blocks(language: str) -> list[str]:
    """The code blocks of the page that are of this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def test_the_page_shows_the_examples_own_code() -> None:
    source = unindented(EXAMPLE.read_text())
    shown = blocks("python")
    assert len(shown) >= 5
    assert [block for block in shown if unindented(block) not in source] == []


def test_the_page_starts_the_example_as_the_example_says() -> None:
    (commands,) = blocks("shell")
    assert unindented(commands) in unindented(EXAMPLE.read_text())


def test_a_drawing_shows_every_point_and_escapes_names() -> None:
    points = (
        MapPoint(id="a", name="R&D <x>", x=0, y=1, role="anchor"),
        MapPoint(name="free words that go on and on, much further than a drawing has room", x=0, y=0, role="anchor"),
        MapPoint(id="h", name="Hit", x=0.5, y=-1, role="hit", score=0.5),
    )
    svg = drawing(CompanyMap(points=points, explained=0.5))
    assert svg.count("<circle") == svg.count("<text") == 3
    assert "R&amp;D &lt;x&gt;</text>" in svg
    assert "free words that go on and on, …</text>" in svg


def test_a_name_is_left_out_of_a_drawing_where_it_would_cover_others() -> None:
    points = tuple(MapPoint(id=str(n), name=f"Company {n}", x=0, y=0, role="hit", score=0.5) for n in range(5))
    svg = drawing(CompanyMap(points=points))
    assert (svg.count("<circle"), svg.count("<text")) == (5, 3)


@pytest.fixture
def sample_service(tmp_path: Path) -> Iterator[Client]:
    """A service on the sample companies, whose vectors mean nothing: this needs no model."""
    with closing(SqliteIndex(tmp_path / "sample.db")) as index:
        add_generation(
            index,
            "first",
            [embedded(json.loads(row)) for row in SAMPLE.read_text().splitlines()],
            calibration=CALIBRATION,
        )
        index.promote("first")
        with TestClient(create_app(index=index, encoder=CountingEncoder())) as http:
            yield Client("http://testserver", http=http)


def embedded(row: dict[str, Any]) -> EmbeddedCompany:
    fields = {name: row[name] for name in ("name", "description", "country", "industry")}
    attributes = {"sector": row["sector"]}
    return make_embedded(row["id"], **fields, aliases=tuple(row["aliases"]), attributes=attributes)


def test_the_example_maps_the_sample(
    sample_service: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    map_market(sample_service, tmp_path / "market")
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == unindented(blocks("text")[0]).splitlines()
    assert any(line.startswith("100 hits, ") for line in printed)
    assert len((tmp_path / "market" / "market.csv").read_text().splitlines()) == 101
    assert (tmp_path / "market" / "market.svg").read_text().endswith("</svg>\n")


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[list[list[str]]]:
    """The page's commands, for this interpreter, a folder of the test and a free port; the service is running."""
    (text,) = blocks("shell")
    port = str(*free_ports(1))
    places = {"market.db": str(tmp_path / "market.db"), "market": str(tmp_path / "market"), "python": sys.executable}
    commands = []
    for line in text.strip().replace("\\\n", " ").splitlines():
        words = [places.get(word, word).replace("8080", port) for word in shlex.split(line)]
        commands.append([sys.executable, "-m", *words] if words[0] == "similarity" else words)
    ingest, serve, example = commands
    subprocess.run(ingest, cwd=ROOT, check=True, capture_output=True)
    with subprocess.Popen([*serve, "--port", port], cwd=ROOT, stderr=subprocess.DEVNULL) as service:
        wait_for(f"http://127.0.0.1:{port}/readyz")
        yield [example]
        service.terminate()


def wait_for(url: str) -> None:
    for _ in range(SECONDS_TO_START * 10):
        with suppress(URLError), urlopen(url):
            return
        time.sleep(0.1)
    raise AssertionError(f"nothing answers at {url}")


@pytest.mark.integration
def test_the_page_shows_what_the_example_prints(commands: list[list[str]], tmp_path: Path) -> None:
    """Nearly: on another kind of processor the last digit of a cosine, and so the order of two, may differ."""
    (example,) = commands
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(example, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    shown = " ".join(blocks("text")).split()
    assert SequenceMatcher(None, shown, done.stdout.split(), autojunk=False).ratio() > 0.9, done.stdout
    assert len((tmp_path / "market" / "market.csv").read_text().splitlines()) == 101
    assert (tmp_path / "market" / "market.svg").read_text().startswith("<svg")
