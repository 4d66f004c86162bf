"""The evaluations that `python -m training.evaluate` runs; each returns figures and a table.

`Figures.values` is written to the report, `Figures.table` is printed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import RelevanceLabels, read_relevance_labels
from training.data.labels import GradeOne
from training.data.pair_rows import find_layout, pair_rows, table_rows
from training.data.pairs import read_pairs
from training.data.splits import SELECTION_ANCHORS, split_by_anchor
from training.evaluate.bootstrap import mean_interval
from training.evaluate.corpus import DEPTHS, Corpus, corpus_recall
from training.evaluate.encoding import Encode, Texts
from training.evaluate.pairs import best_threshold, cosine_quality
from training.evaluate.ranking import encode_anchors, pooled, rank, without_seen
from training.evaluate.ranks import auc
from training.evaluate.report import interval_text, table

UNSEEN = "prepared, unseen candidates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The results of one evaluation."""

    values: Mapping[str, object]
    table: str


def held_out_judgements(
    path: Path, *, seed: int, anchors: int = SELECTION_ANCHORS, grade_one: GradeOne = "negative"
) -> dict[str, dict[str, int]]:
    """Return the labels of the anchors that `training.train` holds out for checkpoint selection.

    They are the same anchors only for the same file, seed, number of anchors and `grade_one`. The threshold and the
    calibration are fitted on them.

    Raises:
        InvalidInput: the file cannot be read, contains texts instead of ids, or has no more than `anchors` anchors.
    """
    judgements = read_relevance_labels(path)
    # The split depends on ids alone, so ids serve as texts.
    pairs = read_pairs(path, companies=_ids(path), grade_one=grade_one, every_class=False)
    _, held_out = split_by_anchor(pairs, selection=anchors, seed=seed)
    chosen = set(held_out.anchors)
    return {anchor: grades for anchor, grades in judgements.items() if anchor in chosen}


def _ids(path: Path) -> dict[str, str]:
    """Return every id of a file of pairs, also of its unlabelled ones, as its own text."""
    rows = table_rows(path)
    layout = find_layout(path, list(dict.fromkeys(str(name) for row in rows for name in row.record)))
    if not layout.holds_ids:
        raise InvalidInput(
            f"{path} contains texts ({layout.left}, {layout.right}), so the anchors that training held out are not "
            "known; pass labels of other anchors, without their number"
        )
    return {side: side for row in pair_rows(path, rows, layout) for side in (row.left, row.right)}


def ranking_figures(
    encode: Encode, judgements: RelevanceLabels, *, prepared: Texts, plain: Texts, seen: frozenset[str], seed: int
) -> Figures:
    """Return nDCG@10, P@10, MRR and AUC of three rankings.

    They are the rankings of the prepared texts, of the plain texts and, if `seen` is not empty, of the prepared texts
    without candidates in `seen`. If that leaves no candidate, the table has a row without figures.
    """
    found = {"prepared": rank(encode, judgements, prepared), "plain": rank(encode, judgements, plain)}
    strict = without_seen(judgements, seen) if seen else {}
    if strict:
        found[UNSEEN] = rank(encode, strict, prepared)
    values: dict[str, dict[str, Any]] = {
        name: {**ranking.means(), "ndcg10_interval": mean_interval(ranking.ndcg, seed=seed), "pairs": ranking.pairs}
        for name, ranking in found.items()
    }
    rows = [
        [name, interval_text(each["ndcg10_interval"]), *(each[figure] for figure in ("p10", "mrr", "auc", "pairs"))]
        for name, each in values.items()
    ]
    if seen and not strict:
        rows.append([UNSEEN, *["-"] * 4, 0])
    return Figures(values=values, table=table(["text", "nDCG@10", "P@10", "MRR", "AUC", "pairs"], rows))


def pair_figures(encode: Encode, judgements: RelevanceLabels, *, selection: RelevanceLabels, texts: Texts) -> Figures:
    """Return the quality of classifying the pairs of `judgements` by cosine (PAUSE, Table 5).

    The threshold is chosen on `selection`.
    """
    chosen, chosen_positive = pooled(encode_anchors(encode, selection, texts))
    cosines, positive = pooled(encode_anchors(encode, judgements, texts))
    found = cosine_quality(cosines, positive, best_threshold(chosen, chosen_positive))
    undefined = float("nan")
    recall = 0.0 if positive.any() else undefined
    rows: list[list[object]] = [
        ["cosine", found.threshold, found.accuracy, found.precision, found.recall, found.f1, found.auc, found.pairs],
        ["(all negative)", undefined, float(1 - positive.mean()), undefined, recall, recall, undefined, len(positive)],
    ]
    return Figures(
        values={"quality": found, "selection_auc": auc(chosen, chosen_positive)},
        table=table(["classifier", "threshold", "accuracy", "precision", "recall", "F1", "AUC", "pairs"], rows),
    )


def corpus_figures(corpus: Corpus, judgements: RelevanceLabels, *, seed: int) -> Figures:
    """Return the recall of known competitors at 10, 50 and 100 among all companies."""
    found = corpus_recall(corpus, judgements)
    intervals = [mean_interval(found.recall[:, place], seed=seed) for place in range(len(DEPTHS))]
    row = [f"{len(corpus.ids):,}", *map(interval_text, intervals), len(found.anchors)]
    named = {f"recall{depth}": interval for depth, interval in zip(DEPTHS, intervals, strict=True)}
    return Figures(
        values={**named, "companies": len(corpus.ids), "competitors": found.competitors},
        table=table(["companies", *(f"R@{depth}" for depth in DEPTHS), "anchors"], [row]),
    )
