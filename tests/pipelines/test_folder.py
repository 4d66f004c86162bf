import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import MAX_TIMESTAMP
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.sources.folder import FolderMark, FolderReader, FolderSource, ReadFolder
from pipelines.workplace import Workplace
from similarity.errors import InvalidInput
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.dead_letters import DeadLetter
from similarity.ingest.messages import Message
from tests.servers.prism import Prism, unavailable_reason

pytestmark = pytest.mark.pipelines
ROOT = Path(__file__).parents[2]
WRITTEN = 1_790_000_000  # when the files of these tests were written


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = WRITTEN + 3600.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def drop(folder: Path, name: str, *rows: str, written: float = WRITTEN) -> Path:
    path = folder / name
    path.write_text("id\n" + "".join(f"{row}\n" for row in rows))
    os.utime(path, (written, written))
    return path


def reader_of(
    folder: Path, clock: Clock, *, settle: float = 5, only: frozenset[str] | None = None, mark: FolderMark | None = None
) -> FolderReader:
    source = FolderSource(folder=folder, settle_seconds=settle, only=only, clock=clock, wait_seconds=0)
    if mark is not None:
        coder = source.get_checkpoint_mark_coder()
        mark = coder.decode(coder.encode(mark))
    return source.create_reader(None, mark)


def ids(reader: FolderReader, limit: int | None = None) -> list[str]:
    """The ids of the rows that are there now, at most so many."""
    found: list[str] = []
    while (limit is None or len(found) < limit) and reader.advance():
        value = reader.get_current().value
        found.append(value.decode().split('"')[3] if value else "broken")
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_files_are_read_in_the_order_of_their_times_and_moved_when_final(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "b.csv", "1", "2", written=WRITTEN)
    drop(tmp_path, "a.csv", "3", written=WRITTEN + 1)
    reader = reader_of(tmp_path, clock)
    assert ids(reader) == ["1", "2", "3"]
    assert names(tmp_path) == ["a.csv", "b.csv"]
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert names(tmp_path) == []
    assert names(tmp_path / "done") == ["a.csv", "b.csv"]
    assert ids(reader) == []


def test_a_file_waits_in_its_place_until_its_last_row_is_final(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "a.csv", "1", "2")
    reader = reader_of(tmp_path, clock)
    assert ids(reader, 2) == ["1", "2"]
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert names(tmp_path) == ["a.csv"], "nobody has looked yet whether there is a third row"
    assert ids(reader) == []
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert names(tmp_path) == []


def test_a_start_without_state_reads_again_what_was_not_final(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "a.csv", "1", written=WRITTEN)
    drop(tmp_path, "b.csv", "2", "3", written=WRITTEN + 1)
    reader = reader_of(tmp_path, clock)
    assert ids(reader, 2) == ["1", "2"]
    reader.get_checkpoint_mark().finalize_checkpoint()
    reader.close()
    assert ids(reader_of(tmp_path, clock)) == ["2", "3"]


def test_a_row_read_again_has_the_same_position_and_time(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "a.csv", "1")
    first, again = reader_of(tmp_path, clock), reader_of(tmp_path, clock)
    assert first.start()
    clock.now += 1000
    assert again.start()
    assert first.get_current() == again.get_current()
    assert first.get_current().position == f"file:{tmp_path}/a.csv@{WRITTEN * 10**9}#1"
    assert first.get_current().time.timestamp() == WRITTEN


@settings(deadline=None)
@given(rows=st.lists(st.integers(0, 4), min_size=1, max_size=6), cuts=st.lists(st.integers(0, 5), max_size=12))
def test_wherever_readers_are_cut_off_each_row_comes_once(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], cuts: list[int]
) -> None:
    folder, clock = tmp_path_factory.mktemp("inbox"), Clock()
    for number, count in enumerate(rows):
        drop(folder, f"{number}.csv", *(f"{number}-{row}" for row in range(count)), written=WRITTEN + number)
    found: list[str] = []
    mark = None
    for cut in [*cuts, None]:
        reader = reader_of(folder, clock, mark=mark)
        found += ids(reader, cut)
        mark = reader.get_checkpoint_mark()
        mark.finalize_checkpoint()
        reader.close()
    assert found == [f"{number}-{row}" for number, count in enumerate(rows) for row in range(count)]
    assert names(folder) == []


