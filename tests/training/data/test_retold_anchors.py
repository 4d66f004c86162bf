"""Anchors that are trained on in other languages too."""

import json
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from tests.training.data.pair_data import made_pairs, said
from training.data.retold_anchors import read_retellings, with_retold_anchors

pytestmark = pytest.mark.training


def test_the_pairs_of_an_anchor_are_repeated_for_each_retelling() -> None:
    pairs = made_pairs([("ale", "stout"), ("ale", "bank"), ("bank", "fund")], ["competitor", "other", ""])
    more = with_retold_anchors(pairs, {"ale": ("öl", "bière"), "fund": ("Fonds",)})
    assert said(more) == [
        *said(pairs),
        *[(f"ale retold {number}", *rest) for number in (1, 2) for _, *rest in said(pairs)[:2]],
    ]
    assert [more.texts[number] for number in more.left] == [
        *["text of ale"] * 2,
        "text of bank",
        "öl",
        "öl",
        *["bière"] * 2,
    ]
    assert more.texts[: len(pairs.texts)] == pairs.texts


def test_without_retellings_pairs_stay() -> None:
    pairs = made_pairs([("ale", "stout"), ("ale", "bank")], ["competitor", "other"])
    assert said(with_retold_anchors(pairs, {})) == said(pairs)


def test_retellings_are_prepared_as_for_the_encoder(tmp_path: Path) -> None:
    companies, told = tmp_path / "companies.jsonl", tmp_path / "told.jsonl"
    companies.write_text(json.dumps({"id": "ulm", "name": "Ulmer Bräu", "description": "Ulmer Bräu brews beer."}))
    told.write_text(
        json.dumps({"id": "ulm", "lang": "de", "description": "Ulmer Bräu braut Bier. Der Sitz ist in Ulm."})
    )
    assert read_retellings([told], companies) == {"ulm": ("The company braut Bier.",)}
    told.write_text(json.dumps({"id": "köln", "lang": "de", "description": "Bier"}))
    with pytest.raises(InvalidInput, match="has none of the companies"):
        read_retellings([told], companies)
