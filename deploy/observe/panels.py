"""Grafana dashboards in few words: panels in rows of 24 columns, as the JSON that Grafana reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

DATASOURCE = {"type": "prometheus", "uid": "prometheus"}
"""That of grafana/provisioning/datasources/prometheus.yml."""
SCHEMA_VERSION = 41
"""Of Grafana's dashboard format; newer Grafanas bring it up to theirs."""
LABEL_VALUES = 1
"""The kind of such a query, as Grafana's editor of variables numbers them."""
TAG = "company-similarity"
COLUMNS = 24
STAT_HEIGHT, CHART_HEIGHT = 4, 8

Json: TypeAlias = dict[str, Any]
Thresholds: TypeAlias = Sequence[tuple[float, str]]
"""(from this value on, this colour); below the first one it is green."""


@dataclass(frozen=True, slots=True)
class Query:
    """An expression of Prometheus, and what its lines are called (`{{label}}`)."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A number (`stat`) or a chart. `unit` is one of Grafana's; `limit` names the query that is drawn as a limit.

    `words` says what numbers mean, where they stand for something. `colour` is that below the first threshold.
    """

    title: str
    says: str
    queries: Sequence[Query]
    unit: str
    kind: Literal["stat", "timeseries"] = "timeseries"
    thresholds: Thresholds = ()
    colour: str = "green"
    width: int = 8
    most: float | None = None
    decimals: int | None = None
    stacked: bool = False
    limit: str = ""
    words: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A page. `instances` gives the series whose `instance` labels can be chosen from."""

    uid: str
    title: str
    says: str
    instances: str
    rows: Sequence[Row]


def dashboard_json(dashboard: Dashboard) -> Json:
    """What Grafana reads."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.says,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "annotations": {"list": []},
        "links": [_others()],
        "templating": {"list": [_instances(dashboard.instances)]},
        "panels": _placed(dashboard.rows),
    }


def _others() -> Json:
    return {
        "title": "Other dashboards",
        "type": "dashboards",
        "tags": [TAG],
        "asDropdown": False,
        "includeVars": False,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _instances(series: str) -> Json:
    query = f"label_values({series}, instance)"
    return {
        "name": "instance",
        "label": "Process",
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"qryType": LABEL_VALUES, "query": query, "refId": "instances"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "options": [],
        "regex": "",
    }


def _placed(rows: Sequence[Row]) -> list[Json]:
    """The panels from left to right, row by row; ids count up."""
    placed: list[Json] = []
    top = 0
    for row in rows:
        placed.append(_row_json(row, number=len(placed) + 1, top=top))
        left, top = 0, top + 1
        height = 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top, height = 0, top + height, 0
            height = max(height, STAT_HEIGHT if panel.kind == "stat" else CHART_HEIGHT)
            placed.append(_panel_json(panel, number=len(placed) + 1, left=left, top=top))
            left += panel.width
        top += height
    return placed


def _row_json(row: Row, *, number: int, top: int) -> Json:
    position = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
    return {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": position, "panels": []}


def _panel_json(panel: Panel, *, number: int, left: int, top: int) -> Json:
    is_stat = panel.kind == "stat"
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": DATASOURCE,
        "gridPos": {"h": STAT_HEIGHT if is_stat else CHART_HEIGHT, "w": panel.width, "x": left, "y": top},
        "targets": [_target(query, "ABCDEF"[place], instant=is_stat) for place, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": [_as_limit(panel.limit)] if panel.limit else []},
        "options": _stat_options(panel) if is_stat else _CHART_OPTIONS,
    }


def _target(query: Query, letter: str, *, instant: bool) -> Json:
    return {
        "refId": letter,
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "instant": instant,
        "range": not instant,
    }


def _defaults(panel: Panel) -> Json:
    steps = [{"color": panel.colour, "value": None}, *({"color": name, "value": at} for at, name in panel.thresholds)]
    defaults: Json = {
        "unit": panel.unit,
        "min": 0,
        "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": steps},
        "mappings": [_mapping(panel.words)] if panel.words else [],
    }
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.decimals is not None:
        defaults["decimals"] = panel.decimals
    if panel.kind == "timeseries":
        defaults["custom"] = _chart(stacked=panel.stacked, drawn=bool(panel.thresholds))
    return defaults


def _mapping(words: Sequence[tuple[float, str]]) -> Json:
    return {
        "type": "value",
        "options": {f"{value:g}": {"text": text, "index": at} for at, (value, text) in enumerate(words)},
    }


def _chart(*, stacked: bool, drawn: bool) -> Json:
    return {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 30 if stacked else 5,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if drawn else "off"},
    }


def _as_limit(name: str) -> Json:
    """The line of this name is a limit: red, dashed, without filling."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [
            {"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}},
            {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}},
            {"id": "custom.fillOpacity", "value": 0},
        ],
    }


_CHART_OPTIONS: Json = {
    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
    "tooltip": {"mode": "multi", "sort": "desc"},
}


def _stat_options(panel: Panel) -> Json:
    return {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "orientation": "auto",
        "textMode": "value_and_name" if len(panel.queries) > 1 else "value",
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "percentChangeColorMode": "standard",
        "showPercentChange": False,
        "wideLayout": True,
    }