def test_a_file_that_is_still_written_to_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "a.csv", "1", written=clock.now)
    reader = reader_of(tmp_path, clock, settle=5)
    assert ids(reader) == []
    clock.now += 4
    drop(tmp_path, "a.csv", "1", "2", written=clock.now)
    assert ids(reader) == []
    clock.now += 4
    assert ids(reader) == []
    clock.now += 1
    assert ids(reader) == ["1", "2"]


def test_a_file_from_a_clock_that_is_ahead_is_read_all_the_same(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "a.csv", "1", written=clock.now + 1000)
    reader = reader_of(tmp_path, clock, settle=5)
    assert ids(reader) == []
    clock.now += 5
    assert reader.advance()
    assert reader.get_current().time.timestamp() == clock.now, "its rows must not win over later ones"


@pytest.mark.parametrize("name", [".a.csv", "a.csv.part"])
def test_unfinished_names_are_read_once_they_are_renamed(tmp_path: Path, clock: Clock, name: str) -> None:
    path = drop(tmp_path, name, "1")
    reader = reader_of(tmp_path, clock)
    assert ids(reader) == []
    path.rename(tmp_path / "a.csv")
    assert ids(reader) == ["1"]


def test_a_file_of_a_name_that_was_there_before_is_read_and_both_are_kept(tmp_path: Path, clock: Clock) -> None:
    reader = reader_of(tmp_path, clock)
    for day in range(3):
        drop(tmp_path, "daily.csv", str(day), written=WRITTEN + day)
        assert ids(reader) == [str(day)]
        reader.get_checkpoint_mark().finalize_checkpoint()
    assert names(tmp_path / "done") == ["2-daily.csv", "3-daily.csv", "daily.csv"]


def test_a_file_replaced_before_it_was_final_is_not_moved_unread(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "a.csv", "1")
    reader = reader_of(tmp_path, clock)
    assert ids(reader) == ["1"]
    mark = reader.get_checkpoint_mark()
    drop(tmp_path, "a.csv", "2", written=WRITTEN + 1)
    mark.finalize_checkpoint()
    assert names(tmp_path) == ["a.csv"]
    assert ids(reader) == ["2"]


def test_a_mark_can_be_finalized_again(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "a.csv", "1")
    reader = reader_of(tmp_path, clock)
    assert ids(reader) == ["1"]
    mark = reader.get_checkpoint_mark()
    mark.finalize_checkpoint()
    mark.finalize_checkpoint()
    assert names(tmp_path / "done") == ["a.csv"]


def test_a_reader_goes_on_when_its_file_was_finished_by_another(tmp_path: Path, clock: Clock) -> None:
    path = drop(tmp_path, "a.csv", "1", "2")
    reader = reader_of(tmp_path, clock)
    assert ids(reader, 1) == ["1"]
    mark = reader.get_checkpoint_mark()
    reader.close()
    path.unlink()
    drop(tmp_path, "b.csv", "3")
    assert ids(reader_of(tmp_path, clock, mark=mark)) == ["3"]


def write_broken_gzip(folder: Path) -> None:
    (folder / "x.csv.gz").write_bytes(gzip.compress(b"id\n1\n")[:-10])


def write_unknown_ending(folder: Path) -> None:
    (folder / "x.xlsx").write_bytes(b"PK")


def write_empty_csv(folder: Path) -> None:
    (folder / "x.csv").touch()


@pytest.mark.parametrize("write", [write_broken_gzip, write_unknown_ending, write_empty_csv])
def test_a_file_that_cannot_be_read_is_one_unreadable_message(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path)
    reader = FolderSource(folder=tmp_path, settle_seconds=0).create_reader(None, None)
    unreadable = [message.unreadable for message in messages(reader) if message.unreadable]
    assert len(unreadable) == 1
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert names(tmp_path) == []
    assert len(names(tmp_path / "done")) == 1


def messages(reader: FolderReader) -> Iterator[Message]:
    while reader.advance():
        yield reader.get_current()


def test_until_the_end_means_what_was_there_at_the_start(tmp_path: Path, clock: Clock) -> None:
    drop(tmp_path, "a.csv", "1")
    drop(tmp_path, "slow.csv", "2", written=clock.now)
    reader = reader_of(tmp_path, clock, only=frozenset({"a.csv", "slow.csv"}))
    drop(tmp_path, "late.csv", "3")
    assert ids(reader) == ["1"]
    assert reader.get_watermark() < MAX_TIMESTAMP, "one of them is still written to"
    clock.now += 5
    assert ids(reader) == ["2"]
    assert reader.get_watermark() == MAX_TIMESTAMP


