"""Unlabelled pairs from a corpus, for those who have companies and a few hundred labels.

    python -m training.generate --companies FILE --bundle FOLDER --output unlabelled.jsonl
        [--labelled PAIRS] [--anchors FILE] [--neighbours 8] [--lexical 6] [--random 6] [--seed 0]

For each anchor: its neighbours by the current encoder, its neighbours by words (TF-IDF), and random
companies; never itself, and never a pair that is labelled already. Anchors are the companies of
--anchors (one id a line), else the anchors of --labelled, else all. The output has a line per pair
(anchor, candidate, label "unlabelled", source) and is read together with the labelled file:
`read_pairs([labelled, unlabelled], companies=...)`. The share of competitors among these pairs is
not that of the labelled ones: estimate the class prior of the pool again.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.text import embedding_text
from training.console import refusing

Source: TypeAlias = Literal["neighbour", "lexical", "random"]
Vectors: TypeAlias = NDArray[np.float32]
Scores: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Rows of the corpus -> their scores against the whole corpus, float32 `[rows, companies]`."""

BLOCK_ROWS = 256
# A word of fewer companies than this is a name or a slip, once the corpus is large.
RARE_WORD, LARGE_CORPUS = 2, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCounts:
    """The number of candidates of each source for an anchor."""

    neighbours: int = 8
    lexical: int = 6
    random: int = 6

    def __post_init__(self) -> None:
        if min(self.neighbours, self.lexical, self.random) < 0 or not max(self.neighbours, self.lexical, self.random):
            raise InvalidInput("numbers of neighbours, lexical and random candidates are 0 or more, and one is above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedPair:
    """An unlabelled pair of company ids, and how the candidate was found."""

    anchor: str
    candidate: str
    source: Source


def generate_pairs(
    ids: Sequence[str],
    *,
    vectors: Vectors,
    texts: Sequence[str],
    counts: CandidateCounts,
    seed: int,
    anchors: Sequence[str] | None = None,
    labelled: Iterable[tuple[str, str]] = (),
    on_anchors: Callable[[int], None] = lambda anchors: None,
) -> Iterator[GeneratedPair]:
    """Pairs of each anchor (default: of all companies), in the order of the anchors.

    `vectors` float32 `[n, d]` are of unit norm and `texts` `[n]` are prepared, both in the order of
    the `n` `ids`. A pair is made once, whichever side it was found from, and none of `labelled`, in
    either order. Equal scores go to the earlier company; scores of 0 and below are no neighbours.

    Raises:
        InvalidInput: an anchor is not in the corpus, an id occurs twice, or lexical candidates
            need scikit-learn, which is missing.
    """
    row_of = {company: row for row, company in enumerate(ids)}
    if len(row_of) < len(ids):
        raise InvalidInput(f"{len(ids) - len(row_of):,} ids occur twice in the corpus; keep one company per id")
    unknown = [anchor for anchor in anchors or () if anchor not in row_of]
    if unknown:
        raise InvalidInput(f"{len(unknown):,} anchors are not in the corpus, such as {', '.join(unknown[:5])}")
    taken = _taken(row_of, labelled)
    rankings: list[tuple[Source, int, Scores]] = []
    if counts.neighbours:
        rankings.append(("neighbour", counts.neighbours, lambda rows: vectors[rows] @ vectors.T))
    if counts.lexical:
        rankings.append(("lexical", counts.lexical, _word_scores(texts)))
    chosen = np.array([row_of[one] for one in dict.fromkeys(ids if anchors is None else anchors)], dtype=np.int64)
    for start in range(0, len(chosen), BLOCK_ROWS):
        block = chosen[start : start + BLOCK_ROWS]
        scored = [(source, count, scores(block)) for source, count, scores in rankings]
        for place, row in enumerate(block.tolist()):
            for source, count, scores in scored:
                for candidate in _best(scores[place], count, taken[row]):
                    yield _take(ids, taken, row, candidate, source)
            for candidate in _random(len(ids), counts.random, taken[row], np.random.default_rng([seed, row])):
                yield _take(ids, taken, row, candidate, "random")
        on_anchors(len(block))


def _taken(row_of: dict[str, int], labelled: Iterable[tuple[str, str]]) -> list[set[int]]:
    """The companies that each company is not paired with: itself, and its labelled ones."""
    taken = [{row} for row in range(len(row_of))]
    for left, right in labelled:
        if left in row_of and right in row_of:
            taken[row_of[left]].add(row_of[right])
            taken[row_of[right]].add(row_of[left])
    return taken


def _take(ids: Sequence[str], taken: list[set[int]], row: int, candidate: int, source: Source) -> GeneratedPair:
    taken[row].add(candidate)
    taken[candidate].add(row)
    return GeneratedPair(anchor=ids[row], candidate=ids[candidate], source=source)


def _best(scores: Vectors, count: int, taken: set[int]) -> list[int]:
    """The `count` highest scores above 0 that are not taken, best first; ties by row."""
    free = scores.copy()
    free[list(taken)] = 0
    count = min(count, int((free > 0).sum()))
    if not count:
        return []
    threshold = np.partition(free, len(free) - count)[len(free) - count]
    rows = np.flatnonzero(free >= threshold)
    return [int(row) for row in rows[np.argsort(-free[rows], kind="stable")][:count]]


def _random(companies: int, count: int, taken: set[int], random: np.random.Generator) -> list[int]:
    # Enough to have `count` left without the taken ones.
    drawn = random.choice(companies, min(companies, count + len(taken)), replace=False)
    return [row for row in drawn.tolist() if row not in taken][:count]


def _word_scores(texts: Sequence[str]) -> Scores:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise InvalidInput(
            "neighbours by words need scikit-learn; make .venv/training installs it; or ask for 0 of them"
        ) from error
    rarest = RARE_WORD if len(texts) >= LARGE_CORPUS else 1
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=rarest, dtype=np.float32)
    try:
        weights = words.fit_transform(texts)
    except ValueError as error:
        raise InvalidInput(f"the companies' texts have no words to compare ({error}); ask for 0 lexical") from error
    return lambda rows: np.asarray((weights[rows] @ weights.T).toarray(), dtype=np.float32)


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the pairs of a corpus; progress goes to the error stream."""
    options = _parser().parse_args(arguments)
    with refusing():
        _write(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Make unlabelled pairs of companies to train on.")
    parser.add_argument("--companies", type=Path, required=True, help="JSONL file of the companies")
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the encoder's bundle")
    parser.add_argument("--output", type=Path, required=True, help="JSONL file to write")
    parser.add_argument("--labelled", type=Path, help="pairs that are labelled already; their anchors are the anchors")
    parser.add_argument("--anchors", type=Path, help="file with one company id a line, instead")
    parser.add_argument("--neighbours", type=int, default=8, help="candidates by the encoder (default: 8)")
    parser.add_argument("--lexical", type=int, default=6, help="candidates by words (default: 6)")
    parser.add_argument("--random", type=int, default=6, help="random candidates (default: 6)")
    parser.add_argument("--seed", type=int, default=0, help="of the random candidates (default: 0)")
    return parser


def _write(options: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from similarity.bundle import ModelBundle
    from similarity.encoder import TextEncoder
    from training.evaluate.judged import read_companies

    counts = CandidateCounts(neighbours=options.neighbours, lexical=options.lexical, random=options.random)
    for path in (options.companies, options.anchors):
        if path is not None and not path.is_file():
            raise InvalidInput(f"there is no file {path}")
    encoder = TextEncoder(ModelBundle.load(options.bundle))
    texts = {
        company.id: embedding_text(company, encoder.text_settings) for company in read_companies(options.companies)
    }
    labelled, anchors = _labelled(options.labelled, texts)
    if options.anchors is not None:
        anchors = options.anchors.read_text(encoding="utf-8").split()
    if not options.output.absolute().parent.is_dir():
        raise InvalidInput(f"there is no folder {options.output.absolute().parent} to write to")
    # Renamed when complete, so that a failure does not destroy the output of an earlier run.
    draft = options.output.with_name(f"{options.output.name}.part")
    with Progress(console=Console(stderr=True)) as progress, draft.open("w", encoding="utf-8") as output:
        encoding = progress.add_task("Encoding companies", total=len(texts))
        vectors = encoder.encode(list(texts.values()), lambda done, _: progress.update(encoding, completed=done))
        pairing = progress.add_task("Pairing anchors", total=len(texts) if anchors is None else len(anchors))
        for pair in generate_pairs(
            list(texts),
            vectors=vectors,
            texts=list(texts.values()),
            counts=counts,
            seed=options.seed,
            anchors=anchors,
            labelled=labelled,
            on_anchors=lambda done: progress.advance(pairing, done),
        ):
            output.write(json.dumps(_line(pair), ensure_ascii=False) + "\n")
    draft.replace(options.output)


def _labelled(path: Path | None, texts: dict[str, str]) -> tuple[list[tuple[str, str]], list[str] | None]:
    """The labelled pairs as ids, and their anchors."""
    from training.data.pairs import read_pairs

    if path is None:
        return [], None
    pairs = read_pairs(path, companies=texts, every_class=False)
    sides = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    return [(pairs.ids[left], pairs.ids[right]) for left, right in sides], list(pairs.anchors)


def _line(pair: GeneratedPair) -> dict[str, str]:
    return {"anchor": pair.anchor, "candidate": pair.candidate, "label": "unlabelled", "source": pair.source}


if __name__ == "__main__":
    main()
