"""A real Prometheus watches the real service, stream and schedule: panels have data, alerts see what breaks."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity.index.sqlite import SqliteIndex
from tests.deploy.observe_files import Panel, alerts, panels
from tests.deploy.observe_scene import JOBS, Scene, company, scene
from tests.end_to_end.streaming import eventually
from tests.servers.kafka import KafkaBroker
from tests.servers.prism import Prism
from tests.servers.prometheus import QueryRefused, unavailable_reason
from tests.services.search.serving import running

pytestmark = [pytest.mark.integration, pytest.mark.pipelines, pytest.mark.nightly]

# What Grafana puts in the place of its variables.
VARIABLES = {"$__rate_interval": "2m", "$instance": ".*"}
# A machine that is busy with other things may be slow; that is no fault of the rules.
OF_A_BUSY_MACHINE = {"SearchSlow", "StreamSlow", "StreamNotConsuming", "SearchTookTooLong", "SearchShedding"}


@pytest.fixture(scope="module")
def broker(startable_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One of this module's own, because it is killed."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def watched(broker: KafkaBroker, prism: Prism, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """All of it at work, after some traffic and one message that cannot be taken."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    with scene(tmp_path_factory.mktemp("observed"), broker, prism) as watched:
        watched.converse()
        watched.story.send({"id": "no good", "name": "", "description": "x"}, *map(company, range(1000, 1030)))
        eventually(watched.story.all_committed, watched.story)
        watched.converse()
        watched.sees('increase(similarity_messages_total{end="dead"}[2m]) > 0')
        watched.sees('rate(search_request_seconds_count{route="/similar", status="200"}[2m]) > 0')
        watched.sees('rate(search_rejected_total{reason="unknown-host"}[2m]) > 0')
        yield watched


def fires(alert: str) -> str:
    """The expression of an alert, which gives something where it fires or waits for its time."""
    return str(alerts()[alert]["expr"])


def in_place(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_prometheus_reaches_all_of_them(watched: Scene) -> None:
    found = {
        target["labels"]["job"]: (target["health"], target["lastError"]) for target in watched.prometheus.targets()
    }
    assert found == dict.fromkeys(JOBS, ("up", ""))


@pytest.mark.parametrize("panel", panels(), ids=str)
def test_a_panel_has_data(watched: Scene, panel: Panel) -> None:
    for expression in panel.expressions:
        samples = watched.prometheus.query(in_place(expression))
        assert [sample for sample in samples if math.isfinite(sample.value)], expression


def test_an_expression_that_is_wrong_is_an_error(watched: Scene) -> None:
    with pytest.raises(QueryRefused, match="parse error"):
        watched.prometheus.query("sum(")


def test_what_happened_is_what_the_panels_say(watched: Scene) -> None:
    [messages] = [panel for panel in panels() if panel.title == "Messages by end"]
    [reembed] = [panel for panel in panels() if panel.title == "Last run"]
    rates = {
        sample.labels["end"]: sample.value for sample in watched.prometheus.query(in_place(messages.expressions[0]))
    }
    assert rates["applied"] > rates["dead"] > 0 == rates["superseded"]
    [last] = watched.prometheus.query(in_place(reembed.expressions[0]))
    words = reembed.given["fieldConfig"]["defaults"]["mappings"][0]["options"]
    assert words[f"{last.value:g}"]["text"] == "done"


def test_prometheus_evaluates_every_rule_without_an_error(watched: Scene) -> None:
    rules = watched.prometheus.rules()
    assert {rule["name"] for rule in rules} >= set(alerts())
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []


def test_while_all_is_well_only_what_did_happen_is_an_alert(watched: Scene) -> None:
    given = {name for name, alert in alerts().items() if watched.prometheus.query(alert["expr"])}
    assert given - OF_A_BUSY_MACHINE == {"StreamDeadLetters"}


def test_a_service_without_its_encoder_and_then_without_its_index(
    watched: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "index.db"
    with closing(SqliteIndex(Path(watched.story.target))) as index:
        index.backup(copy)
    monkeypatch.setenv("SIMILARITY_BUNDLES", str(tmp_path / "nothing"))
    watched.service.stop()
    with running(copy, tmp_path, metrics_port=watched.ports["search"]) as watched.service:
        watched.sees('up{job="search"} == 1')
        free_text = {"anchors": [{"text": "boats boats boats"}]}
        watched.sees(fires("SearchEncoderMissing"), meanwhile=lambda: watched.ask("/similar", free_text))
        assert (watched.ask("/similar", free_text), watched.ask("/similar/c1")) == (503, 200)
        assert watched.prometheus.query(fires("SearchIndexFailing")) == []
        copy.write_bytes(b"no database any more" * 1000)
        watched.sees(fires("SearchIndexFailing"), meanwhile=lambda: watched.ask("/similar/c1"))
        watched.sees(
            'rate(search_request_seconds_count{route="/readyz", status="503"}[2m]) > 0',
            meanwhile=lambda: watched.ask("/readyz"),
        )
        assert watched.prometheus.query(fires("SearchEncoderMissing")) == [], "the index explains it"
    watched.sees(fires("SearchDown"))
    watched.sees(fires("SearchProcessDown"))


def test_an_index_that_takes_nothing(watched: Scene) -> None:
    """Somebody writes to it for longer than a writer waits."""
    assert watched.prometheus.query(fires("StreamStoreAway")) == []
    with closing(sqlite3.connect(watched.story.target)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        watched.story.send(company(2000))
        watched.sees(fires("StreamStoreAway"))
    eventually(watched.story.all_committed, watched.story)


def test_a_broker_that_is_away(watched: Scene, broker: KafkaBroker) -> None:
    assert watched.prometheus.query(fires("StreamKafkaAway")) == []
    broker.kill()
    watched.sees(fires("StreamKafkaAway"))
