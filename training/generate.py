"""Generates unlabelled pairs from a corpus of companies with some labelled pairs.

    python -m training.generate --companies FILE --bundle FOLDER --output unlabelled.jsonl
        [--labelled PAIRS] [--neighbours 8] [--lexical 6] [--random 6] [--seed 0]

The candidates of each anchor are its neighbours by the current encoder, its neighbours by words (TF-IDF), and random
companies; never itself, and never a pair that is labelled already. The anchors are taken from --labelled; without it,
all companies are anchors. The output has a line for each pair (anchor, candidate, label "unlabelled", source), and is
passed to training together with the labelled file: `--pairs labelled.csv unlabelled.jsonl`. The share of competitors
among these pairs differs from the share among the labelled pairs: estimate the class prior of the pool
(`python -m training.prior`).
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.text import embedding_text
from training.console import encoding_progress, refusing
from training.data.pairs import read_pairs
from training.evaluate.judged import read_companies

Vectors: TypeAlias = NDArray[np.float32]

BLOCK_ROWS = 256
# In a large corpus, a word in the texts of fewer companies than this is a name or a spelling mistake.
RARE_WORD, LARGE_CORPUS = 2, 1_000


def generate_pairs(
    ids: Sequence[str],
    *,
    vectors: Vectors,
    texts: Sequence[str],
    neighbours: int,
    lexical: int,
    random: int,
    seed: int,
    anchors: Sequence[str] | None = None,
    labelled: Iterable[tuple[str, str]] = (),
) -> Iterator[tuple[str, str, str]]:
    """Yield (anchor, candidate, source) in the order of the anchors (default: all companies).

    `vectors` float32 `[n, d]` have unit norm and `texts` `[n]` are prepared, both in the order of the `n` `ids`.
    `neighbours`, `lexical` and `random` are the numbers of candidates. A pair is yielded once, whichever company is the
    anchor. No pair of `labelled` is yielded, in either order. Of equal scores the earlier company comes first;
    companies with scores of 0 and below are not neighbours.

    Raises:
        InvalidInput: an anchor is not in the corpus, an id occurs twice, or the texts have no words.
    """
    row_of = {company: row for row, company in enumerate(ids)}
    if len(row_of) < len(ids):
        raise InvalidInput(f"{len(ids) - len(row_of):,} ids occur twice in the corpus; keep one company per id")
    unknown = [anchor for anchor in anchors or () if anchor not in row_of]
    if unknown:
        raise InvalidInput(f"{len(unknown):,} anchors are not in the corpus, such as {', '.join(unknown[:5])}")
    taken = [{row} for row in range(len(ids))]  # the companies that a company is not paired with
    for left, right in labelled:
        if left in row_of and right in row_of:
            taken[row_of[left]].add(row_of[right])
            taken[row_of[right]].add(row_of[left])
    words = _word_weights(texts) if lexical else None
    chosen = np.array([row_of[one] for one in dict.fromkeys(ids if anchors is None else anchors)], dtype=np.int64)
    for start in range(0, len(chosen), BLOCK_ROWS):
        block = chosen[start : start + BLOCK_ROWS]
        cosines = vectors[block] @ vectors.T
        overlaps = np.zeros_like(cosines) if words is None else (words[block] @ words.T).toarray()
        for place, row in enumerate(block.tolist()):
            for source, count, candidates in (
                ("neighbour", neighbours, _ranked(cosines[place])),
                ("lexical", lexical, _ranked(overlaps[place])),
                ("random", random, np.random.default_rng([seed, row]).permutation(len(ids))),
            ):
                free = (candidate for candidate in candidates.tolist() if candidate not in taken[row])
                for candidate in [candidate for candidate, _ in zip(free, range(count), strict=False)]:
                    taken[row].add(candidate)
                    taken[candidate].add(row)
                    yield ids[row], ids[candidate], source


def _ranked(scores: Vectors) -> NDArray[np.int64]:
    """Return the rows with scores above 0, best first; ties in row order."""
    order = np.argsort(-scores, kind="stable")
    return order[scores[order] > 0]


def _word_weights(texts: Sequence[str]) -> Any:
    """Return the TF-IDF weights of the texts, sparse float32 `[n, words]`."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    rarest = RARE_WORD if len(texts) >= LARGE_CORPUS else 1
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=rarest, dtype=np.float32)
    try:
        return words.fit_transform(texts)
    except ValueError as error:
        raise InvalidInput(f"the companies' texts have no words to compare ({error}); pass --lexical 0") from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pairs of a corpus."""
    parser = argparse.ArgumentParser(description="Generate unlabelled pairs of companies to train on.")
    add = parser.add_argument
    add("--companies", type=Path, required=True, help="JSONL file of the companies")
    add("--bundle", type=Path, required=True, help="folder of the encoder's bundle")
    add("--output", type=Path, required=True, help="JSONL file to write")
    add("--labelled", type=Path, help="labelled pairs; their anchors are the anchors (default: all companies)")
    add("--neighbours", type=int, default=8, help="candidates by the encoder (default: 8)")
    add("--lexical", type=int, default=6, help="candidates by words (default: 6)")
    add("--random", type=int, default=6, help="random candidates (default: 6)")
    add("--seed", type=int, default=0, help="of the random candidates (default: 0)")
    options = parser.parse_args(arguments)
    if min(options.neighbours, options.lexical, options.random) < 0:
        parser.error("--neighbours, --lexical and --random must be 0 or more")
    with refusing():
        _write(options)


def _write(options: argparse.Namespace) -> None:
    if not options.output.absolute().parent.is_dir():
        raise InvalidInput(f"there is no folder {options.output.absolute().parent} to write to")
    encoder = TextEncoder(ModelBundle.load(options.bundle))
    text_of = {
        company.id: embedding_text(company, encoder.text_settings) for company in read_companies(options.companies)
    }
    labelled, anchors = [], None
    if options.labelled:
        pairs = read_pairs(options.labelled, companies=text_of, every_class=False)
        sides = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
        labelled, anchors = [(pairs.ids[left], pairs.ids[right]) for left, right in sides], pairs.anchors
    ids, texts = list(text_of), list(text_of.values())
    # Renamed when complete, so that a failure does not destroy the output of an earlier run.
    draft = options.output.with_name(f"{options.output.name}.part")
    with draft.open("w", encoding="utf-8") as output:
        for anchor, candidate, source in generate_pairs(
            ids,
            vectors=encoder.encode(texts, encoding_progress("companies")),
            texts=texts,
            neighbours=options.neighbours,
            lexical=options.lexical,
            random=options.random,
            seed=options.seed,
            anchors=anchors,
            labelled=labelled,
        ):
            line = {"anchor": anchor, "candidate": candidate, "label": "unlabelled", "source": source}
            output.write(json.dumps(line, ensure_ascii=False) + "\n")
    draft.replace(options.output)


if __name__ == "__main__":
    main()
