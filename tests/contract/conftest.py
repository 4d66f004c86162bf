"""The stores that the contract tests run on. A new `CompanyIndex` is added here and nowhere else."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from tests.contract.clock import Clock
from tests.contract.steps import add_live


def open_sqlite(folder: Path, clock: Clock) -> CompanyIndex:
    return SqliteIndex(folder / "index.db", clock=clock)


STORES: dict[str, Callable[[Path, Clock], CompanyIndex]] = {"sqlite": open_sqlite}
# How many random histories `test_model` follows: as many as take seconds.
HISTORIES = {"sqlite": 60, "elasticsearch": 12}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest) -> str:
    """The name of the store that the test runs on."""
    return str(request.param)


@pytest.fixture
def clock() -> Clock:
    """The clock of every index of the test."""
    return Clock()


@pytest.fixture
def open_index(store: str, clock: Clock, tmp_path: Path) -> Iterator[Callable[[], CompanyIndex]]:
    """A function that makes one more empty index; all are closed when the test ends."""
    numbers = count()
    with ExitStack() as opened:

        def open_one() -> CompanyIndex:
            index = STORES[store](tmp_path / str(next(numbers)), clock)
            opened.enter_context(closing(index))
            return index

        yield open_one


@pytest.fixture
def index(open_index: Callable[[], CompanyIndex]) -> CompanyIndex:
    """An empty index."""
    return open_index()


@pytest.fixture
def live(index: CompanyIndex) -> str:
    """The name of the live, empty generation of `index`."""
    return add_live(index, "first")


@pytest.fixture
def histories(store: str) -> int:
    """How many random histories to follow on this store."""
    return HISTORIES[store]
