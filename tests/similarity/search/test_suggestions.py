"""A name that nobody goes by leads to those who may be meant."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity.index.sqlite import SqliteIndex
from similarity.search.suggestions import MAX_SUGGESTIONS, suggest_companies
from tests.contract.steps import add_live
from tests.factories import make_embedded


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        brewers = [make_embedded(f"brewer-{number}", name=f"Brewer {number}") for number in range(9)]
        heineken = make_embedded("heineken", name="Heineken N.V.", description="Brews beer.")
        index.upsert("first", [*brewers, heineken, make_embedded("other", name="Hans", aliases=("Heirloom",))])
        yield index


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Heinekn", ["heineken"]),  # by its first half
        ("heine", ["heineken"]),  # by its start
        ("brews beer", ["heineken"]),  # by its words
        ("Heirlom", ["other"]),  # by an alias
        ("Henieken", ["heineken"]),  # by ever less of its start
        ("Brewr", [f"brewer-{number}" for number in range(5)]),
        ("Hexagon", []),  # the same start, and another word
        ("Zzz", []),
        ("", []),
    ],
)
def test_who_may_be_meant(index: SqliteIndex, typed: str, meant: list[str]) -> None:
    assert [company.id for company in suggest_companies(index, "first", typed)] == meant


def test_no_more_than_a_few_are_named(index: SqliteIndex) -> None:
    assert len(suggest_companies(index, "first", "Brewer")) == MAX_SUGGESTIONS == 5
