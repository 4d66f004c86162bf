"""The evaluations that `python -m training.evaluate` runs; each returns figures and a table.

`Figures.values` is written to the report and `Figures.table` is printed. `Figures.anchors` are values by measure and
anchor, for a paired comparison with another report.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from similarity.generations.judgements import Judgements, read_judgements
from similarity.model.calibration import Calibration
from training.data.pairs import read_pairs
from training.data.splits import SELECTION_ANCHORS, split_by_anchor
from training.evaluate.bootstrap import mean_interval
from training.evaluate.calibration import CalibrationQuality, assess, calibrate, judged_hits, probabilities
from training.evaluate.corpus import Corpus, corpus_recall
from training.evaluate.encoding import Encode, Texts
from training.evaluate.pairs import best_threshold, cosine_quality
from training.evaluate.ranking import encode_anchors, pooled, rank, without_seen
from training.evaluate.ranks import auc
from training.evaluate.report import interval_text, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The results of one evaluation."""

    values: Mapping[str, object]
    table: str
    anchors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def held_out_judgements(path: Path, *, seed: int, anchors: int = SELECTION_ANCHORS) -> dict[str, dict[str, int]]:
    """Return the judgements of the anchors that training on this file with this seed holds out.

    The threshold and the calibration are fitted on them.

    Raises:
        InvalidInput: the file cannot be read, or has no more than `anchors` anchors.
    """
    judgements = read_judgements(path)
    # The split depends on ids alone, so ids serve as texts.
    ids = {company: company for anchor, grades in judgements.items() for company in (anchor, *grades)}
    _, kept = split_by_anchor(read_pairs(path, companies=ids, every_class=False), selection=anchors, seed=seed)
    chosen = {kept.ids[number] for number in kept.left}
    return {anchor: grades for anchor, grades in judgements.items() if anchor in chosen}


def ranking_figures(
    encode: Encode, judgements: Judgements, *, prepared: Texts, plain: Texts, seen: frozenset[str], seed: int
) -> Figures:
    """nDCG@10, P@10, MRR and AUC: on prepared text, without candidates in `seen`, and on plain text."""
    found = {"prepared": rank(encode, judgements, prepared), "plain": rank(encode, judgements, plain)}
    strict = without_seen(judgements, seen) if seen else {}
    if strict:
        found["prepared, unseen candidates"] = rank(encode, strict, prepared)
    intervals = {name: mean_interval(ranking.ndcg, seed=seed) for name, ranking in found.items()}
    names = ("ndcg10", "p10", "mrr", "auc", "anchor_auc")
    rows = [
        [name, interval_text(intervals[name]), *(ranking.means()[each] for each in names[1:]), ranking.pairs]
        for name, ranking in found.items()
    ]
    values = {
        name: {**ranking.means(), "ndcg10_interval": intervals[name], "pairs": ranking.pairs}
        for name, ranking in found.items()
    }
    first = found["prepared"]
    by_anchor = {
        "ndcg10": first.ndcg,
        "p10": first.precision,
        "mrr": first.reciprocal_rank,
        "anchor_auc": first.anchor_auc,
    }
    return Figures(
        values=values,
        table=table(["text", "nDCG@10", "P@10", "MRR", "AUC", "AUC by anchor", "pairs"], rows),
        anchors={name: dict(zip(first.anchors, each.tolist(), strict=True)) for name, each in by_anchor.items()},
    )


def pair_figures(encode: Encode, judgements: Judgements, *, selection: Judgements, texts: Texts) -> Figures:
    """Table 5 by cosine: the threshold from the selection split, the figures from the judgements."""
    (chosen, chosen_positive), (cosines, positive) = (
        pooled(encode_anchors(encode, part, texts)) for part in (selection, judgements)
    )
    quality = {
        measure: cosine_quality(cosines, positive, best_threshold(chosen, chosen_positive, measure=measure))
        for measure in ("accuracy", "f1")
    }
    header = ["threshold for", "threshold", "accuracy", "precision", "recall", "F1", "AUC", "pairs"]
    rows: list[list[object]] = [
        [name, each.threshold, each.accuracy, each.precision, each.recall, each.f1, each.auc, each.pairs]
        for name, each in quality.items()
    ]
    rows.append(["(all negative)", float("nan"), float(1 - positive.mean()), *([float("nan")] * 4), len(positive)])
    return Figures(
        values={"thresholds": quality, "selection_auc": auc(chosen, chosen_positive)}, table=table(header, rows)
    )


def corpus_figures(corpus: Corpus, judgements: Judgements, *, seed: int) -> Figures:
    """Recall of known competitors at 10, 50 and 100 among all companies."""
    found = corpus_recall(corpus, judgements)
    intervals = {name: mean_interval(found.recall[:, place], seed=seed) for place, name in enumerate(found.means())}
    row = [f"{len(corpus.ids):,}", *(interval_text(each) for each in intervals.values()), len(found.anchors)]
    return Figures(
        values={**intervals, "companies": len(corpus.ids), "competitors": int(found.competitors.sum())},
        table=table(["companies", *(f"R@{depth}" for depth in found.depths), "anchors"], [row]),
        anchors={
            name: dict(zip(found.anchors, found.recall[:, place].tolist(), strict=True))
            for place, name in enumerate(found.means())
        },
    )


def calibration_figures(
    corpus: Corpus, judgements: Judgements, *, selection: Judgements, k: int, seed: int
) -> tuple[Figures, dict[str, CalibrationQuality]]:
    """Return the quality of the calibration that is fitted on the top `k` hits of the selection anchors.

    It is measured by cross-validation and on the anchors of `judgements`. The second value contains the reliability
    tables by label, for the plot.
    """
    report = calibrate(judged_hits(corpus, selection, k=k), seed=seed)
    others = judged_hits(corpus, judgements, k=k)
    found = {
        "sigmoid, out of fold": report.platt,
        "isotonic, out of fold": report.isotonic,
        "sigmoid, other anchors": assess(others, probabilities(report.calibration, others.cosines), seed=seed),
    }
    rows = [
        [name, interval_text(each.ece), each.chance_ece, interval_text(each.brier), interval_text(each.log_loss)]
        for name, each in found.items()
    ]
    text = table(["mapping", "ECE", "ECE by chance", "Brier", "log loss"], rows)
    return (
        Figures(
            values={"fit": report, "other_anchors": found["sigmoid, other anchors"]},
            table=text + _formula(report.calibration),
        ),
        found,
    )


def _formula(calibration: Calibration) -> str:
    return f"P(competitor) = sigmoid({calibration.slope:.4f} · cosine {calibration.intercept:+.4f})\n"
