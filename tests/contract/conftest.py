"""The stores that the contract tests run on. A new `CompanyIndex` is added to `STORES` and to nothing else."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from tests.contract.steps import add_live


def open_sqlite(folder: Path) -> CompanyIndex:
    return SqliteIndex(folder / "index.db")


STORES: dict[str, Callable[[Path], CompanyIndex]] = {"sqlite": open_sqlite}


@pytest.fixture(params=sorted(STORES))
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], CompanyIndex]]:
    """A function that makes one more empty index; all are closed when the test ends."""
    numbers = count()
    with ExitStack() as opened:

        def open_one() -> CompanyIndex:
            index = STORES[request.param](tmp_path / str(next(numbers)))
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
