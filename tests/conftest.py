"""Says what was not run and how to run it: a test that needs more than this machine has is never "passed"."""

import os
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from tests.servers.fixtures import (
    elasticsearch_connection,
    elasticsearch_url,
    flink,
    kafka,
    prism,
    startable_elasticsearch,
    startable_flink,
    startable_kafka,
    startable_prism,
)

# Servers are one for the whole session, so their fixtures are named once, here.
__all__ = [
    "elasticsearch_connection",
    "elasticsearch_url",
    "flink",
    "kafka",
    "prism",
    "startable_elasticsearch",
    "startable_flink",
    "startable_kafka",
    "startable_prism",
]

HOW_TO_RUN = {
    "integration": "real components: make test-integration",
    "pipelines": "Beam in this process: make test-integration",
    "docker": "images and containers: make test-docker",
    "faults": "kills writers at random moments: make test-faults",
    "training": "compare the bundle with torch: make test-training",
}
# What the files of these tests import.
LIBRARIES = {"pipelines": "apache_beam", "training": "torch"}
# How long one example takes says how busy the machine is, not whether the code is right.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
NOT_RUN = pytest.StashKey[Counter[str]]()
NOT_READ = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOT_RUN] = Counter()
    config.stash[NOT_READ] = Counter()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out what cannot be imported here: tests of pipelines without Beam, tests that train without torch."""
    if not collection_path.name.startswith("test_"):
        return None
    for marker, library in LIBRARIES.items():
        marked = re.search(rf"^pytestmark = .*pytest\.mark\.{marker}\b", collection_path.read_text(), re.MULTILINE)
        if marked and not find_spec(library):
            config.stash[NOT_READ][marker] += 1
            return True
    return None


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in HOW_TO_RUN:
            if item.get_closest_marker(marker):
                item.config.stash[NOT_RUN][marker] += 1
                break


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A skipped test is one whose server or program is missing here; it is counted under that name."""
    return ("not run", "n", "NOT RUN") if report.skipped else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With NOTHING_MISSING=1, as the landing gate has it, tests that were not run fail the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    missing = reporter is not None and reporter.stats.get("not run")
    if os.environ.get("NOTHING_MISSING") and session.exitstatus == 0 and missing:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = _missing_here(terminalreporter)
    if not config.option.markexpr.startswith(tuple(HOW_TO_RUN)):
        for marker, count in sorted(config.stash[NOT_RUN].items()):
            lines.append(f"{count:4} {marker} tests ({HOW_TO_RUN[marker]})")
        for marker, files in config.stash[NOT_READ].items():
            lines.append(f"{files:4} files of {marker} tests ({HOW_TO_RUN[marker]})")
    if os.environ.get("NOTHING_MISSING") and terminalreporter.stats.get("not run"):
        lines.append("which is a failure here: NOTHING_MISSING is set")
    if lines:
        terminalreporter.section("not run")
        for line in lines:
            terminalreporter.write_line(line)


def _missing_here(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """One line per reason for which selected tests were not run."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("not run", []):
        _, _, reason = report.longrepr
        reasons[reason.removeprefix("Skipped: ")] += 1
    return [f"{count:4} tests: {reason}" for reason, count in sorted(reasons.items())]
