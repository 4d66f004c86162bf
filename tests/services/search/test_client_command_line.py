"""`similarity --url`, as a user types it, on the real service behind a real socket."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import uvicorn

from services.search.app import create_app
from similarity.cli.main import main
from similarity.client import Client, Question
from similarity.company import utc_now
from similarity.feedback.protocol import SavedList
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from tests.fakes import CountingEncoder
from tests.similarity.client.service import Service, answering


@pytest.fixture(scope="module")
def url(read_only_index: SqliteIndex) -> Iterator[str]:
    """The address of the service, on a free port of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    service = create_app(index=read_only_index, encoder=CountingEncoder())
    server = uvicorn.Server(uvicorn.Config(service, log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()


class Said(NamedTuple):
    """What a command printed, what it said on standard error, and its exit status."""

    out: str
    error: str
    status: int


Run = Callable[..., Said]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs `similarity` in an empty folder with the variables that a test names."""

    def command(*arguments: str, **variables: str) -> Said:
        for name in [name for name in os.environ if name.startswith("SIMILARITY_")]:
            monkeypatch.delenv(name)
        for name, value in {**variables, "COLUMNS": "160"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["similarity", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return Said(said.out, said.err, int(end.value.code or 0))

    return command


def test_what_people_said_is_written_as_pairs_to_train_on(run: Run, url: str, tmp_path: Path) -> None:
    assert run("pairs", "pairs.jsonl", "--url", url).out == "0 pairs: none yet\n"
    with Client(url) as client:
        client.feedback("acme", "boots", "competitor")
    said = run("pairs", "pairs.jsonl", "--companies", "companies.txt", "--url", url)
    assert said.out == "1 pair: 1 positive\n"
    [row] = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert {row["anchor_id"], row["hit_id"]} == {"acme", "boots"}
    assert (tmp_path / "companies.txt").read_text() == "acme\nboots\n"
    assert "give its URL with --url" in run("pairs", "pairs.jsonl").error
    assert "cannot be written" in run("pairs", "nowhere/pairs.jsonl", "--url", url).error
    assert "name the file pairs.jsonl" in run("pairs", "pairs.csv", "--url", url).error


def test_competitors_are_printed_as_of_an_index(run: Run, url: str) -> None:
    said = run("similar", "acme.com", "-k", "2", "--url", url)
    assert said.status == 0
    assert "Competitors of Acme Shoes, Inc. (acme)" in said.out
    assert "Boots GmbH" in said.out
    assert "Clogs" in said.out
    assert "Zapatos" not in said.out


def test_lines_of_business_are_printed_and_one_of_them_can_be_asked_about(run: Run, url: str) -> None:
    assert (
        "Acme Shoes, Inc. (acme) has no segments: its description is short" in run("segments", "acme", "--url", url).out
    )
    assert "there is no segment 2 of Acme Shoes" in run("similar", "acme", "--segment", "2", "--url", url).error
    assert "--segment is about one company" in run("similar", "acme", "boots", "--segment", "1", "--url", url).error


def test_the_address_may_come_from_the_environment(run: Run, url: str) -> None:
    said = run("similar", "acme", "--format", "json", "--country", "France", SIMILARITY_URL=url)
    assert [(hit["rank"], hit["id"]) for hit in json.loads(said.out)] == [(1, "clogs")]


def test_the_key_is_that_of_the_environment(run: Run) -> None:
    with Service(answering(b"", status="401 Unauthorized")) as service:
        said = run("find", "boo", SIMILARITY_URL=service.url, SIMILARITY_API_KEY="sim_1")
    assert [request.headers["authorization"] for request in service.requests] == ["Bearer sim_1"]
    assert (said.status, len(said.error.splitlines())) == (1, 1)
    assert "sim_1" not in said.error
    assert "the command takes the key from SIMILARITY_API_KEY" in said.error


@pytest.mark.parametrize("unknown", [("clogz",), ("--unlike", "clogz"), ("--exclude", "clogz")])
def test_an_unknown_company_is_skipped_only_if_asked(
    run: Run, url: str, tmp_path: Path, read_only_index: SqliteIndex, unknown: tuple[str, ...]
) -> None:
    read_only_index.backup(tmp_path / "own.db")
    for place in (("--url", url), ("--index", "own.db")):
        asked = ("similar", "acme", *unknown, "-k", "1", "--format", "csv", *place)
        refused = run(*asked)
        assert (refused.out, refused.status, len(refused.error.splitlines())) == ("", 1, 1)
        assert "'clogz'; did you mean Clogs" in refused.error
        assert "--skip-unknown" in refused.error
        said = run(*asked, "--skip-unknown")
        assert said.out.splitlines()[1].startswith("1,")
        assert "clogz" in said.error
        assert said.status == 0


def test_a_least_probability_is_applied_by_a_service_and_from_an_index(
    run: Run, url: str, tmp_path: Path, read_only_index: SqliteIndex
) -> None:
    read_only_index.backup(tmp_path / "own.db")
    for place in (("--url", url), ("--index", "own.db")):
        said = run("similar", "acme", "--min-probability", "0.5", *place)
        assert said.status == 1
        assert "has no probabilities for rank=business" in said.error


def test_a_description_may_be_asked_with_exclusions(run: Run, url: str) -> None:
    said = run("similar", "--text", "makes leather boots", "--exclude", "boots", "--format", "json", "--url", url)
    found = {hit["id"] for hit in json.loads(said.out)}
    assert "clogs" in found
    assert "boots" not in found


def test_a_shortlist_is_excluded_by_a_service_and_from_an_index_alike(
    run: Run, url: str, tmp_path: Path, read_only_index: SqliteIndex
) -> None:
    read_only_index.backup(tmp_path / "own.db")
    with Client(url) as client, closing(SqliteWorkspace(tmp_path / "own.db.workspace")) as workspace:
        client.save_shortlist("already contacted", ["boots"])
        client.save_list("shoes", Question.about("acme"))
        for name in ("already contacted", "shoes"):
            saved = client.saved_list(name)
            content = {"companies": list(saved.companies)} if saved.companies else saved.question or {}
            workspace.save_list(SavedList(name=name, question=content, saved_by="ann", saved_at=utc_now()))
    asked = ("similar", "acme", "-k", "2", "--format", "json", "--exclude-list")
    for place in (("--url", url), ("--index", "own.db")):
        said = run(*asked, "already contacted", *place)
        assert [hit["id"] for hit in json.loads(said.out)] == ["clogs", "zapatos"]
        assert "there is no saved list 'nothing'; it may have been deleted" in run(*asked, "nothing", *place).error
        assert (
            "holds a query, not companies; give the name of a list of companies" in run(*asked, "shoes", *place).error
        )
    (tmp_path / "own.db.workspace").unlink()
    assert "there is no saved list 'already contacted'" in run(*asked, "already contacted", "--index", "own.db").error


def test_an_unknown_company_is_one_line_with_a_suggestion(run: Run, url: str) -> None:
    said = run("similar", "bootz", "--url", url)
    assert said.status == 1
    assert len(said.error.splitlines()) == 1
    assert "did you mean Boots GmbH (boots)?" in said.error
    assert "[request " in said.error


def test_companies_are_found_by_the_start_of_a_name(run: Run, url: str) -> None:
    assert "Boots GmbH" in run("find", "boo", "--url", url).out
    assert len(json.loads(run("find", "shoes", "-k", "1", "--format", "json", "--url", url).out)) == 1
    nothing = run("find", "xyzzy", "--url", url)
    assert nothing.status == 1
    assert nothing.error.startswith("similarity: nothing found for 'xyzzy'; try fewer letters")


def test_a_service_that_is_not_there_is_named(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = listener.getsockname()[1]
    said = run("find", "boo", "--url", f"http://127.0.0.1:{free}")
    assert said.status == 1
    assert f"http://127.0.0.1:{free} cannot be reached" in said.error


def test_an_index_and_a_service_at_once_are_refused(run: Run, url: str) -> None:
    said = run("find", "boo", "--url", url, "--index", "x.db")
    assert said.status == 1
    assert "give only one of them" in said.error


def test_an_index_that_is_named_wins_over_the_environments_service(run: Run, url: str) -> None:
    assert "there is no index x.db yet" in run("find", "boo", "--index", "x.db", SIMILARITY_URL=url).error


def test_a_command_without_a_service_says_which_index_it_uses_instead(run: Run, url: str) -> None:
    said = run("erase", "acme", "--index", "own.db", SIMILARITY_URL=url)
    assert "SIMILARITY_URL" not in said.error
    said = run("info", SIMILARITY_URL=url)
    assert "SIMILARITY_URL is not for this command; it uses the index similarity.db" in said.error


def test_an_address_that_is_none_is_one_line(run: Run) -> None:
    assert "write http://HOST:PORT" in run("find", "boo", "--url", "localhost:8080").error
