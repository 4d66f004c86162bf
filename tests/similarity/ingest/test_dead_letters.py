import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.errors import InvalidInput
from similarity.ingest.dead_letters import DeadLetter, Stage
from similarity.ingest.messages import Message

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LETTER = DeadLetter(
    message=Message(position="kafka:companies/0/7", key=b"acme", value=b'{"id": 1}', time=NOW),
    stage=Stage.DECODE,
    reason="name: is empty",
)
contents = st.none() | st.binary() | st.text().map(str.encode)
letters = st.builds(
    DeadLetter,
    message=st.builds(
        Message,
        position=st.text() | st.just("file:caf\udce9.csv#1"),
        key=contents,
        value=contents,
        time=st.datetimes(timezones=st.just(UTC)),
        unreadable=st.text(),
    ),
    stage=st.sampled_from(Stage),
    reason=st.text(),
)


@given(letter=letters)
def test_a_dead_letter_survives_as_one_line(letter: DeadLetter) -> None:
    line = letter.to_line()
    assert len(line.splitlines()) == 1
    assert DeadLetter.from_line(line) == letter
    assert DeadLetter.from_line(line).identity == letter.identity


def test_a_person_can_read_what_is_text() -> None:
    assert json.loads(LETTER.to_line()) == {
        "position": "kafka:companies/0/7",
        "stage": "decode",
        "reason": "name: is empty",
        "time": "2026-11-20T12:00:00+00:00",
        "key": "acme",
        "value": '{"id": 1}',
    }


def test_bytes_that_are_no_text_are_kept() -> None:
    letter = DeadLetter(message=Message(position="p", value=b"\xff\x00", time=NOW), stage=Stage.DECODE, reason="r")
    assert json.loads(letter.to_line())["value_base64"] == "/wA="
    assert DeadLetter.from_line(letter.to_line()) == letter


def test_a_missing_value_is_not_an_empty_one() -> None:
    for value in (None, b""):
        letter = DeadLetter(message=Message(position="p", value=value, time=NOW), stage=Stage.WRITE, reason="r")
        assert DeadLetter.from_line(letter.to_line()).message.value == value


ENTRY = json.loads(LETTER.to_line())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no JSON",
        "[" * 100_000,
        "[]",
        "7",
        "null",
        json.dumps({name: value for name, value in ENTRY.items() if name != "position"}),
        json.dumps({**ENTRY, "position": 7}),
        json.dumps({**ENTRY, "stage": "lost"}),
        json.dumps({**ENTRY, "reason": None}),
        json.dumps({**ENTRY, "key": 7}),
        json.dumps({**ENTRY, "key": "\ud800"}),
        json.dumps({**ENTRY, "value_base64": "no base64!"}),
        json.dumps({**ENTRY, "value_base64": []}),
        json.dumps({**ENTRY, "time": "yesterday"}),
        json.dumps({**ENTRY, "time": "2026-11-20T12:00:00"}),
        json.dumps({**ENTRY, "unreadable": {}}),
    ],
)
def test_a_line_that_is_no_dead_letter_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput, match="is not a dead letter"):
        DeadLetter.from_line(line)


def letter_of(value: bytes, key: bytes | None = None) -> str:
    message = Message(position="p", key=key, value=value, time=NOW)
    return DeadLetter(message=message, stage=Stage.DECODE, reason="r").to_line()


def test_the_documented_commands_remove_an_erased_company_and_show_the_rest(tmp_path: Path) -> None:
    of_the_company = [
        letter_of(b"{}", key=b"47.11"),
        letter_of(b'{"id": 47.11, "name": "Acme"}'),
        letter_of(b'{"name":"Acme","id":47.11}'),
        letter_of(b'{"id": "47.11"}'),
        letter_of(b'47.11,Acme,"not closed\n'),
        letter_of(b'"47.11";"Acme\n'),
        letter_of(b"47.11\tAcme\n"),
    ]
    unclear = [letter_of(b"Acme;47.11;Makes\n"), letter_of(b'{"id": "47.11", "name": "Caf\xe9"}')]
    others_that_name_it = [
        letter_of(b'{"id": 47.110}'),
        letter_of(b'{"id": "b", "domain": "47.11"}'),
        letter_of(b'{"id": "b", "attributes": {"parent_id": 47.11}}'),
    ]
    of_others = [letter_of(b'{"id": "b", "employees": 8}'), letter_of(b'{"id": "47-11"}'), letter_of(b"{}", key=b"4")]
    folder = tmp_path / "dead" / "replayed"
    folder.mkdir(parents=True)
    file = folder / "dead-1.jsonl"
    file.write_text("".join(f"{line}\n" for line in (*of_the_company, *unclear, *others_that_name_it, *of_others)))
    guide = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
    [commands] = re.findall("^```\n(grep -rF 'ID' DEAD_LETTERS.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    script = commands.replace("ID", "47.11").replace("DEAD_LETTERS", str(tmp_path / "dead"))
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True)
    assert file.read_text().splitlines() == [*unclear, *others_that_name_it, *of_others]
    left = [line.partition(":")[2] for line in done.stdout.splitlines()]
    assert left[-5:] == [*unclear, *others_that_name_it]