def test_an_endless_reader_never_ends(tmp_path: Path, clock: Clock) -> None:
    reader = reader_of(tmp_path, clock)
    assert ids(reader) == []
    assert reader.get_watermark() < MAX_TIMESTAMP


@pytest.mark.parametrize("max_messages", [1, 3, 1000])
def test_a_pipeline_reads_the_folder_once_and_moves_its_files(tmp_path: Path, max_messages: int) -> None:
    for number in range(3):
        drop(tmp_path, f"{number}.csv", *(f"{number}-{row}" for row in range(4)))
    source = ReadFolder(str(tmp_path), until_end=True, poll_seconds=0.01, max_messages=max_messages)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        values = pipeline | source | beam.Map(lambda message: message.value)
        assert_that(
            values, equal_to([f'{{"id": "{number}-{row}"}}'.encode() for number in range(3) for row in range(4)])
        )
    assert names(tmp_path) == []
    assert names(tmp_path / "done") == ["0.csv", "1.csv", "2.csv"]


def test_a_job_that_dies_moves_nothing_that_it_did_not_finish(tmp_path: Path) -> None:
    for number in range(3):
        drop(tmp_path, f"{number}.csv", f"{number}-0", f"{number}-1", written=WRITTEN + number)

    def die_of_the_last_row(message: Message) -> bytes | None:
        if b"2-1" in (message.value or b""):
            raise RuntimeError("a poison row")
        return message.value

    def source() -> ReadFolder:
        return ReadFolder(str(tmp_path), until_end=True, poll_seconds=0.01, max_messages=3)

    with pytest.raises(RuntimeError, match="a poison row"), beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | source() | beam.Map(die_of_the_last_row)
    assert names(tmp_path) == ["1.csv", "2.csv"], "the last row of 1.csv was in the bundle that failed"
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        values = pipeline | source() | beam.Map(lambda message: message.value)
        assert_that(values, equal_to([f'{{"id": "{row}"}}'.encode() for row in ("1-0", "1-1", "2-0", "2-1")]))
    assert names(tmp_path) == []


@contextmanager
def streaming(inbox: Path, workplace: Workplace, prism: Prism) -> Iterator["subprocess.Popen[bytes]"]:
    """The command as a user runs it; it is killed at the end of the block, as a crash does it."""
    folder = inbox.parent
    command = f"-m pipelines.stream --folder {inbox} --index {workplace.index} --dead-letters {folder}/dead --threads 1"
    with (folder / "stream.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *command.split(), *prism.beam_options(streaming=True)], cwd=ROOT, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def eventually(condition: Callable[[], bool], log: Path, *, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
        time.sleep(0.05)


@pytest.mark.integration
def test_a_killed_stream_on_prism_goes_on_where_the_folder_says(
    index: SqliteIndex, workplace: Workplace, tmp_path: Path
) -> None:
    if reason := unavailable_reason():
        pytest.skip(reason)
    inbox, done, log = tmp_path / "inbox", tmp_path / "inbox" / "done", tmp_path / "stream.log"
    inbox.mkdir()
    for number in range(40):
        path = inbox / f"{number}.csv"
        path.write_text("id,name,description\n" + "".join(f"{number}-{row},N,Boats\n" for row in range(100)) + "x\n")
        os.utime(path, (WRITTEN, WRITTEN))
    with Prism(tmp_path / "prism") as prism:
        with streaming(inbox, workplace, prism):
            eventually(lambda: done.exists() and len(names(done)) > 3, log)
        assert names(inbox), "it was killed too late to show anything"
        prism.kill()  # with what it knew of the job
        prism.start()
        with streaming(inbox, workplace, prism):
            eventually(lambda: not names(inbox), log)
    assert index.stats(index.live().name).companies == 4000
    positions = {
        DeadLetter.from_line(line).message.position
        for file in (tmp_path / "dead").glob("dead-*")
        for line in file.read_text().splitlines()
    }
    assert positions == {f"file:{inbox}/{number}.csv@{WRITTEN * 10**9}#101" for number in range(40)}


def test_a_folder_that_is_not_there_is_said_so_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a folder; make it"):
        beam.Pipeline(runner="FnApiRunner") | ReadFolder(str(tmp_path / "inbox"))
