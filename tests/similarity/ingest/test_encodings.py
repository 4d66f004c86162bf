"""How the encoding of a text file is decided, and what is said of it."""

import gzip
import io
import json
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from similarity.ingest.encodings import BLOCK, encoding_of
from similarity.ingest.files import column_names, count_rows, read_rows

TEXT = "id\tname\na\tMüller & Söhne «Café»\nb\tÀ l'été\n"
NAMES = ["Müller & Söhne «Café»", "À l'été"]


def read(path: Path) -> tuple[list[dict[str, object]], list[str]]:
    notes: list[str] = []
    return [dict(row.record) for row in read_rows(path, on_note=notes.append)], notes


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("cp1252", "was decoded as Windows-1252, because it is not UTF-8"),
        ("utf-16", "was decoded as UTF-16, because it begins with"),
        ("utf-16-be", "was decoded as UTF-16, because it begins with"),
    ],
)
def test_every_text_format_is_read_in_these_encodings(tmp_path: Path, name: str, encoding: str, note: str) -> None:
    text = TEXT
    if ".jsonl" in name:
        text = "".join(json.dumps({"id": "a", "name": each}, ensure_ascii=False) + "\n" for each in NAMES)
    data = ("\ufeff" * (encoding == "utf-16-be") + text).encode(encoding)
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    rows, notes = read(path)
    assert [row["name"] for row in rows] == NAMES
    assert column_names(path) == ["id", "name"]
    assert count_rows(path) == 2
    assert (len(notes), note in "".join(notes)) == (int(bool(note)), True)


def test_the_whole_file_decides_and_not_its_first_block(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,name\n" + b"a,Acme\n" * (BLOCK // 4) + "z,Café €5 ™\n".encode("cp1252"))
    rows, notes = read(tmp_path / "a.csv")
    assert (rows[-1]["name"], len(notes)) == ("Café €5 ™", 1)


def test_a_character_between_two_blocks_is_not_broken() -> None:
    assert encoding_of(io.BytesIO(b"x" * (BLOCK - 1) + "é\n".encode() * 10)) == "utf-8"


def test_one_broken_byte_in_a_file_of_utf_8_costs_its_row(tmp_path: Path) -> None:
    rows = [f"{number},Café {number}\n".encode() for number in range(8_000)]
    rows[7_000] = b"7000,Caf\xe9\n"
    (tmp_path / "a.csv").write_bytes(b"id,name\n" + b"".join(rows))
    found, notes = read(tmp_path / "a.csv")
    assert (found[6_999]["name"], found[7_000]["name"], notes) == ("Café 6999", "Caf\udce9", [])


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1251", "Компания печёт хлеб"),
        ("cp1253", "Εταιρεία με ψωμί"),
        ("gbk", "生产半导体设备的公司"),
        ("shift-jis", "半導体の製造装置、を作っています"),
        ("cp1252", "Café \x9d".replace("\x9d", "")),
    ],
)
def test_other_encodings_are_not_taken_for_windows_1252(tmp_path: Path, encoding: str, text: str) -> None:
    broken = b"\x81" if encoding == "cp1252" else b""  # a byte that Windows-1252 does not define
    (tmp_path / "a.csv").write_bytes(b"id,name\na," + text.encode(encoding) + broken + b"\n")
    assert read(tmp_path / "a.csv")[1] == []


def test_letters_that_happen_to_be_utf_8_do_not_hide_windows_1252() -> None:
    text = "É» " + "déjà vu, größer, naïve, Ångström " * 10  # "É»" is a character of UTF-8 in these bytes
    assert encoding_of(io.BytesIO(text.encode("cp1252"))) == "cp1252"


def test_a_file_of_two_encodings_stays_utf_8() -> None:
    assert encoding_of(io.BytesIO("é\n".encode() * 5 + "é\n".encode("cp1252") * 9)) == "utf-8"


def test_utf_16_that_ends_within_a_character_is_said_to_be_cut_off(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,name\na,b\n".encode("utf-16")[:-1])
    with pytest.raises(InvalidInput, match=r"cannot be read to its end: .*truncated data"):
        read(tmp_path / "a.csv")
