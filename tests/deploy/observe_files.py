"""What is under deploy/observe, read for tests; and what its expressions ask for, by Prometheus' grammar."""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
OBSERVE = ROOT / "deploy" / "observe"
PROVISIONING = OBSERVE / "grafana" / "provisioning"
DASHBOARD_FILES = sorted((OBSERVE / "grafana" / "dashboards").glob("*.json"))
# What a kind of metric is called in Prometheus, beside its name in the code.
SUFFIXES = {"Counter": ("_total",), "Gauge": ("",), "Histogram": ("_bucket", "_sum", "_count")}
PROCESS = ("resident_memory_bytes", "virtual_memory_bytes", "cpu_seconds_total", "open_fds", "max_fds")
PROCESS_METRICS = {f"process_{name}" for name in (*PROCESS, "start_time_seconds")}
# Prometheus' own: whether a target answers, and alerts by their state.
BUILT_IN: Mapping[str, set[str]] = {"up": set(), "ALERTS": {"alertname", "alertstate"}}
TARGET_LABELS = {"job", "instance"}
KEYWORDS = {"and", "or", "unless", "offset", "bool", "inf", "nan"}
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
SELECTOR = re.compile(r"\{[^{}]*\}")
CONDITIONS = re.compile(r"([A-Za-z_:][\w:]*)\{((?:[^{}\"]|\"[^\"]*\")*)\}")
CONDITION = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"([^\"]*)\"")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
WINDOW = re.compile(r"\[[^\]]*\]|\boffset\s+\S+")
WORD = re.compile(r"(?<![\w:])[A-Za-z_:][\w:]*\b(?!\s*\()")


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a dashboard, by file and title."""

    dashboard: str
    title: str
    expressions: Sequence[str]
    given: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.title}"


def anchors(guide: str) -> set[str]:
    """The anchors of a guide's headings."""
    headings = re.findall(r"^#+ (.+)$", guide, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def read_yaml(path: Path) -> Any:
    """What a file says."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def write_yaml(path: Path, content: object) -> Path:
    """Writes a file; returns it."""
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


@cache
def rules() -> list[dict[str, Any]]:
    """All rules of alerts.yml, recording rules too."""
    return [rule for group in read_yaml(OBSERVE / "alerts.yml")["groups"] for rule in group["rules"]]


@cache
def alerts() -> dict[str, dict[str, Any]]:
    """The alerts by name."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


@cache
def dashboards() -> dict[str, dict[str, Any]]:
    """What Grafana reads, by the name of the file."""
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in DASHBOARD_FILES}


@cache
def panels() -> list[Panel]:
    """Those that ask something, of all dashboards."""
    return [
        Panel(name, panel["title"], [target["expr"] for target in panel["targets"]], panel)
        for name, dashboard in dashboards().items()
        for panel in dashboard["panels"]
        if panel["type"] != "row"
    ]


def metric_names(expression: str) -> set[str]:
    """The metrics that an expression asks for."""
    plain = GROUPING.sub("", WINDOW.sub("", SELECTOR.sub("", STRING.sub('""', expression))))
    return set(WORD.findall(plain)) - KEYWORDS


def conditions(expression: str) -> Iterator[tuple[str, str, str]]:
    """(metric, label, value) of each condition of an expression; the value as it is written, a pattern perhaps."""
    for metric, inside in CONDITIONS.findall(expression):
        for label, value in CONDITION.findall(inside):
            yield metric, label, value


def declared_metrics(source: str) -> dict[str, set[str]]:
    """The metrics that a module makes, with their labels, by Prometheus' names. Nothing is imported."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SUFFIXES:
            name, labels = _name_and_labels(node)
            extra = {"le"} if node.func.id == "Histogram" else set()
            found |= {f"{name}{suffix}": labels | extra for suffix in SUFFIXES[node.func.id]}
    return found


def _name_and_labels(call: ast.Call) -> tuple[str, set[str]]:
    name = ast.literal_eval(call.args[0])
    labels = ast.literal_eval(call.args[2]) if len(call.args) > 2 else ()
    return str(name), set(labels)


@cache
def all_metrics() -> dict[str, set[str]]:
    """Every metric that can be asked for, with its labels beside those of targets."""
    modules = ("services/search/guards/metrics.py", "pipelines/metrics.py", "pipelines/schedule.py")
    found: dict[str, set[str]] = {**BUILT_IN, **{name: set() for name in PROCESS_METRICS}}
    for module in modules:
        found |= declared_metrics((ROOT / module).read_text(encoding="utf-8"))
    return found | {rule["record"]: set(rule.get("labels", {})) for rule in rules() if "record" in rule}
