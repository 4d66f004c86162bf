"""What an operator sees asks for metrics that exist, and is explained. Without servers: those are in test_observe_*."""

import json
import re
from functools import cache
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from deploy.observe.dashboards import DASHBOARDS, FOLDER, file_text
from services.search.guards.guards import Guards
from services.search.guards.metrics import ServiceMetrics
from services.search.wire.problems import KINDS
from similarity import errors
from tests.deploy.observe_files import (
    OBSERVE,
    PROCESS_METRICS,
    PROVISIONING,
    ROOT,
    TARGET_LABELS,
    Panel,
    alerts,
    all_metrics,
    anchors,
    conditions,
    dashboards,
    declared_metrics,
    metric_names,
    panels,
    read_yaml,
    rules,
)

GUIDE = ROOT / "docs" / "observing.md"
COMPOSE = ROOT / "docker-compose.yml"
EXPRESSIONS = [
    *((name, alert["expr"]) for name, alert in alerts().items()),
    *((str(panel), expression) for panel in panels() for expression in panel.expressions),
]
SEVERITIES = {"critical", "warning"}
NAME_OF_ALERT = re.compile(r"\b(?:Search|Stream|Reembed|Process)[A-Z]\w+")


def exposed(registry: CollectorRegistry) -> set[str]:
    """The names of what a registry gives, without suffixes of histograms and times of creation."""
    lines = generate_latest(registry).decode().splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    return {name for name in names if not name.endswith("_created")}


def compared(label: str) -> set[str]:
    """What expressions compare this label with; the parts of a pattern one by one."""
    found = {value for _, expression in EXPRESSIONS for _, name, value in conditions(expression) if name == label}
    return {part for value in found for part in value.split("|")}


def test_what_is_read_from_the_code_is_what_the_service_serves() -> None:
    guards = Guards()
    guards.metrics.watch(guards.gates, guards.lifecycle)
    read = declared_metrics((ROOT / "services/search/guards/metrics.py").read_text(encoding="utf-8"))
    families = {name.removesuffix("_bucket") for name in read if not name.endswith(("_sum", "_count"))}
    served = exposed(guards.metrics.registry)
    assert served == families | PROCESS_METRICS


def test_labels_are_read_from_the_code_too() -> None:
    read = declared_metrics((ROOT / "services/search/guards/metrics.py").read_text(encoding="utf-8"))
    assert read["search_request_seconds_bucket"] == {"route", "method", "status", "le"}
    assert set(ServiceMetrics().request_seconds._labelnames) == {"route", "method", "status"}


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS)
def test_every_metric_and_label_exists(where: str, expression: str) -> None:
    known = all_metrics()
    asked = metric_names(expression)
    assert asked, where
    assert asked <= set(known), where
    unknown = [pair for *pair, _ in conditions(expression) if pair[1] not in known[pair[0]] | TARGET_LABELS]
    assert unknown == [], where


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('sum by (le) (rate(a_bucket{route!~"-|/x{id}", code="b"}[5m])) / on (job) group_left () c', ["a_bucket", "c"]),
        ("histogram_quantile(0.99, a_bucket) > 1 and d offset 15m unless e > 2e3", ["a_bucket", "d", "e"]),
        ("min_over_time(sum(max by (p) (lag))[15m:1m]) > 0 or vector(0)", ["lag"]),
        ("time() - job:due_seconds > 24 * 3600", ["job:due_seconds"]),
    ],
)
def test_metrics_are_told_from_the_rest_of_an_expression(expression: str, names: list[str]) -> None:
    assert sorted(metric_names(expression)) == names


def test_what_labels_are_compared_with_exists() -> None:
    assert compared("reason") <= {kind.slug for kind in KINDS} | {"shed"}
    assert compared("error") <= set(vars(errors))
    assert compared("part") == {"index", "encoder"}
    assert compared("end") == {"applied", "dead", "done", "refused", "failed"}


def test_routes_that_are_left_out_exist() -> None:
    paths = json.loads((ROOT / "services/search/openapi.json").read_text(encoding="utf-8"))["paths"]
    patterns = compared("route") - {"-"}
    assert {"/readyz", "/similar", "/match"} <= patterns
    assert [pattern for pattern in patterns if not any(re.fullmatch(pattern, path) for path in paths)] == []


@pytest.mark.parametrize("name", alerts())
def test_an_alert_says_how_bad_it_is_and_where_it_is_explained(name: str) -> None:
    alert = alerts()[name]
    assert alert["labels"]["severity"] in SEVERITIES
    summary = alert["annotations"]["summary"]
    assert summary.endswith(".")
    assert len(summary) > 30
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert (page, anchor) == ("docs/observing.md", name.lower())
    assert anchor in anchors(GUIDE.read_text(encoding="utf-8"))


def test_the_guide_explains_no_alert_that_does_not_exist() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    assert set(NAME_OF_ALERT.findall(guide)) == set(alerts())
    for name, alert in alerts().items():
        assert f"| `{name}` | {alert['labels']['severity']} |" in guide


