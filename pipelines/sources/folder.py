"""Messages from a watched folder: files that are dropped there are read row by row, then moved into `done/`.

    messages = pipeline | ReadFolder("/data/inbox")

    written to        a file is complete when it was not written to for `settle_seconds`; names that begin
                      with a dot or end in .part are left alone, so rename a file when it is written
    read              in the order of the files' times
    moved to done/    when a bundle with the file's last row is final: its messages are in the index or
                      among the dead letters

So the folder itself says what is still to be read: a job that starts without any state reads again what
was not final, and nothing else. A row becomes the message "file:PATH@TIME#ROW", where TIME tells files of
one name apart, and the file's time is the version of rows that carry no event time.

One reader of one job watches a folder, on a file system that launching machine and workers share. Object
stores tell nobody of new files at once: send messages instead, or read their files with ReadFiles.
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
    """PBegin -> PCollection[Message], for as long as the job runs; or, `until_end`, of what is there when it is built.

    A bundle ends after `max_messages` or `max_seconds`, whichever comes first.

    Raises:
        InvalidInput: there is no such folder.
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
        """Reads the folder by one reader."""
        if not self._folder.is_dir():
            raise InvalidInput(
                f"{self._folder} is no folder; make it, on a file system that every worker sees at this path"
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
    """One file as it was seen: what is written to it later, or put in its place, is another one."""

    modified_ns: int
    name: str
    size: int

    @property
    def modified(self) -> float:
        """When it was written, in seconds since 1970."""
        return self.modified_ns / 1e9

    @classmethod
    def at(cls, path: Path) -> "DroppedFile | None":
        """The file at a path; None where there is none (any more)."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        return cls(modified_ns=status.st_mtime_ns, name=path.name, size=status.st_size)


def files_in(folder: Path) -> list[DroppedFile]:
    """The files in a folder that are meant to be read, oldest first; its sub-folders are not looked into."""
    paths = (path for path in folder.iterdir() if not path.name.startswith(".") and not path.name.endswith(".part"))
    return sorted(file for path in paths if path.is_file() and (file := DroppedFile.at(path)))


def move_to_done(folder: Path, file: DroppedFile) -> None:
    """Moves a file out of the way, if it is still the one that was read; next to a namesake it gets a number."""
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
    """How far a reader is: files read to their end and still in the folder, and the row reached in another."""

    folder: Path
    read: frozenset[DroppedFile] = frozenset()
    current: DroppedFile | None = None
    row: int = 0

    def finalize_checkpoint(self) -> None:
        """Everything up to here is final. Doing it twice, or again with an older mark, changes nothing."""
        for file in sorted(self.read):
            move_to_done(self.folder, file)


@dataclass(frozen=True, kw_only=True)
class FolderSource(UnboundedSource):
    """A watched folder; with `only`, just the files of these names, and then it ends."""

    folder: Path
    settle_seconds: float
    only: frozenset[str] | None = None
    clock: Clock = time.time
    # The in-process runner asks an idle reader again at once, and every time is a bundle to it.
    wait_seconds: float = 0.1

    def split(self, desired_num_splits: int, options: object = None) -> "Iterable[FolderSource]":
        return [self]

    def create_reader(self, options: object, checkpoint_mark: FolderMark | None) -> "FolderReader":
        return FolderReader(self, checkpoint_mark or FolderMark(folder=self.folder))

    def get_checkpoint_mark_coder(self) -> Coder:
        return PickleCoder()


Numbered = tuple[int, Message]


class FolderReader(UnboundedReader):
    """Reads one file after the other. For one thread."""

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
        """The next row, if any is there now."""
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
        """The unread files that nobody writes to any more; notices the end on the way."""
        present = files_in(self._source.folder)
        self._read &= set(present)  # the others were moved, which is final
        self._first_seen = {file: self._first_seen.get(file, self._now) for file in present}
        only = self._source.only
        unread = [file for file in present if file not in self._read and (only is None or file.name in only)]
        self._ended = only is not None and not unread
        return [file for file in unread if self._quiet_seconds(file) >= self._source.settle_seconds]

    def _quiet_seconds(self, file: DroppedFile) -> float:
        # The second is for clocks: a file server's may be ahead of ours.
        return self._now - min(file.modified, self._first_seen[file])

    def _rows_of(self, file: DroppedFile | None, *, after: int = 0) -> Generator[Numbered, None, None]:
        """The numbered rows of a file behind a row; none of one that is gone or was written to again."""
        if file is None:
            return
        path = self._source.folder / file.name
        written = datetime.fromtimestamp(min(file.modified, self._now), UTC)
        place = f"file:{path}@{file.modified_ns}"
        number = 0
        try:
            if DroppedFile.at(path) != file:
                return
            with path.open("rb") as stream:
                for row in read_stream(stream, name=path.name):
                    number = row.number
                    if number > after:
                        yield number, message_of(row, position=f"{place}#{number}", time=written)
        except (InvalidInput, OSError) as error:
            number += 1
            if number > after:
                yield number, unreadable_rest(error, position=f"{place}#{number}", time=written)
