"""Says what was not run and how to run it: a test that needs more than this machine has is never "passed"."""

from collections import Counter

import pytest

HOW_TO_RUN = {
    "integration": "real components: make test-integration",
    "faults": "kills writers at random moments: make test-faults",
    "training": "compare the bundle with torch: make test-training",
}
NOT_RUN = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOT_RUN] = Counter()


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
