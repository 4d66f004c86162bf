"""Prometheus' own tool takes what it is given, and every alert fires when it must and is silent when it must be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.observe_files import OBSERVE, alerts, read_yaml, write_yaml
from tests.servers.prometheus import promtool, unavailable_reason

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def startable_prometheus() -> None:
    """Not run where there is no Prometheus."""
    if reason := unavailable_reason():
        pytest.skip(reason)


def failed_alerts(folder: Path, change: Callable[[dict[str, Any]], None]) -> set[str]:
    """The alerts of which a test fails when all of them are changed so."""
    changed = read_yaml(OBSERVE / "alerts.yml")
    for group in changed["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                change(rule)
    write_yaml(folder / "alerts.yml", changed)
    tests = write_yaml(folder / "alerts_test.yml", read_yaml(OBSERVE / "alerts_test.yml"))
    done = promtool("test", "rules", str(tests))
    assert done.returncode in {0, 1}
    return {name for name in alerts() if f"alertname: {name}," in done.stdout}


def test_prometheus_takes_the_configuration_and_the_rules() -> None:
    done = promtool("check", "config", str(OBSERVE / "prometheus.yml"))
    assert done.returncode == 0, done.stdout
    assert f"{len(alerts()) + 3} rules found" in done.stdout


def test_every_alert_fires_when_it_must_and_only_then() -> None:
    done = promtool("test", "rules", str(OBSERVE / "alerts_test.yml"))
    assert done.returncode == 0, done.stdout


WAITING = {name for name, alert in alerts().items() if "for" in alert}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"expr": "vector(0) > 1"}, set(alerts())),
        ({"expr": "vector(1)", "for": "0s"}, set(alerts())),
        ({"for": "0s"}, WAITING),
        ({"for": "2h"}, set(alerts())),
    ],
    ids=["never fires", "always fires", "does not wait", "waits too long"],
)
def test_a_wrong_alert_fails_its_test(tmp_path: Path, change: dict[str, str], found: set[str]) -> None:
    assert failed_alerts(tmp_path, lambda rule: rule.update(change)) == found
