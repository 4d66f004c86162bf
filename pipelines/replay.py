"""Replays dead letters after their cause has been fixed.

    python -m pipelines.replay --dead-letters dead-letters --dry-run
    python -m pipelines.replay --dead-letters s3://bucket/dead-letters --stage decode --column name=title

A replayed message has the bytes, the position and the time of the original. So newer changes of its company take
precedence, and replaying twice changes nothing. Delivery is at least once, so a message may have several dead letters,
in one file or in several; it is replayed once (`DeadLetter.identity`). After the job has succeeded, its files are moved
to FOLDER/replayed/; letters of other stages than `--stage` stay in the folder. A message that fails again becomes a new
dead letter.
"""

import argparse
import os
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

import apache_beam as beam
import typer
from apache_beam.io.filesystems import FileSystems
from apache_beam.runners.runner import PipelineState
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.arguments import parse, same_named
from pipelines.dead_letters import REPLAYED, LetterFile, begun_at, write_to_folder
from pipelines.file_systems import located, matches, move, open_to_read
from pipelines.metrics import counted
from pipelines.options import DEFAULT_DEAD_LETTERS, add_column_options, add_work_options, beam_options
from pipelines.stream import ensure_write_target, summary
from pipelines.transforms import Ingest
from pipelines.worker_settings import WorkerSettings
from similarity.company import utc_now
from similarity.errors import InvalidInput, SimilarityError
from similarity.ingest.dead_letters import DeadLetter, Stage
from similarity.ingest.messages import Message
from similarity.ingest.records import Columns

ANY_STAGE = frozenset(Stage)
# The parts of a reason that differ between messages: quoted values and numbers.
PARTICULARS = re.compile(r"b?'[^']*'|b?\"[^\"]*\"|\d[\d.,]*")
EXAMPLE_CHARACTERS = 60


