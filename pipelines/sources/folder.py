"""Reads messages from a watched folder: new files are read row by row, then moved to `done/`.

    messages = pipeline | ReadFolder("/data/inbox")

    written to        a file is complete when it has not been written to for `settle_seconds`; files whose names begin
                      with a dot or end in .part are ignored, so rename a file after writing it
    read              in the order of the files' modification times
    moved to done/    when the Beam bundle with the last row is finalized: its messages are in the index or among the
                      dead letters

So the folder itself is the state: a job that starts without a checkpoint reads only the files that were not finalized.
A row becomes the message "file:PATH@TIME#ROW", where TIME distinguishes files with the same name. The modification time
is the version of rows without an event time.

A folder is watched by one reader of one job, on a file system shared by all machines. Object stores do not report new
files at once: send messages instead, or read their files with ReadFiles.
"""

import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apache_beam as beam
from apache_beam.coders import Coder, PickleCoder
from apache_beam.io.unbounded_source import (
    CheckpointMark,
    ReadFromUnboundedSource,
    UnboundedReader,
    UnboundedSource,
)
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp

from pipelines.sources.files import message_of, unreadable_rest
from similarity.errors import InvalidInput
from similarity.ingest.files import read_stream
from similarity.ingest.messages import Message

DONE = "done"
SETTLE_SECONDS = 5.0
POLL_SECONDS = 1.0
MAX_MESSAGES = 2048
MAX_SECONDS = 5.0

Clock = Callable[[], float]


