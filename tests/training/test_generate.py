"""Generated pairs come from the ranking that they name, and never repeat what is known."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from similarity.errors import InvalidInput
from tests.tiny_bundle import write_tiny_bundle
from tests.training.data.pair_data import written
from training.data.pairs import read_pairs
from training.generate import Vectors, generate_pairs, main

pytestmark = pytest.mark.training

NEIGHBOURS: dict[str, Any] = {"neighbours": 2, "lexical": 0, "random": 0}


def on_a_circle(*degrees: float) -> Vectors:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def generated(ids: str, vectors: Vectors, **options: Any) -> list[tuple[str, str, str]]:
    texts = [f"text {company}" for company in ids]
    return list(generate_pairs(list(ids), vectors=vectors, texts=texts, seed=0, **{**NEIGHBOURS, **options}))


def test_neighbours_are_the_nearest_by_cosine_best_first() -> None:
    found = generated("abcde", on_a_circle(0, 30, 10, 80, 20), anchors=["a"])
    assert found == [
        ("a", "c", "neighbour"),
        ("a", "e", "neighbour"),
    ]


def test_labelled_pairs_are_passed_over_in_either_order() -> None:
    vectors = on_a_circle(0, 30, 10, 80, 20)
    labelled = [("c", "a"), ("a", "e"), ("elsewhere", "a")]
    found = generated("abcde", vectors, anchors=["a"], labelled=labelled)
    assert [candidate for _, candidate, _ in found] == ["b", "d"]


def test_companies_of_negative_cosine_are_no_neighbours() -> None:
    found = generated("abc", on_a_circle(0, 10, 170), anchors=["a"])
    assert [candidate for _, candidate, _ in found] == ["b"]


@settings(deadline=None)
@given(
    companies=st.integers(2, 20),
    seed=st.integers(0, 50),
    labelled=st.sets(st.tuples(st.integers(0, 19), st.integers(0, 19))),
)
def test_a_pair_is_made_once_and_never_of_one_company(
    companies: int, seed: int, labelled: set[tuple[int, int]]
) -> None:
    ids = [f"c{number}" for number in range(companies)]
    vectors = np.random.default_rng(seed).normal(size=(companies, 3)).astype(np.float32)
    known = [(f"c{left}", f"c{right}") for left, right in labelled]
    counts: dict[str, Any] = {"neighbours": 2, "lexical": 0, "random": 3}
    once, again = (
        list(generate_pairs(ids, vectors=vectors, texts=ids, seed=seed, labelled=known, **counts)) for _ in "ab"
    )
    assert once == again
    unordered = Counter(frozenset(pair[:2]) for pair in once)
    assert set(unordered.values()) <= {1}
    assert all(len(pair) == 2 for pair in unordered)
    assert not set(unordered) & {frozenset(pair) for pair in known}
    assert all(count <= 5 for count in Counter(anchor for anchor, *_ in once).values())


def test_random_pairs_depend_on_the_seed_and_take_what_is_left() -> None:
    ids, vectors = [f"c{number}" for number in range(30)], np.eye(30, dtype=np.float32)

    def drawn(seed: int, count: int) -> list[str]:
        counts: dict[str, Any] = {"neighbours": 0, "lexical": 0, "random": count}
        found = generate_pairs(ids, vectors=vectors, texts=ids, seed=seed, anchors=["c0"], **counts)
        return [candidate for _, candidate, _ in found]

    assert drawn(0, 5) != drawn(1, 5)
    assert len(set(drawn(0, 5))) == 5
    assert len(set(drawn(0, 50))) == 29


def test_blocks_do_not_change_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    whole = generated("abcdefgh", vectors)
    monkeypatch.setattr("training.generate.BLOCK_ROWS", 3)
    assert generated("abcdefgh", vectors) == whole


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        ("aab", {}, "1 ids occur twice"),
        ("ab", {"anchors": ["z"]}, "1 anchors are not in the corpus, such as z"),
    ],
)
def test_a_corpus_that_does_not_fit_is_refused(ids: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        generated(ids, np.eye(len(ids), dtype=np.float32), **options)


def test_lexical_neighbours_share_words() -> None:
    ids, texts = ["a", "b", "c", "d"], ["anvils and boats", "cars and trains", "boats", "anvils, boats and cars"]
    vectors = np.eye(4, dtype=np.float32)
    counts: dict[str, Any] = {"neighbours": 0, "lexical": 2, "random": 0}
    found = list(generate_pairs(ids, vectors=vectors, texts=texts, seed=0, anchors=["a"], **counts))
    assert found == [("a", "d", "lexical"), ("a", "c", "lexical")]


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    makes = {"able": "anvils", "bold": "anvils", "calm": "boats", "dull": "boats"}
    rows = [{"id": name, "name": name.title(), "description": f"Makes {thing}."} for name, thing in makes.items()]
    companies = written(tmp_path, "companies.jsonl", "\n".join(map(json.dumps, rows)))
    bundle = write_tiny_bundle(tmp_path / "bundle").folder
    output = tmp_path / "pairs.jsonl"
    options = ["--companies", companies, "--bundle", bundle, "--output", output, "--lexical", "0"]
    return [str(option) for option in options]


def test_the_command_writes_pairs_that_training_reads(tmp_path: Path, corpus: list[str]) -> None:
    labelled = written(tmp_path, "labelled.csv", "company_a,company_b,label\ncalm,able,positive\n")
    main([*corpus, "--labelled", str(labelled), "--neighbours", "1", "--random", "1"])
    lines = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert [(line["anchor"], line["candidate"], line["source"]) for line in lines] == [
        ("calm", "dull", "neighbour"),
        ("calm", "bold", "random"),
    ]
    pairs = read_pairs([labelled, tmp_path / "pairs.jsonl"], companies=tmp_path / "companies.jsonl")
    assert pairs.labelled.tolist() == [True, False, False]


def test_a_failure_keeps_the_output_of_an_earlier_run(tmp_path: Path, corpus: list[str]) -> None:
    (tmp_path / "pairs.jsonl").write_text("earlier\n")
    rows = (tmp_path / "companies.jsonl").read_text().splitlines()
    (tmp_path / "companies.jsonl").write_text("\n".join([*rows, "{}"]))
    with pytest.raises(SystemExit, match=r"refused: .*row 5"):
        main(corpus)
    assert (tmp_path / "pairs.jsonl").read_text() == "earlier\n"
    with pytest.raises(SystemExit, match="there is no folder"):
        main([*corpus, "--output", str(tmp_path / "nowhere" / "pairs.jsonl")])


def test_a_negative_number_of_candidates_is_an_error(corpus: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*corpus, "--random", "-1"])
    assert "must be 0 or more" in capsys.readouterr().err
