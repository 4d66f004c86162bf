"""Dead letters from a folder, through the command and its parts."""

import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from pipelines.dead_letters import LetterFile
from pipelines.replay import ReadDeadLetters, causes, letter_files, letters_in, main, set_aside
from similarity.errors import InvalidInput
from similarity.index.attributes import AttributeSchema, parse_type
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.dead_letters import DeadLetter, Stage
from similarity.ingest.messages import Message

pytestmark = pytest.mark.pipelines
T0 = datetime(2026, 1, 1, tzinfo=UTC)


def letter(
    number: int, *, stage: Stage = Stage.DECODE, value: bytes | None = b"{", reason: str = "value: is not JSON"
) -> DeadLetter:
    message = Message(position=f"kafka:companies/0/{number}", key=b"a", value=value, time=T0)
    return DeadLetter(message=message, stage=stage, reason=reason)


def keep(folder: Path, letters: Sequence[DeadLetter], *, minutes: int = 0) -> str:
    """Writes a file of dead letters that was begun so many minutes after T0; returns its path."""
    before = set(folder.glob("dead-*"))
    file = LetterFile(str(folder), begun=T0 + timedelta(minutes=minutes))
    for each in letters:
        file.add(each)
    file.finish()
    [path] = set(folder.glob("dead-*")) - before
    return str(path)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.exists() else []


def replayed(paths: Sequence[str], expected: Sequence[Message], **options: Any) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | ReadDeadLetters(paths, **options), equal_to(list(expected)))


def test_messages_come_back_as_they_were_each_once(tmp_path: Path) -> None:
    unreadable = DeadLetter(
        message=Message(position="file:a.csv#1", value=b"\xff", time=T0, unreadable="broken CSV"),
        stage=Stage.DECODE,
        reason="value: broken CSV",
    )
    delete = letter(2, value=None, stage=Stage.WRITE)
    paths = [keep(tmp_path, [letter(1), unreadable]), keep(tmp_path, [letter(1), delete])]
    replayed(paths, [letter(1).message, unreadable.message, delete.message])


def test_another_message_at_the_position_of_an_older_one_is_replayed_too(tmp_path: Path) -> None:
    older, other = letter(1), letter(1, value=b"[")  # the topic was deleted and created again in between
    paths = [keep(tmp_path, [older, older]), keep(tmp_path, [other, older])]
    replayed(paths, [older.message, other.message])
    assert [cause.count for cause in causes(each for path in paths for each in letters_in(path))] == [2]


def test_a_file_that_was_read_again_is_replayed_once_at_the_later_time(tmp_path: Path) -> None:
    first = DeadLetter(
        message=Message(position="file:a.csv#1", value=b"{", time=T0), stage=Stage.DECODE, reason="value: is not JSON"
    )
    again = replace(first, message=replace(first.message, time=T0 + timedelta(days=1)))
    replayed([keep(tmp_path, [again]), keep(tmp_path, [first])], [again.message])


