from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from similarity.generations.estimate import Estimate, estimate
from similarity.generations.plan import plan
from similarity.index.sqlite import SqliteIndex
from tests.contract.clock import Clock
from tests.factories import DIMENSION, make_generation
from tests.fakes import CountingEncoder
from tests.similarity.generations.staging import COMPANIES, DELETED, WANTED, SecondEncoder, fill_first, opened

LIVE_COMPANIES = COMPANIES - len(DELETED)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(opened(tmp_path, Clock())) as index:
        fill_first(index)
        yield index


def measured(index: SqliteIndex, *, new: CountingEncoder | None = None, **arguments: float) -> Estimate:
    """An estimate by a clock on which every encoding takes two seconds."""
    ticks = count(0, 2)
    rate = arguments.get("rate")
    old = CountingEncoder()
    sample = int(arguments.get("sample", 256))
    return estimate(
        index,
        plan(index, WANTED),
        new=new or SecondEncoder(),
        old=old,
        max_docs_per_second=rate,
        sample=sample,
        clock=lambda: next(ticks),
    )


def test_speed_is_measured_on_the_companies_own_texts(index: SqliteIndex) -> None:
    encoder = SecondEncoder()
    found = measured(index, new=encoder)
    assert set(encoder.texts) == {f"Makes things that only c{n:02} makes." for n in range(10)} - {
        f"Makes things that only {company} makes." for company in DELETED
    }
    assert (found.sample_texts, found.companies) == (LIVE_COMPANIES, LIVE_COMPANIES)
    assert found.new_texts_per_second == found.old_texts_per_second == LIVE_COMPANIES / 2
    assert found.hours == pytest.approx(COMPANIES / (LIVE_COMPANIES / 2) / 3600)


def test_a_rate_limit_that_is_slower_decides(index: SqliteIndex) -> None:
    assert measured(index, rate=1.0).hours == pytest.approx(COMPANIES / 3600)
    assert measured(index, rate=1e9).hours == measured(index).hours


def test_a_change_costs_both_encoders_while_both_generations_are_written_to(index: SqliteIndex) -> None:
    speed = LIVE_COMPANIES / 2
    assert measured(index).seconds_per_1000_changes == pytest.approx(2 * 1000 / speed)


@pytest.mark.parametrize(("sample", "numbers"), [(2, {0, 5}), (6, {0, 2, 4, 6, 8})])
def test_the_sample_is_spread_over_all_ids(index: SqliteIndex, sample: int, numbers: set[int]) -> None:
    encoder = SecondEncoder()
    measured(index, new=encoder, sample=sample)
    ids = {f"c{number:02}" for number in numbers} - set(DELETED)
    assert set(encoder.texts) == {f"Makes things that only {each} makes." for each in ids}


def test_disk_is_vector_and_words(index: SqliteIndex) -> None:
    found = measured(index)
    assert 5 * DIMENSION + 150 < found.bytes_per_company < 5 * DIMENSION + 300
    assert found.generation_bytes == found.bytes_per_company * LIVE_COMPANIES


def test_a_copy_encodes_nothing_so_only_the_rate_is_known(index: SqliteIndex) -> None:
    copied = plan(index, make_generation("second", bundle_id="bundle-2"))
    found = estimate(index, copied, new=None, old=None)
    assert (found.new_texts_per_second, found.hours, found.seconds_per_1000_changes) == (None, None, None)
    assert estimate(index, copied, new=None, old=None, max_docs_per_second=10).hours == pytest.approx(1 / 3600)


def test_an_empty_generation_costs_nothing(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "empty.db")) as empty:
        empty.create_generation(make_generation("first"))
        empty.register_candidate("first")
        empty.promote("first")
        found = measured(empty)
    assert (found.companies, found.generation_bytes, found.hours) == (0, 0, None)
