"""Translations of package descriptions and summaries, for a multilingual student."""

import json
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from training.data.translations import (
    Translation,
    described_packages,
    main,
    package_translations,
    read_translations,
    sampled,
)

ENGLISH = """Package: anvil
Description-md5: 1
Description-en: forge of metal
 Anvil shapes metal.
 .
 It is fast.

Package: boat
Description-md5: 2
Description-en: sails
 Boat sails.
"""
GERMAN = """Package: anvil
Description-md5: 1
Description-de: Schmiede
 Anvil formt Metall.

Package: old
Description-md5: 9
Description-de: Nicht mehr da
"""
APPSTREAM = """---
File: DEP-11
---
Type: desktop-application
Name: {C: Anvil, sv: Städ}
Summary: {C: Forge metal, sv: Smid metall, pt_BR: Forje metal}
---
Type: addon
Name: {C: Nothing}
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "en").write_text(ENGLISH)
    (folder / "de").write_text(GERMAN)
    return folder


def test_a_description_is_one_line_of_text() -> None:
    assert list(described_packages(iter(ENGLISH.split("\n")))) == [
        ("1", "forge of metal. Anvil shapes metal. It is fast."),
        ("2", "sails. Boat sails."),
    ]


def test_a_translation_has_the_original_of_the_same_description(packages: Path) -> None:
    english = "forge of metal. Anvil shapes metal. It is fast."
    assert list(package_translations(packages)) == [Translation(english, "de", "Schmiede. Anvil formt Metall.")]


def test_a_folder_without_english_is_refused(packages: Path) -> None:
    (packages / "en").unlink()
    with pytest.raises(InvalidInput, match="no file named en"):
        list(package_translations(packages))


def test_the_command_writes_what_training_reads(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "dep11.yml").write_text(APPSTREAM)
    output = tmp_path / "translations.jsonl"
    given = ["--packages", str(packages), "--appstream", str(tmp_path / "dep11.yml"), "--output", str(output)]
    main([*given, "--languages", "de", "sv", "pt"])
    assert sorted(read_translations([output]), key=lambda each: each.lang) == [
        Translation("forge of metal. Anvil shapes metal. It is fast.", "de", "Schmiede. Anvil formt Metall."),
        Translation("Anvil: Forge metal", "pt", "Anvil: Forje metal"),
        Translation("Anvil: Forge metal", "sv", "Städ: Smid metall"),
    ]


def test_a_retelling_has_the_first_sentences_of_the_description(tmp_path: Path) -> None:
    described = "Anvil & Sons forges iron. " + "It sells " + "nails " * 60 + "."
    (tmp_path / "companies.jsonl").write_text(json.dumps({"id": "a", "name": "Anvil & Sons", "description": described}))
    row = {"id": "a", "lang": "de", "description": "Anvil & Sons schmiedet Eisen."}
    (tmp_path / "retold.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": "other"}))
    output = tmp_path / "out.jsonl"
    given = ["--retellings", str(tmp_path / "retold.jsonl"), "--output", str(output), "--companies"]
    main([*given, str(tmp_path / "companies.jsonl")])
    [found] = read_translations([output])
    assert found == Translation("The company forges iron.", "de", "The company schmiedet Eisen.")
    (tmp_path / "none.jsonl").write_text(json.dumps({"id": "b", "name": "B", "description": "Makes boats."}))
    with pytest.raises(SystemExit, match="none of the companies"):
        main([*given, str(tmp_path / "none.jsonl")])


def test_originals_with_many_translations_come_first() -> None:
    often = [Translation("often", lang, f"{lang} often") for lang in ("de", "fr", "sv")]
    rare = [Translation(f"rare {number}", "de", f"de {number}") for number in range(5)]
    assert set(sampled([*rare, *often], most=1, seed=0)) == set(often)


@pytest.mark.parametrize("row", [{"original": "a", "lang": "de"}, {"original": " ", "lang": "de", "translation": "b"}])
def test_a_row_without_a_field_is_named(tmp_path: Path, row: dict[str, str]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(InvalidInput, match="row 1: original, lang or translation is missing"):
        read_translations([path])