class ReadDeadLetters(beam.PTransform):
    """PBegin -> PCollection[Message]: the original messages that failed at one of the stages, each once.

    `paths` are files of dead letters (`letter_files`).
    """

    def __init__(self, paths: Sequence[str], *, stages: frozenset[Stage] = ANY_STAGE) -> None:
        super().__init__()
        self._paths = list(paths)
        self._stages = stages

    def expand(self, begin: beam.pvalue.PBegin) -> "beam.PCollection[Message]":
        """Read the files; the workers share their messages."""
        return (
            begin
            | "Files" >> beam.Create(self._paths, reshuffle=False)
            | "Letters" >> beam.FlatMap(letters_in)
            | "OfStages" >> beam.Filter(lambda letter, stages: letter.stage in stages, self._stages)
            | "ByIdentity"
            >> beam.Map(lambda letter: (letter.identity, letter.message)).with_output_types(tuple[bytes, Message])
            | "OncePerMessage" >> beam.GroupByKey()
            | "Message" >> beam.Map(_newest).with_output_types(Message)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The number of messages that failed at a stage for a kind of reason, and the newest of their dead letters."""

    stage: Stage
    reason: str
    count: int
    newest: DeadLetter


def letter_files(folder: str, *, until: datetime | None = None) -> list[str]:
    """Return the files of dead letters in a folder that were begun before `until` (None: all), oldest first.

    Raises:
        InvalidInput: the folder cannot be read.
    """
    found = {path: begun_at(path) for path in matches(FileSystems.join(located(folder), "dead-*"))}
    return sorted(path for path, begun in found.items() if begun and (until is None or begun < until))


def letters_in(path: str) -> Iterator[DeadLetter]:
    """Yield the dead letters of a file.

    Raises:
        InvalidInput: a line is not a dead letter.
    """
    with open_to_read(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield DeadLetter.from_line(line.decode())
            except (InvalidInput, UnicodeDecodeError) as error:
                raise InvalidInput(f"{path}, line {number}: {error}") from error


def causes(letters: Iterable[DeadLetter], *, stages: frozenset[Stage] = ANY_STAGE) -> list[Cause]:
    """Return the causes of dead letters, the most frequent first. A message counts once, with its newest letter.

    `letters` must be sorted by time, oldest first. Memory grows with the number of causes, not of letters.
    """
    newest: dict[tuple[str, str], DeadLetter] = {}
    # A database without a name is a temporary file.
    with closing(sqlite3.connect("")) as database:
        database.execute("CREATE TABLE died (identity PRIMARY KEY, stage, reason) WITHOUT ROWID")
        for letter in letters:
            if letter.stage in stages:
                cause = letter.stage.value, PARTICULARS.sub("…", letter.reason)
                database.execute("INSERT OR REPLACE INTO died VALUES (?, ?, ?)", (letter.identity, *cause))
                newest[cause] = letter
        counts = database.execute("SELECT stage, reason, count(*) FROM died GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2")
        return [
            Cause(stage=Stage(stage), reason=reason, count=count, newest=newest[stage, reason])
            for stage, reason, count in counts
        ]


def set_aside(folder: str, paths: Iterable[str], *, stages: frozenset[Stage] = ANY_STAGE) -> None:
    """Move replayed files to `replayed/`; letters of other stages are kept in a new file with the same time.

    If the process is killed in between, some letters are in both folders; replaying them again changes nothing.
    """
    folder = located(folder)
    for path in paths:
        begun = begun_at(path)
        others = [letter for letter in letters_in(path) if letter.stage not in stages] if stages != ANY_STAGE else []
        if others and begun is not None:
            file = LetterFile(folder, begun=begun)
            for letter in others:
                file.add(letter)
            file.finish()
        move(path, FileSystems.join(folder, REPLAYED, FileSystems.split(path)[1]))


def table_of(found: Sequence[Cause]) -> Table:
    """Return the causes as a table for the terminal."""
    table = Table("stage", "reason", "messages", "newest of them", title="dead letters")
    for cause in found:
        message = cause.newest.message
        value = (message.value or b"").decode(errors="backslashreplace").strip()
        example = value if len(value) <= EXAMPLE_CHARACTERS else value[: EXAMPLE_CHARACTERS - 1] + "…"
        newest = f"{message.position} of {message.time:%Y-%m-%d %H:%M:%S}\n{example}"
        table.add_row(cause.stage, Text(cause.reason), f"{cause.count:,}", Text(newest))
    return table


def run(given: argparse.Namespace, rest: Sequence[str]) -> int:
    """Print the causes of the dead letters and, unless it is a dry run, replay them; return how many are dead again.

    Raises:
        SimilarityError: an option or a file is invalid.
    """
    pipeline_options = beam_options(rest, bounded=True)
    stages = frozenset(map(Stage, given.stage)) or ANY_STAGE
    paths = letter_files(given.dead_letters, until=given.until)
    found = causes((letter for path in paths for letter in letters_in(path)), stages=stages)
    if not found:
        is_there = FileSystems.exists(located(given.dead_letters))
        hint = "" if is_there else ": there is no such folder; the first dead letter makes it"
        typer.echo(f"there are no such dead letters in {given.dead_letters}{hint}", err=True)
        return 0
    Console(stderr=True).print(table_of(found))
    if given.dry_run:
        return 0
    worker_settings = WorkerSettings(**same_named(given, WorkerSettings))
    known = ensure_write_target(worker_settings, os.environ, now=utc_now())
    columns = known.added_to(Columns.from_pairs(given.column, given.attribute))
    pipeline = beam.Pipeline(options=pipeline_options)
    messages = pipeline | "Read" >> ReadDeadLetters(paths, stages=stages)
    ingested = messages | "Ingest" >> Ingest(worker_settings, columns=columns)
    _ = ingested.dead | "KeepDeadLetters" >> write_to_folder(given.dead_letters)
    result = pipeline.run()
    if (state := result.wait_until_finish()) != PipelineState.DONE:
        raise InvalidInput(f"the job ended as {state}; the dead letters were not moved: run the same command again")
    set_aside(given.dead_letters, paths, stages=stages)
    typer.echo(summary(result), err=True)
    return counted(result).get("messages_dead", 0)


def moment(text: str) -> datetime:
    """Return the time in a text. Raises ValueError if it is no time or has no UTC offset."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text} has no time zone; write it with an offset or 'Z'")
    return time


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and replay. The exit status is 1 if a message became a dead letter again."""
    parser = argparse.ArgumentParser(
        description="Process dead letters again.", epilog="Other options go to Beam: --runner, --job_endpoint, ..."
    )
    add = parser.add_argument
    add("--dead-letters", default=DEFAULT_DEAD_LETTERS, metavar="FOLDER", help="their folder [dead-letters]")
    add("--stage", action="append", default=[], choices=list(Stage), help="only letters of this stage (repeatable)")
    add("--until", type=moment, metavar="TIME", help="only files begun before this time, as 2026-01-31T12:00Z")
    add("--dry-run", action="store_true", help="show the letters that would be replayed and their causes")
    add_column_options(parser)
    add_work_options(parser)
    try:
        dead = run(*parse(parser, arguments))
    except SimilarityError as error:
        sys.exit(f"refused: {error}")
    if dead:
        sys.exit(1)


def _newest(of_identity: tuple[bytes, Iterable[Message]]) -> Message:
    """Return the newest copy: a file that is read again gives its messages the time of that run."""
    return max(of_identity[1], key=lambda message: message.time)


if __name__ == "__main__":
    main()
