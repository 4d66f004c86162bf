"""Recall in the whole corpus: the share of an anchor's known competitors among its k nearest companies.

A judged pool has twenty candidates, so recall at 50 within it is 1 by construction; here every company is a candidate.
Recall has two limits: it does not see competitors that nobody judged, and it is below 1 for an anchor with more than k
competitors.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.company import EmbeddedCompany
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import COMPETITOR, RelevanceLabels
from similarity.index.opening import open_index
from similarity.index.protocol import CompanyIndex
from similarity.text import embedding_text
from training.console import encoding_progress
from training.evaluate.judged import read_companies

DEPTHS = (10, 50, 100)
# A block's cosines to 100,000 companies take 50 MB.
BLOCK_ANCHORS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """All companies: `ids`, and their unit vectors `vectors`, float32 `[companies, dimension]`.

    Raises:
        InvalidInput: ids and vectors differ in number, or an id occurs twice.
    """

    ids: tuple[str, ...]
    vectors: NDArray[np.float32]

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.vectors):
            raise InvalidInput(f"{len(self.ids):,} ids do not fit {len(self.vectors):,} vectors; give one for each")
        twice = next((each for each, count in Counter(self.ids).items() if count > 1), None)
        if twice is not None:
            raise InvalidInput(f"the company {twice} occurs twice in the corpus; keep one row for each id")

    def rows(self, companies: Sequence[str]) -> NDArray[np.intp]:
        """Return the rows of these companies; raise InvalidInput if one is not in the corpus."""
        row_of = {company: row for row, company in enumerate(self.ids)}
        missing = [company for company in companies if company not in row_of]
        if missing:
            raise InvalidInput(
                f"{len(missing):,} judged companies are not in the corpus, the first is {missing[0]}; pass the file "
                "of companies that was judged"
            )
        return np.array([row_of[company] for company in companies], dtype=np.intp)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRecall:
    """`recall` `[anchors, depths]`: the share of an anchor's known competitors among its first `depths` companies.

    `competitors` is the number of all known competitors. Anchors without one are left out.
    """

    anchors: tuple[str, ...]
    recall: NDArray[np.float64]
    competitors: int


def read_corpus(encoder: TextEncoder, *, companies: Path | None, index: str | None) -> Corpus:
    """Return all companies with their vectors, read from an index (a file or a URL) or encoded from a file.

    Raises:
        InvalidInput: neither is given, the file has no companies, or as `corpus_of_index`.
    """
    if index:
        with closing(open_index(index, os.environ)) as opened:
            return corpus_of_index(opened, encoder_id=encoder.encoder_id)
    if companies is None:
        raise InvalidInput("the companies of the corpus are missing; pass --companies or --index")
    records = list(read_companies(companies))
    if not records:
        raise InvalidInput(f"{companies} has no companies")
    texts = [embedding_text(company, encoder.text_settings) for company in records]
    vectors = encoder.encode(texts, encoding_progress("companies"))
    return Corpus(ids=tuple(company.id for company in records), vectors=vectors)


def corpus_of_index(index: CompanyIndex, *, encoder_id: str) -> Corpus:
    """Return the companies of an index's live generation with their stored vectors.

    Raises:
        InvalidInput: the vectors are from another encoder, or the generation is empty.
    """
    live = index.live()
    if live.encoder_id != encoder_id:
        raise InvalidInput(
            f"the index contains vectors of encoder {live.encoder_id}, not {encoder_id}; omit the index to encode the "
            "companies instead"
        )
    documents = [
        document for batch in index.scan(live.name) for document in batch if isinstance(document, EmbeddedCompany)
    ]
    if not documents:
        raise InvalidInput(f"generation {live.name} of the index contains no companies")
    return Corpus(
        ids=tuple(document.id for document in documents), vectors=np.stack([document.vector for document in documents])
    )


def corpus_recall(corpus: Corpus, judgements: RelevanceLabels, *, depths: Sequence[int] = DEPTHS) -> CorpusRecall:
    """Return the recall of each anchor's competitors (grade 2) among all companies except the anchor itself.

    A competitor that ties with other companies counts with the probability that a random order of the tied companies
    ranks it within the depth.

    Raises:
        InvalidInput: a judged company is not in the corpus, or no anchor has a competitor.
    """
    known = {
        anchor: [candidate for candidate, grade in grades.items() if grade == COMPETITOR]
        for anchor, grades in judgements.items()
    }
    known = {anchor: candidates for anchor, candidates in known.items() if candidates}
    if not known:
        raise InvalidInput("no judged anchor has a competitor (grade 2); recall needs at least one")
    anchors = list(known)
    competitors = [corpus.rows(known[anchor]) for anchor in anchors]
    limits = np.array(depths, dtype=np.int64)
    recall = np.empty((len(anchors), len(limits)))
    for position, cosines in _each_anchor(corpus, corpus.rows(anchors)):
        of_competitors = cosines[competitors[position]]
        above = (cosines > of_competitors[:, None]).sum(axis=1)
        equal = (cosines == of_competitors[:, None]).sum(axis=1)
        recall[position] = np.clip((limits - above[:, None]) / equal[:, None], 0, 1).mean(axis=0)
    return CorpusRecall(anchors=tuple(anchors), recall=recall, competitors=sum(map(len, competitors)))


def nearest_companies(
    corpus: Corpus, anchors: Sequence[str], *, k: int
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the k nearest companies of each anchor except itself, best first, and their cosines, both `[anchors, k]`.

    The companies are rows of the corpus. Equal cosines are in row order, as in a search.

    Raises:
        InvalidInput: an anchor is not in the corpus, or the corpus has fewer than k other companies.
    """
    if not 1 <= k < len(corpus.ids):
        raise InvalidInput(f"a corpus of {len(corpus.ids):,} companies does not have {k} neighbours; ask for fewer")
    rows = np.empty((len(anchors), k), dtype=np.intp)
    scores = np.empty((len(anchors), k), dtype=np.float32)
    for position, cosines in _each_anchor(corpus, corpus.rows(anchors)):
        lowest = np.partition(cosines, len(cosines) - k)[len(cosines) - k]
        near = np.flatnonzero(cosines >= lowest)
        rows[position] = near[np.argsort(-cosines[near], kind="stable")[:k]]
        scores[position] = cosines[rows[position]]
    return rows, scores


def _each_anchor(corpus: Corpus, rows: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield each anchor's position and its cosines to all companies; the cosine to itself is set to −∞."""
    for start in range(0, len(rows), BLOCK_ANCHORS):
        block = rows[start : start + BLOCK_ANCHORS]
        cosines = corpus.vectors[block] @ corpus.vectors.T
        cosines[np.arange(len(block)), block] = -np.inf
        for offset in range(len(block)):
            yield start + offset, cosines[offset]
