"""The texts of judged companies."""

import gzip
import json
from pathlib import Path

import pytest

from similarity.generations.relevance_labels import read_relevance_labels
from similarity.text import TextSettings
from training.evaluate.judged import judged_split, judged_texts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with gzip.open(tmp_path / "dev.tsv.gz", "wt") as file:
        file.write("anchor\tcandidate\tgrade\na\tb\t2\na\tc\t0\n")
    companies = [
        {"id": "a", "name": "Able Inc.", "description": "Able Inc. makes anvils."},
        {"id": "b", "name": "Bold", "description": "Bold makes anvils.", "aliases": ["Brave"]},
        {"id": "c", "name": "Calm", "description": "Calm makes boats."},
        {"id": "d", "name": "Dull", "description": "Dull is not judged."},
    ]
    (tmp_path / "companies.jsonl").write_text("\n".join(json.dumps(company) for company in companies))
    return tmp_path


def test_texts_are_those_of_judged_companies_plain_or_prepared(folder: Path) -> None:
    judgements = read_relevance_labels(judged_split(folder, "dev"))
    plain = judged_texts(folder / "companies.jsonl", judgements, None)
    assert plain == {"a": "Able Inc. makes anvils.", "b": "Bold makes anvils.", "c": "Calm makes boats."}
    prepared = judged_texts(folder / "companies.jsonl", judgements, TextSettings())
    assert prepared["a"] == prepared["b"] == "The company makes anvils."