@cache
def cases() -> list[dict[str, Any]]:
    """What the unit tests of the alerts expect, case by case."""
    return [case for test in read_yaml(OBSERVE / "alerts_test.yml")["tests"] for case in test["alert_rule_test"]]


@pytest.mark.parametrize("name", alerts())
def test_an_alert_has_a_test_in_which_it_fires_and_one_in_which_it_is_silent(name: str) -> None:
    assert {bool(case["exp_alerts"]) for case in cases() if case["alertname"] == name} == {True, False}


def test_limits_of_memory_are_those_of_the_compose_file() -> None:
    services = read_yaml(COMPOSE)["services"]
    recorded = {
        rule["labels"]["job"]: rule["expr"] for rule in rules() if rule.get("record") == "job:memory_limit_bytes"
    }
    gibibytes = {job: int(services[job]["mem_limit"].removesuffix("g")) for job in recorded}
    assert recorded == {job: f"vector({count} * 1024 ^ 3)" for job, count in gibibytes.items()}


def test_what_is_scraped_is_in_the_compose_file() -> None:
    services = read_yaml(COMPOSE)["services"]
    scraped = read_yaml(OBSERVE / "prometheus.yml")["scrape_configs"]
    found = {each["job_name"]: each["dns_sd_configs"][0] for each in scraped if "dns_sd_configs" in each}
    assert {name for each in found.values() for name in each["names"]} <= set(services)
    assert set(found) == {"search", "stream", "reembed"} == compared("job")
    assert found["search"]["port"] == services["search"]["environment"]["SIMILARITY_SERVICE_METRICS_PORT"]
    for job in ("stream", "reembed"):
        command = services[job]["command"]
        said = command if isinstance(command, str) else " ".join(command)
        assert f"--metrics-port={found[job]['port']}" in said.replace("--metrics-port ", "--metrics-port=")


def test_grafana_finds_prometheus_and_the_dashboards_where_the_compose_file_puts_them() -> None:
    services = read_yaml(COMPOSE)["services"]
    [source] = read_yaml(PROVISIONING / "datasources" / "prometheus.yml")["datasources"]
    [provider] = read_yaml(PROVISIONING / "dashboards" / "dashboards.yml")["providers"]
    mounted = {there: here for here, there, *_ in (volume.split(":") for volume in services["grafana"]["volumes"])}
    assert source["url"] == "http://prometheus:9090"
    assert mounted[provider["options"]["path"]] == "./deploy/observe/grafana/dashboards"
    assert mounted["/etc/grafana/provisioning"] == "./deploy/observe/grafana/provisioning"


def test_the_files_are_what_the_code_writes() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(DASHBOARDS)
    for name, dashboard in DASHBOARDS.items():
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert text == file_text(dashboard), "run: python -m deploy.observe.dashboards"


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_whole(name: str) -> None:
    dashboard = dashboards()[name]
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    cells = [cell for panel in dashboard["panels"] for cell in cells_of(panel["gridPos"])]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(column for column, _ in cells) < 24
    assert [each["name"] for each in dashboard["templating"]["list"]] == ["instance"]
    uids = [each["uid"] for each in dashboards().values()]
    assert len(uids) == len(set(uids))


def cells_of(position: dict[str, int]) -> list[tuple[int, int]]:
    across = range(position["x"], position["x"] + position["w"])
    return [(x, y) for x in across for y in range(position["y"], position["y"] + position["h"])]


@pytest.mark.parametrize("panel", panels(), ids=str)
def test_a_panel_can_be_read_without_editing_it(panel: Panel) -> None:
    [source] = read_yaml(PROVISIONING / "datasources" / "prometheus.yml")["datasources"]
    asked = [panel.given, *panel.given["targets"]]
    assert {(each["datasource"]["type"], each["datasource"]["uid"]) for each in asked} == {
        (source["type"], source["uid"])
    }
    letters = [target["refId"] for target in panel.given["targets"]]
    assert len(letters) == len(set(letters))
    defaults = panel.given["fieldConfig"]["defaults"]
    assert defaults["unit"]
    assert panel.given["description"].endswith(".")
    steps = defaults["thresholds"]["steps"]
    assert steps[0]["value"] is None
    assert [step["value"] for step in steps[1:]] == sorted(step["value"] for step in steps[1:])
    variables = {name for expression in panel.expressions for name in re.findall(r"\$(\w+)", expression)}
    assert variables <= {"instance", "__rate_interval"}


@pytest.mark.parametrize("panel", panels(), ids=str)
def test_what_is_drawn_as_an_alarm_is_when_an_alert_fires(panel: Panel) -> None:
    named = NAME_OF_ALERT.findall(panel.given["description"])
    assert set(named) <= set(alerts())
    steps = panel.given["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]
    if panel.given["type"] == "timeseries" and steps:
        [limits] = [alerts()[name]["expr"] for name in named[:1]]
        # 0 is as much "more than none" as 1 of what is counted in whole messages.
        drawn = {f"> {steps[-1]['value']:g}"} | ({"> 0"} if steps[-1]["value"] == 1 else set())
        assert any(limit in limits for limit in drawn), (named, steps)
