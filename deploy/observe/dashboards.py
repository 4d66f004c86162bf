"""Writes Grafana's dashboards: python -m deploy.observe.dashboards."""

import json
from collections.abc import Mapping
from pathlib import Path

from deploy.observe.panels import Dashboard, dashboard_json
from deploy.observe.pipelines_dashboard import PIPELINES
from deploy.observe.search_dashboard import SEARCH

FOLDER = Path(__file__).parent / "grafana" / "dashboards"
DASHBOARDS: Mapping[str, Dashboard] = {"search.json": SEARCH, "pipelines.json": PIPELINES}


def file_text(dashboard: Dashboard) -> str:
    """A dashboard as its file holds it."""
    return json.dumps(dashboard_json(dashboard), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Writes all of them."""
    for name, dashboard in DASHBOARDS.items():
        (FOLDER / name).write_text(file_text(dashboard), encoding="utf-8")


if __name__ == "__main__":
    main()