class ReadFolder(beam.PTransform):
    """PBegin -> PCollection[Message] until the job ends or, with `until_end`, from the files present when it is built.

    A Beam bundle ends after `max_messages` or `max_seconds`, whichever comes first.

    Raises:
        InvalidInput: the folder does not exist.
    """

    def __init__(
        self,
        folder: str,
        *,
        until_end: bool = False,
        poll_seconds: float = POLL_SECONDS,
        max_messages: int = MAX_MESSAGES,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        super().__init__()
        self._folder = Path(folder).absolute()
        self._until_end = until_end
        self._poll_seconds = poll_seconds
        self._max_messages = max_messages
        self._max_seconds = max_seconds

    def expand(self, begin: beam.pvalue.PBegin) -> "beam.PCollection[Message]":
        """Read the folder with one reader."""
        if not self._folder.is_dir():
            raise InvalidInput(
                f"{self._folder} is not a folder; make it, on a file system that every worker sees at this path"
            )
        only = frozenset(file.name for file in files_in(self._folder)) if self._until_end else None
        source = FolderSource(folder=self._folder, settle_seconds=SETTLE_SECONDS, only=only)
        return begin | "Rows" >> ReadFromUnboundedSource(
            source,
            poll_interval=self._poll_seconds,
            max_records_per_bundle=self._max_messages,
            max_read_time_seconds=self._max_seconds,
        )


@dataclass(frozen=True, slots=True, order=True)
class DroppedFile:
    """One version of a file: after a later write or replacement it is another DroppedFile."""

    modified_ns: int
    name: str
    size: int

    @property
    def modified(self) -> float:
        """Modification time in seconds since 1970."""
        return self.modified_ns / 1e9

    @classmethod
    def at(cls, path: Path) -> "DroppedFile | None":
        """Return the file at a path; None if it does not exist."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        return cls(modified_ns=status.st_mtime_ns, name=path.name, size=status.st_size)


def files_in(folder: Path) -> list[DroppedFile]:
    """Return the files in a folder that should be read, oldest first, without subfolders."""
    paths = (path for path in folder.iterdir() if not path.name.startswith(".") and not path.name.endswith(".part"))
    return sorted(file for path in paths if path.is_file() and (file := DroppedFile.at(path)))


def move_to_done(folder: Path, file: DroppedFile) -> None:
    """Move a file to `done/` if it has not changed since it was read; if its name exists there, add a number."""
    path = folder / file.name
    if DroppedFile.at(path) != file:
        return
    target = folder / DONE / file.name
    target.parent.mkdir(exist_ok=True)
    number = 1
    while target.exists():
        number += 1
        target = target.with_name(f"{number}-{file.name}")
    path.rename(target)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderMark(CheckpointMark):
    """The position of a reader: files that are completely read but not moved yet, and the last row read of another."""

    folder: Path
    read: frozenset[DroppedFile] = frozenset()
    current: DroppedFile | None = None
    row: int = 0

    def finalize_checkpoint(self) -> None:
        """Move the files that are completely read. A repeated call, also with an older mark, changes nothing."""
        for file in sorted(self.read):
            move_to_done(self.folder, file)


@dataclass(frozen=True, kw_only=True)
class FolderSource(UnboundedSource):
    """A watched folder; if `only` is given, a bounded source of the files with these names."""

    folder: Path
    settle_seconds: float
    only: frozenset[str] | None = None
    clock: Clock = time.time
    # The in-process runner polls an idle reader again at once, and each poll is a Beam bundle.
    wait_seconds: float = 0.1

    def split(self, desired_num_splits: int, options: object = None) -> "Iterable[FolderSource]":
        return [self]

    def create_reader(self, options: object, checkpoint_mark: FolderMark | None) -> "FolderReader":
        return FolderReader(self, checkpoint_mark or FolderMark(folder=self.folder))

    def get_checkpoint_mark_coder(self) -> Coder:
        return PickleCoder()


Numbered = tuple[int, Message]


class FolderReader(UnboundedReader):
    """Reads one file after the other. Not safe to share between threads."""

    def __init__(self, source: FolderSource, mark: FolderMark) -> None:
        self._source = source
        self._read = set(mark.read)
        self._file = mark.current
        self._row = mark.row
        self._rows = self._rows_of(mark.current, after=mark.row)
        self._waiting: list[DroppedFile] = []
        self._first_seen: dict[DroppedFile, float] = {}
        self._now = source.clock()
        self._ended = False

    def start(self) -> bool:
        return self.advance()

    def advance(self) -> bool:
        """Read the next row; return whether there is one."""
        self._now = self._source.clock()
        while True:
            if numbered := next(self._rows, None):
                self._row, self._message = numbered
                return True
            if self._file is not None:
                self._read.add(self._file)
            self._waiting = self._waiting or self._complete_files()
            self._file, self._row = self._waiting.pop(0) if self._waiting else None, 0
            self._rows = self._rows_of(self._file)
            if self._file is None:
                if not self._ended:
                    time.sleep(self._source.wait_seconds)
                return False

    def get_current(self) -> Message:
        return self._message

    def get_current_timestamp(self) -> Timestamp:
        return Timestamp.of(self._now)

    def get_watermark(self) -> Timestamp:
        return MAX_TIMESTAMP if self._ended else Timestamp.of(self._now)

    def get_checkpoint_mark(self) -> FolderMark:
        return FolderMark(folder=self._source.folder, read=frozenset(self._read), current=self._file, row=self._row)

    def close(self) -> None:
        self._rows.close()

    def _complete_files(self) -> list[DroppedFile]:
        """Return the unread files that are complete; set `_ended` if a bounded source has no more files."""
        present = files_in(self._source.folder)
        self._read &= set(present)  # the others have been moved
        self._first_seen = {file: self._first_seen.get(file, self._now) for file in present}
        only = self._source.only
        unread = [file for file in present if file not in self._read and (only is None or file.name in only)]
        self._ended = only is not None and not unread
        return [file for file in unread if self._quiet_seconds(file) >= self._source.settle_seconds]

    def _quiet_seconds(self, file: DroppedFile) -> float:
        # `_first_seen`, because the clock of a file server may be ahead of ours.
        return self._now - min(file.modified, self._first_seen[file])

    def _rows_of(self, file: DroppedFile | None, *, after: int = 0) -> Generator[Numbered, None, None]:
        """Yield the numbered rows after row `after`; none if the file has been removed or changed."""
        if file is None:
            return
        path = self._source.folder / file.name
        written = datetime.fromtimestamp(min(file.modified, self._now), UTC)
        file_position = f"file:{path}@{file.modified_ns}"
        number = 0
        try:
            if DroppedFile.at(path) != file:
                return
            with path.open("rb") as stream:
                for row in read_stream(stream, name=path.name):
                    number = row.number
                    if number > after:
                        yield number, message_of(row, position=f"{file_position}#{number}", time=written)
        except (InvalidInput, OSError) as error:
            number += 1
            if number > after:
                yield number, unreadable_rest(error, position=f"{file_position}#{number}", time=written)
