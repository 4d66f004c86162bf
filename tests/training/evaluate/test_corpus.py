"""Search over a whole corpus, against sorting it by hand."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from tests.tiny_bundle import write_tiny_bundle
from training.evaluate import corpus as corpora
from training.evaluate.corpus import Corpus, corpus_recall, nearest_companies, read_corpus
from training.evaluate.encoding import encode_all
from training.evaluate.judged import read_companies


def on_a_circle(**degrees: float) -> Corpus:
    radians = np.radians(list(degrees.values()))
    vectors = np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)
    return Corpus(ids=tuple(degrees), vectors=vectors)


def random_corpus(companies: int) -> Corpus:
    vectors = np.random.default_rng(0).normal(size=(companies, 5)).astype(np.float32)
    return Corpus(
        ids=tuple(f"c{number}" for number in range(companies)),
        vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
    )


def sorted_ids(corpus: Corpus, anchor: str) -> list[str]:
    """All others by descending cosine, one by one."""
    own = corpus.vectors[corpus.ids.index(anchor)]
    others = [company for company in corpus.ids if company != anchor]
    return sorted(others, key=lambda company: -float(corpus.vectors[corpus.ids.index(company)] @ own))


def test_recall_is_the_share_of_known_competitors_among_the_first() -> None:
    corpus = on_a_circle(a=0, b=10, c=20, d=30, e=40)
    found = corpus_recall(corpus, {"a": {"b": 2, "d": 2, "c": 1}, "e": {"a": 2}}, depths=(1, 2, 3, 4))
    assert found.recall.tolist() == [[0.5, 0.5, 1, 1], [0, 0, 0, 1]]
    assert found.competitors == 3


def test_an_anchor_is_not_its_own_neighbour() -> None:
    corpus = on_a_circle(a=0, b=90)
    assert corpus_recall(corpus, {"a": {"b": 2}}, depths=(1,)).recall.tolist() == [[1]]
    assert nearest_companies(corpus, ["a"], k=1)[0].tolist() == [[1]]


def test_companies_with_equal_cosines_share_their_rank() -> None:
    corpus = on_a_circle(a=0, b=20, c=20, d=20, e=10)
    found = corpus_recall(corpus, {"a": {"b": 2}}, depths=(1, 2, 3, 4))
    assert found.recall[0] == pytest.approx([0, 1 / 3, 2 / 3, 1])


@pytest.mark.parametrize("block", [1, 3, 128])
def test_recall_and_neighbours_are_those_of_sorting(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "BLOCK_ANCHORS", block)
    corpus = random_corpus(60)
    random = np.random.default_rng(1)
    judgements = {
        f"c{anchor}": {f"c{(anchor + step) % 60}": int(random.integers(0, 3)) for step in range(1, 15)}
        for anchor in range(7)
    }
    found = corpus_recall(corpus, judgements, depths=(5, 20))
    served = nearest_companies(corpus, list(judgements), k=8)
    for place, (anchor, grades) in enumerate(judgements.items()):
        order = sorted_ids(corpus, anchor)
        competitors = {company for company, grade in grades.items() if grade == 2}
        expected = [len(competitors & set(order[:depth])) / len(competitors) for depth in (5, 20)]
        assert found.recall[place] == pytest.approx(expected)
        assert [corpus.ids[row] for row in served[0][place]] == order[:8]
        assert served[1][place] == pytest.approx(
            np.sort(corpus.vectors @ corpus.vectors[corpus.ids.index(anchor)])[::-1][1:9]
        )


def test_equal_neighbours_are_served_in_the_order_of_the_corpus() -> None:
    corpus = on_a_circle(a=0, b=20, c=20, d=20, e=10)
    assert nearest_companies(corpus, ["a"], k=3)[0].tolist() == [[4, 1, 2]]


def test_anchors_without_a_competitor_are_left_out() -> None:
    corpus = on_a_circle(a=0, b=10, c=20)
    assert corpus_recall(corpus, {"a": {"b": 1}, "b": {"c": 2}}, depths=(1,)).anchors == ("b",)
    with pytest.raises(InvalidInput, match="no judged anchor has a competitor"):
        corpus_recall(corpus, {"a": {"b": 1}})


def test_unknown_companies_are_named() -> None:
    corpus = on_a_circle(a=0, b=10)
    with pytest.raises(InvalidInput, match=r"not in the corpus, the first is x\b"):
        corpus_recall(corpus, {"a": {"x": 2}})
    with pytest.raises(InvalidInput, match=r"not in the corpus, the first is y\b"):
        nearest_companies(corpus, ["y"], k=1)


def test_more_neighbours_than_there_are_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ask for fewer"):
        nearest_companies(on_a_circle(a=0, b=10), ["a"], k=2)


def test_a_corpus_that_does_not_fit_itself_is_refused() -> None:
    with pytest.raises(InvalidInput, match="2 ids do not fit 1 vectors"):
        Corpus(ids=("a", "b"), vectors=np.ones((1, 2), dtype=np.float32))
    with pytest.raises(InvalidInput, match="occurs twice"):
        Corpus(ids=("a", "a"), vectors=np.ones((2, 2), dtype=np.float32))


def test_a_file_of_companies_is_encoded_in_its_order(tmp_path: Path) -> None:
    encoder = TextEncoder(write_tiny_bundle(tmp_path / "bundle"))
    rows = [("b", "Bo", "Bo makes boats."), ("a", "Able", "Able makes anvils and more.")]
    path = tmp_path / "companies.jsonl"
    path.write_text("\n".join(json.dumps({"id": i, "name": n, "description": d}) for i, n, d in rows))
    found = read_corpus(encoder, companies=path, index=None)
    assert found.ids == ("b", "a")
    prepared = ["The company makes boats.", "The company makes anvils and more."]
    np.testing.assert_array_equal(found.vectors, encoder.encode(prepared))
    with pytest.raises(InvalidInput, match="there is no file"):
        read_corpus(encoder, companies=tmp_path / "nothing.jsonl", index=None)


def test_a_broken_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "companies.jsonl"
    path.write_text('{"id": "a", "name": "Able", "description": "Anvils."}\n{"id": "b", "name": "Bo"}\n')
    with pytest.raises(InvalidInput, match=r"row 2: 'description'; a company has id, name and description"):
        list(read_companies(path))
    path.write_text('{"id": "a", "name": "Able", "description": " "}\nnot json\n')
    with pytest.raises(InvalidInput, match=r"row 1: description: is empty"):
        list(read_companies(path))


def test_equal_texts_are_encoded_once() -> None:
    seen: list[str] = []

    def lengths(texts: Sequence[str]) -> NDArray[np.float32]:
        seen.extend(texts)
        return np.array([[len(text), 0] for text in texts], dtype=np.float32)

    assert encode_all(lengths, ["ccc", "a", "bb", "a", "dddd"])[:, 0].tolist() == [3, 1, 2, 1, 4]
    assert len(seen) == 4