def test_causes_of_many_duplicates_take_no_memory_for_each(tmp_path: Path) -> None:
    tracemalloc.start()
    [cause] = causes(letter(number % 20_000) for number in range(40_000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cause.count == 20_000
    assert most < 500_000


def test_one_stage_can_be_replayed_alone(tmp_path: Path) -> None:
    path = keep(tmp_path, [letter(1), letter(2, stage=Stage.WRITE)])
    replayed([path], [letter(2, stage=Stage.WRITE).message], stages=frozenset({Stage.WRITE}))


def test_files_are_found_oldest_first_and_until_a_time(tmp_path: Path) -> None:
    later, first = keep(tmp_path, [letter(1)], minutes=5), keep(tmp_path, [letter(2)], minutes=1)
    (tmp_path / "dead-letters.txt").touch()
    (tmp_path / ".dead-20260101T000000.000000Z-00000000.jsonl.part").touch()
    assert letter_files(str(tmp_path)) == [first, later]
    assert letter_files(str(tmp_path), until=T0 + timedelta(minutes=5)) == [first]


def test_a_line_that_is_no_dead_letter_is_named(tmp_path: Path) -> None:
    path = Path(keep(tmp_path, [letter(1)]))
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(InvalidInput, match=f"{path.name}, line 2: .* is not a dead letter"):
        list(letters_in(str(path)))


def test_causes_are_counted_without_what_is_particular_to_a_message() -> None:
    letters = [
        letter(1, reason="id: 'a b' must be 1-128 characters"),
        letter(2, reason="id: 'c d' must be 1-128 characters"),
        letter(2, reason="id: 'c d' must be 1-128 characters"),
        letter(3, reason="version 17 is there", stage=Stage.WRITE),
    ]
    found = causes(letters)
    assert [(cause.stage, cause.reason, cause.count) for cause in found] == [
        (Stage.DECODE, "id: … must be …-… characters", 2),
        (Stage.WRITE, "version … is there", 1),
    ]
    assert found[0].newest.message.position == "kafka:companies/0/2"
    assert [cause.stage for cause in causes(letters, stages=frozenset({Stage.WRITE}))] == [Stage.WRITE]


def test_a_message_that_died_again_of_something_else_counts_for_the_last() -> None:
    found = causes([letter(1), letter(1, stage=Stage.WRITE, reason="other content")])
    assert [(cause.stage, cause.count) for cause in found] == [(Stage.WRITE, 1)]


def test_replayed_files_are_set_aside_but_for_letters_of_other_stages(tmp_path: Path) -> None:
    mixed = keep(tmp_path, [letter(1), letter(2, stage=Stage.WRITE)])
    plain = keep(tmp_path, [letter(3)], minutes=1)
    set_aside(str(tmp_path), [mixed, plain], stages=frozenset({Stage.DECODE}))
    [left] = letter_files(str(tmp_path))
    assert list(letters_in(left)) == [letter(2, stage=Stage.WRITE)]
    assert names(tmp_path / "replayed") == sorted([Path(mixed).name, Path(plain).name])


def command(folder: Path, tmp_path: Path, *more: str) -> list[str]:
    return [*f"--dead-letters {folder} --index {tmp_path}/index.db --threads 1".split(), *more]


@pytest.fixture
def dead(tmp_path: Path) -> Path:
    """A message that only lacked its column, and one that nothing will mend."""
    folder = tmp_path / "dead"
    titled = json.dumps({"id": "a", "title": "Anvils", "description": "Makes anvils."}).encode()
    keep(folder, [letter(1, value=titled, reason="name: is empty"), letter(2)])
    return folder


def test_a_mended_message_reaches_the_index_and_the_others_die_again(
    index: SqliteIndex, dead: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names(dead)
    with pytest.raises(SystemExit, match="1"):
        main(command(dead, tmp_path, "--column", "name=title"))
    stored = index.get(index.live().name, ["a"])["a"]
    assert (stored.company.name, stored.version) == ("Anvils", 2 * 1_767_225_600_000_000)
    assert "2 messages: 1 applied, 1 dead" in capsys.readouterr().err
    assert names(dead / "replayed") == before
    [again] = letter_files(str(dead))
    assert [each.message for each in letters_in(again)] == [letter(2).message]


def test_a_replayed_row_keeps_the_attributes_of_the_index(index: SqliteIndex, tmp_path: Path) -> None:
    index.declare(AttributeSchema({"employees": parse_type("employees", "number")}))
    row = {"id": "a", "title": "Anvils", "description": "Makes anvils.", "employees": "1,200", "country": "Chile"}
    keep(tmp_path / "dead", [letter(1, value=json.dumps(row).encode(), reason="name: is empty")])
    main(command(tmp_path / "dead", tmp_path, "--column", "name=title"))
    [stored] = index.get(index.live().name, ["a"]).values()
    assert (stored.company.attributes, stored.company.country) == ({"employees": 1200}, "Chile")


def test_a_dry_run_only_says_what_they_died_of(
    index: SqliteIndex, dead: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names(dead)
    main(command(dead, tmp_path, "--dry-run"))
    shown = capsys.readouterr().err
    assert "name: is empty" in shown
    assert "companies/0/2" in shown
    assert names(dead) == before
    assert index.stats(index.live().name).companies == 0


def test_without_dead_letters_there_is_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(command(tmp_path / "none", tmp_path))
    assert "there are no such dead letters" in (said := capsys.readouterr().err)
    assert "there is no such folder; the first dead letter makes it" in said


def test_a_time_needs_its_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(command(tmp_path, tmp_path, "--until", "2026-01-01T00:00"))
    assert "--until" in capsys.readouterr().err
