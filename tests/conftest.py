"""Says what was not run and how to run it: a test that needs more than this machine has is never "passed"."""

import os
from collections import Counter
from pathlib import Path

import pytest

HOW_TO_RUN = {
    "integration": "real components: make test-integration",
    "faults": "kills writers at random moments: make test-faults",
    "training": "compare the bundle with torch: make test-training",
    "shared_data": "judged companies: put the data folder at ../shared/data or name it in SHARED_DATA",
}
NOT_RUN = pytest.StashKey[Counter[str]]()


def shared_data() -> Path:
    """Where the judged companies are, if anywhere; they are not part of the project."""
    return Path(os.environ.get("SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOT_RUN] = Counter()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if shared_data().is_dir():
        return
    absent = [item for item in items if item.get_closest_marker("shared_data")]
    items[:] = [item for item in items if item not in absent]
    config.hook.pytest_deselected(items=absent)


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in HOW_TO_RUN:
            if item.get_closest_marker(marker):
                item.config.stash[NOT_RUN][marker] += 1
                break


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    not_run = config.stash[NOT_RUN]
    if not_run and not config.option.markexpr.startswith(tuple(HOW_TO_RUN)):
        terminalreporter.section("not run")
        for marker, count in sorted(not_run.items()):
            terminalreporter.write_line(f"{count:4} {marker} tests ({HOW_TO_RUN[marker]})")
