"""A lost cluster comes back from snapshot, offsets and bundles, by the very commands of docs/backup.md."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.company import Company, EmbeddedCompany
from similarity.errors import NoLiveGeneration
from similarity.feedback.opening import open_workspace
from similarity.index.opening import open_index
from similarity.index.protocol import GenerationState
from tests.end_to_end.streaming import GROUP, ROOT, Story, eventually
from tests.servers import kafka_tools
from tests.servers.elasticsearch import QUICK_START, ElasticsearchCluster
from tests.servers.kafka import KafkaBroker
from tests.servers.prism import Prism
from tests.tiny_bundle import write_tiny_bundle
from tests.workspace_records import make_event, make_list

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

GUIDE, OPERATING, CLUSTER = (ROOT / "docs" / name for name in ("backup.md", "operating.md", "elasticsearch.md"))
NAME = "companies"
LONG_AGO = "2020-01-01T00:00:00Z"
SECONDS_TO_START = 300.0  # the second node starts beside all that the first one needed
Shell = Callable[..., str]


def recipe(page: Path, heading: str, about: str) -> str:
    """The one code block under a heading that is about something."""
    section = re.split(r"^##+ ", page.read_text(encoding="utf-8").split(f"# {heading}\n")[1], flags=re.MULTILINE)[0]
    [block] = [block for block in re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL) if about in block]
    return str(block)


@pytest.fixture
def shell(kafka: KafkaBroker, tmp_path: Path) -> Shell:
    """Runs a recipe as an operator does: `shell(recipe, NAME="...", ES="http://...")`; what it printed."""
    for needed in ("curl", "sqlite3"):
        if not shutil.which(needed):
            pytest.skip(f"the operator's guide uses {needed}: install it (Debian: apt-get install {needed})")
    if reason := kafka_tools.unavailable_reason():
        pytest.skip(reason)
    commands = tmp_path / "bin"
    commands.mkdir()
    kafka_tools.install_scripts(commands)
    for name, program in (("similarity", f"{sys.executable} -m similarity"), ("python", sys.executable)):
        (commands / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        (commands / name).chmod(0o755)

    def run(text: str, *, fails: bool = False, **words: str) -> str:
        for word, meaning in {"HOST:9092": kafka.servers, "GROUP": GROUP, **words}.items():
            text = re.sub(rf"(?<!\$)\b{re.escape(word)}\b", meaning, text)
        given = {"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "ES": words.get("ES", "")}
        given["SIMILARITY_BUNDLES"] = str(tmp_path / "bundles")
        command = ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(
            command, env={**os.environ, **given}, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode != 0) == fails, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def clusters(startable_elasticsearch: str, tmp_path: Path) -> Iterator[Callable[[], ElasticsearchCluster]]:
    """Starts one node after the other, each new and empty; all reach the same folder for snapshots."""
    with ExitStack() as running:
        numbers = iter(range(9))

        def start() -> ElasticsearchCluster:
            cluster = ElasticsearchCluster(
                tmp_path / f"cluster-{next(numbers)}",
                version=startable_elasticsearch,
                settings={"path.repo": str(tmp_path / "snapshots")},
                java_options=QUICK_START,
            )
            running.callback(cluster.kill)
            cluster.start(timeout=SECONDS_TO_START)
            return cluster

        yield start


def company(number: int, words: str = "Boats, boats, boats.", **fields: Any) -> dict[str, Any]:
    return {"id": f"c{number}", "name": f"Firm {number}", "description": words, **fields}


def deleted(number: int) -> dict[str, Any]:
    return {"id": f"c{number}", "description": None}


def holds(target: str) -> dict[str, tuple[int, Company | None]]:
    """Version and words of every document of the live generation; tombstones have no words."""
    with closing(open_index(target, {})) as index:
        return {
            document.id: (document.version, document.company if isinstance(document, EmbeddedCompany) else None)
            for batch in index.scan(index.live().name)
            for document in batch
        }


def is_live(target: str) -> bool:
    with closing(open_index(target, {})) as index:
        return any(generation.state is GenerationState.LIVE for generation in index.generations())


def known(of: Mapping[str, tuple[int, Company | None]]) -> set[str]:
    return {name for name, (_, words) in of.items() if words}


def verdicts(target: str) -> set[str]:
    with closing(open_workspace(target, {})) as workspace:
        return {event.id for event in workspace.events()}


def judge(target: str, event: str, *, anchor: str = "c20") -> None:
    with closing(open_workspace(target, {})) as workspace:
        workspace.add_event(make_event(event, anchor=anchor, hit="c21"))


def test_what_was_acknowledged_is_there_again(
    kafka: KafkaBroker, prism: Prism, clusters: Callable[[], ElasticsearchCluster], shell: Shell, tmp_path: Path
) -> None:
    first, bundle = clusters(), write_tiny_bundle(tmp_path / "tiny").folder
    runner = prism.beam_options(streaming=True)
    story = Story(tmp_path, kafka=kafka, target=f"{first.url}/{NAME}", runner=runner, bundle=bundle)
    backup, lost = tmp_path / "backup", story.target
    words = {"NAME": NAME, "TOPIC": story.topic, "BUNDLES": str(tmp_path / "bundles"), "BACKUP": str(backup)}
    words |= {"FOLDER": str(tmp_path / "snapshots"), "DEAD_LETTERS": str(tmp_path / "dead")}

    def note_offsets(to: Path) -> None:
        shell(recipe(GUIDE, "Back up", "--to-current"), **(words | {"BACKUP": str(to)}))

    def set_offsets(noted: Path) -> None:
        shell(recipe(GUIDE, "Restore", "--from-file"), **(words | {"BACKUP": str(noted)}))

    with story.streaming():
        story.send(*map(company, range(40)), {"id": "c99", "description": "Has no name."})
        eventually(story.all_committed, story)
        # The guide: no backup while a generation is promoted. The first one goes live when the job is next looked at.
        eventually(lambda: is_live(lost), story)
        story.send(*map(deleted, range(4)))
        judge(lost, "of-yesterday")
        story.send(*map(company, range(40, 60)))  # while the backup is made

        note_offsets(backup)
        made = shell(recipe(CLUSTER, "Back up", "_snapshot"), ES=first.url, SNAPSHOT="nightly", **words)
        assert '"state":"SUCCESS"' in made
        shell(recipe(GUIDE, "Back up", "cp -a"), **words)

        story.send(*map(company, range(60, 70)), company(10, "Cars."), deleted(11))
        eventually(story.all_committed, story)
        note_offsets(tmp_path / "too-late")
        judge(lost, "of-this-morning")
        judge(lost, "of-the-erased", anchor="c13")
        shell(recipe(GUIDE, "Verdicts and lists", "-feedback"), ES=first.url, SNAPSHOT="hourly", **words)
        judge(lost, "of-the-last-hour")
        story.send(*map(company, range(70, 80)), company(0, event_time=LONG_AGO), deleted(12))
        eventually(story.all_committed, story)
    shell(recipe(OPERATING, "Dead letters", "replay"), TARGET=lost, title="id", **words)
    before = holds(lost)
    assert {"c79", "c99"} <= known(before)
    shell("similarity erase c13 --index TARGET", TARGET=lost)
    first.kill()
    shutil.rmtree(tmp_path / "bundles")

    story.target = f"{clusters().url}/{NAME}"
    es = story.target.removesuffix(f"/{NAME}")
    with closing(open_index(story.target, {})) as index, pytest.raises(NoLiveGeneration):
        index.live()
    shell(recipe(CLUSTER, "Back up", "_snapshot").split("# Every night")[0], ES=es, **words)
    restored = shell(recipe(GUIDE, "Restore", "_restore"), ES=es, SNAPSHOT="nightly", PEOPLE="hourly", **words)
    assert re.findall(r'"failed":(\d+)', restored) == ["0", "0"], restored
    shell(recipe(GUIDE, "Restore", "cp -a"), **words)
    assert {"c10", "c11", "c12", "c13"} <= known(holds(story.target)), "what happened after the snapshot is not there"

    set_offsets(tmp_path / "too-late")
    with story.streaming():
        eventually(story.all_committed, story)
    assert known(before) - known(holds(story.target)) == {"c99", *(f"c{number}" for number in range(60, 70))}
    assert "c11" in known(holds(story.target)), "noted after the snapshot, a delete is lost too"

    set_offsets(backup)
    with story.streaming():
        eventually(story.all_committed, story)
    assert holds(story.target) == {name: held for name, held in before.items() if name != "c99"}
    shell(recipe(GUIDE, "Restore", "replayed"), **words)
    shell(recipe(OPERATING, "Dead letters", "replay"), TARGET=story.target, title="id", **words)
    assert holds(story.target) == before
    assert not {"c0", "c1", "c2", "c3", "c11", "c12"} & known(before)

    assert verdicts(story.target) == {"of-yesterday", "of-this-morning", "of-the-erased"}
    shell(recipe(GUIDE, "Restore", "similarity erase"), TARGET=story.target, ID="c13")
    assert verdicts(story.target) == {"of-yesterday", "of-this-morning"}
    assert known(holds(story.target)) == known(before) - {"c13"}
    with closing(open_index(story.target, {})) as index, TestClient(create_app(index=index, encoder=None)) as client:
        assert [client.get(f"/similar/{name}").status_code for name in ("c60", "c13")] == [200, 404]


def test_an_embedded_index_comes_back_and_lost_messages_are_noticed(
    kafka: KafkaBroker, shell: Shell, tmp_path: Path
) -> None:
    target = tmp_path / "similarity.db"
    bundle = write_tiny_bundle(tmp_path / "tiny").folder
    once = ["--once", "--runner=FnApiRunner"]
    story = Story(tmp_path, kafka=kafka, target=str(target), runner=once, bundle=bundle)
    backup = tmp_path / "backup"
    words = {"TOPIC": story.topic, "BACKUP": str(backup), "BUNDLES": str(tmp_path / "bundles")}

    def stream(*more: str) -> int:
        return story.start(*more).wait(300)

    story.send(*map(company, range(20)))
    assert stream() == 0
    judge(str(target), "kept")
    with closing(open_workspace(str(target), {})) as workspace:
        workspace.save_list(make_list("boats", anchors=[{"company": "c1"}]))
    shell(recipe(GUIDE, "Back up", "--to-current"), **words)
    shell(recipe(GUIDE, "The embedded index", "similarity backup"), **words)
    noted = [line.split(",") for line in (backup / "offsets.csv").read_text().split()]
    story.send(*map(company, range(20, 40)), deleted(1))
    assert stream() == 0
    before = holds(str(target))
    shell(recipe(GUIDE, "The embedded index", "rm -f"), **words)
    assert known(holds(str(target))) == {f"c{number}" for number in range(20)}
    assert verdicts(str(target)) == {"kept"}
    shell(recipe(GUIDE, "Restore", "--from-file"), **words)
    assert stream() == 0
    assert holds(str(target)) == before

    # Retention passes what was noted: Kafka's tool sets the first offset that is left, and only the comparison tells.
    gone = [{"topic": topic, "partition": int(number), "offset": int(at) + 3} for topic, number, at in noted]
    (tmp_path / "gone.json").write_text(json.dumps({"version": 1, "partitions": gone}))
    shell("kafka-delete-records.sh --bootstrap-server HOST:9092 --offset-json-file gone.json")
    shell(recipe(GUIDE, "The embedded index", "rm -f"), **words)
    told = shell(recipe(GUIDE, "Restore", "--from-file"), fails=True, **words)
    assert [line[2:] for line in told.splitlines() if line[0] == "<"] == [",".join(line) for line in noted]
    assert stream() == 0
    assert known(before) - known(holds(str(target))), "a stream cannot know that something is missing"

    export = [company(number) for number in range(40) if number != 1]
    (tmp_path / "export.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in export))
    sync = recipe(GUIDE, "When the topic no longer reaches back", "similarity sync")
    shell(sync, EXPORT="export.jsonl", TARGET=str(target))
    assert known(holds(str(target))) == known(before)
