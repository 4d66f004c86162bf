"""Snapshot and restore: the commands of docs/elasticsearch.md on a real server, and what rewinding the log repairs."""

import json
import random
import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from similarity.company import DeletedCompany, EmbeddedCompany, version_of
from similarity.errors import NoLiveGeneration
from similarity.index.elastic import ElasticIndex
from similarity.index.protocol import GenerationState, WriteOutcome
from tests.contract.steps import add_candidate, add_live
from tests.factories import make_embedded
from tests.integration.elasticsearch_place import Place
from tests.servers.elasticsearch import ElasticsearchCluster

pytestmark = pytest.mark.integration

Document = EmbeddedCompany | DeletedCompany

PAGE = (Path(__file__).parents[2] / "docs" / "elasticsearch.md").read_text(encoding="utf-8")
BACK_UP = PAGE.split("### Back up")[1].split("###")[0]
RESTORE = PAGE.split("### Restore")[1].split("###")[0]

SETTLED = {WriteOutcome.APPLIED, WriteOutcome.UNCHANGED, WriteOutcome.SUPERSEDED}
BEGIN = datetime(2025, 3, 1, tzinfo=UTC)
IDS = [f"c{number}" for number in range(120)]
MESSAGES, BEFORE, OVERLAP = 300, 200, 20


def log_of_changes() -> list[Document]:
    """Writes and deletes in the order of a message log; every tenth message is late, older than one before it."""
    chance = random.Random(3)
    messages: list[Document] = []
    for number in range(MESSAGES):
        late = chance.randrange(60) if number % 10 == 9 else 0
        moment = BEGIN + timedelta(seconds=number - late)
        company_id = chance.choice(IDS)
        if chance.random() < 0.25:
            version = version_of(moment, now=moment, deleted=True)
            messages.append(DeletedCompany(id=company_id, version=version))
        else:
            version = version_of(moment, now=moment)
            messages.append(make_embedded(company_id, version=version, name=f"{company_id} at {moment:%H:%M:%S}"))
    return messages


def newest(messages: Iterable[Document]) -> dict[str, Document]:
    """What a log leaves, by the versions' own words."""
    kept: dict[str, Document] = {}
    for message in messages:
        if message.id not in kept or message.version > kept[message.id].version:
            kept[message.id] = message
    return kept


def play(index: ElasticIndex, messages: Iterable[Document]) -> None:
    """Writes messages as a consumer does: in order, a few at once, to every generation that is to be written."""
    waiting = list(messages)
    for start in range(0, len(waiting), 50):
        for generation in index.write_targets():
            results = index.upsert(generation.name, waiting[start : start + 50])
            assert {result.outcome for result in results} <= SETTLED


def holds(index: ElasticIndex, generation: str) -> dict[str, tuple[int, str]]:
    """Version and name of every document; tombstones have no name."""
    return {
        document.id: (document.version, document.company.name if isinstance(document, EmbeddedCompany) else "")
        for batch in index.scan(generation)
        for document in batch
    }


def expected(messages: Iterable[Document]) -> dict[str, tuple[int, str]]:
    return {
        document.id: (document.version, document.company.name if isinstance(document, EmbeddedCompany) else "")
        for document in newest(messages).values()
    }


def run(place: Place, recipe: str, **words: str) -> list[Any]:
    """The answers to a recipe's commands, sent by the test's client instead of curl."""
    for word, meaning in words.items():
        recipe = re.sub(rf"\b{word}\b", meaning, recipe)
    answers = []
    for command in re.findall(r"^curl .*(?:\n  .*)*", recipe, flags=re.MULTILINE):
        method, path, body = "GET", "", None
        arguments = iter(shlex.split(command)[1:])
        for argument in arguments:
            if argument == "-X":
                method = next(arguments)
            elif argument == "-d":
                body = json.loads(next(arguments))
            elif argument == "-H":
                assert next(arguments) == "content-type: application/json"
            else:
                path = argument.removeprefix("$ES")
        headers = {"accept": "application/json", "content-type": "application/json"}
        client = place.client.options(request_timeout=60)
        answers.append(client.perform_request(method, path, headers=headers, body=body).body)
    return answers


def test_a_restored_index_catches_up_from_the_log_without_loss_or_revival(
    secured_place: Place, secured_cluster: ElasticsearchCluster
) -> None:
    messages = log_of_changes()
    index = secured_place.open()
    for add, name in zip((add_live, add_live, add_candidate), ("previous", "live", "candidate"), strict=True):
        add(index, name)
    words = {
        "NAME": secured_place.name,
        "FOLDER": str(secured_cluster.repo_folder),
        "SNAPSHOT": "nightly-1",
    }
    play(index, messages[:BEFORE])
    *_, taken = run(secured_place, BACK_UP, **words)
    assert taken["snapshot"]["state"] == "SUCCESS"
    assert f"{secured_place.name}-registry" in taken["snapshot"]["indices"]

    play(index, messages[BEFORE:])
    before_the_loss = {name: holds(index, name) for name in ("previous", "live", "candidate")}
    assert before_the_loss["live"] == expected(messages)

    there, restore = RESTORE.split("curl -X POST")
    lost = sorted(run(secured_place, there.split("curl -X DELETE")[0], **words)[0])
    assert len(lost) == 4
    run(secured_place, "curl -X DELETE" + there.split("curl -X DELETE")[1], INDICES=",".join(lost))
    with pytest.raises(NoLiveGeneration):
        secured_place.open().live()

    restored, told = run(secured_place, "curl -X POST" + restore, **words)
    assert restored["snapshot"]["shards"]["failed"] == 0
    assert told["snapshots"][0]["state"] == "SUCCESS"
    index = secured_place.open()
    assert holds(index, "live") == expected(messages[:BEFORE]) != expected(messages)

    play(index, messages[BEFORE - OVERLAP :])
    assert {name: holds(index, name) for name in before_the_loss} == before_the_loss
    deleted = {each.id for each in newest(messages).values() if isinstance(each, DeletedCompany)}
    assert deleted
    assert not deleted & set(index.get("live", IDS))
    assert {generation.name: generation.state for generation in index.generations()} == {
        "previous": GenerationState.PREVIOUS,
        "live": GenerationState.LIVE,
        "candidate": GenerationState.CANDIDATE,
    }
    index.promote("candidate")
    assert index.rollback().name == "live"


def test_replaying_too_little_of_the_log_would_lose_writes() -> None:
    """The test above would notice: the messages after the snapshot do change what is stored."""
    messages = log_of_changes()
    assert expected(messages[:BEFORE] + messages[BEFORE + OVERLAP :]) != expected(messages)
    assert expected(messages) == expected([*messages[:BEFORE], *messages[BEFORE - OVERLAP :]])
