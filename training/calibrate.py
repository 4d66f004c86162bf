"""Fits a bundle's calibration from cosine to P(competitor), on the hits of searches with its own vectors.

    python -m training.calibrate --bundle models/<id> --judged judged.tsv --companies companies.jsonl
    python -m training.calibrate ... --index similarity.db     (takes the vectors from an index; else every company
                                                                is encoded)
    python -m training.calibrate ... --judged train.tsv --selection-anchors 100 --seed 1
                                                               (only the anchors that a run with that seed held out)

The anchors of `--judged` must not have been trained on. `--dev` names judgements of other anchors, which only measure
the calibration. The bundle keeps its vectors and its `encoder_id`, and gets a new `bundle_id`. For the fit and its
assumption about unjudged companies, see training.evaluate.calibration. To apply the calibration to an index, run this
command, which copies the vectors and encodes nothing:

    similarity generations reembed --index similarity.db --bundle models/<id> --without-gate
"""

import argparse
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from similarity.bundle import CARD_FILE, ModelBundle, write_manifest
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import RelevanceLabels, read_relevance_labels
from training.config import SEED
from training.console import refusing, say
from training.data.labels import GradeOne
from training.evaluate.bootstrap import mean_interval, with_bounds
from training.evaluate.calibration import (
    HITS_PER_ANCHOR,
    CalibrationQuality,
    CalibrationReport,
    assess,
    calibrate,
    judged_hits,
    probabilities,
)
from training.evaluate.corpus import DEPTHS, Corpus, corpus_recall, read_corpus
from training.evaluate.tasks import held_out_judgements
from training.export.card import MEASURES, with_search_section
from training.export.publishing import publish
from training.run.trained_run import copy_listed_companies, listed_companies

OWN_METRICS = ("calibration_", "dev_calibration_", "dev_recall", "corpus_companies")


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCalibration:
    """A calibration, its quality (cross-validated, and on dev if given), and its figures for the manifest."""

    report: CalibrationReport
    dev: CalibrationQuality | None
    metrics: Mapping[str, float]


def fit_calibration(
    corpus: Corpus,
    judgements: RelevanceLabels,
    *,
    dev: RelevanceLabels | None = None,
    k: int = HITS_PER_ANCHOR,
    seed: int = 0,
) -> FittedCalibration:
    """Fit on the judged companies among the top `k` hits of the anchors of `judgements`; `dev` only measures.

    Raises:
        InvalidInput: an anchor is also in `dev`, too few hits have been judged, or competitors do not have higher
            cosines than others.
    """
    shared = sorted(set(judgements) & set(dev or {}))
    if shared:
        raise InvalidInput(
            f"{len(shared)} anchors, such as {shared[0]}, are in both the judgements to fit on and the judgements to "
            "measure on; remove them from one"
        )
    report = calibrate(judged_hits(corpus, judgements, k=k), seed=seed)
    if not report.calibration.slope > 0:
        raise InvalidInput(
            f"among the top {k} hits, competitors do not have higher cosines than others (slope "
            f"{report.calibration.slope:.3f}), so cosines cannot be calibrated; train the encoder, or judge more hits"
        )
    metrics: dict[str, float] = {
        "corpus_companies": len(corpus.ids),
        "calibration_anchors": report.anchors,
        "calibration_pairs": report.pairs,
        "calibration_served": report.served,
        **_figures("calibration", report.quality),
    }
    quality = None
    if dev is not None:
        others = judged_hits(corpus, dev, k=k)
        quality = assess(others, probabilities(report.calibration, others.cosines), seed=seed)
        metrics |= {"dev_calibration_pairs": len(others.cosines), **_figures("dev_calibration", quality)}
        recall = corpus_recall(corpus, dev).recall
        for place, depth in enumerate(DEPTHS):
            metrics |= with_bounds(f"dev_recall{depth}", mean_interval(recall[:, place]))
    return FittedCalibration(report=report, dev=quality, metrics=metrics)


def _figures(prefix: str, quality: CalibrationQuality) -> dict[str, float]:
    found = {f"{prefix}_ece_chance": quality.chance_ece}
    for measure in MEASURES:
        found |= with_bounds(f"{prefix}_{measure}", getattr(quality, measure))
    return found


def recalibrate(bundle: ModelBundle, fitted: FittedCalibration, *, folder: Path) -> ModelBundle:
    """Write `bundle` with this calibration to `folder`, which may be its own; keep the other sections of the card.

    Raises:
        InvalidBundle: the files of `bundle` have changed since it was loaded.
    """
    others = {name: value for name, value in bundle.manifest.metrics.items() if not name.startswith(OWN_METRICS)}
    manifest = replace(bundle.manifest, calibration=fitted.report.calibration, metrics={**others, **fitted.metrics})
    with tempfile.TemporaryDirectory() as drafts:
        draft = Path(drafts) / bundle.encoder_id
        shutil.copytree(bundle.folder, draft)
        ModelBundle.load(draft)
        card = draft / CARD_FILE
        before = card.read_text(encoding="utf-8") if card.exists() else f"# Encoder {bundle.encoder_id}\n"
        card.write_text(with_search_section(before, manifest), encoding="utf-8")
        write_manifest(draft, manifest)
        return publish(draft, folder)


def read_calibration_anchors(options: argparse.Namespace) -> RelevanceLabels:
    """Return the judgements to fit on: all of the file or, with --selection-anchors, of the held-out anchors.

    Raises:
        InvalidInput: the file is invalid, has too few anchors, or the bundle was trained on an anchor.
    """
    if options.selection_anchors is not None:
        return held_out_judgements(
            options.judged, seed=options.seed, anchors=options.selection_anchors, grade_one=options.grade_one
        )
    judgements = read_relevance_labels(options.judged)
    leaked = sorted(set(listed_companies(options.bundle)).intersection(judgements))
    if leaked:
        raise InvalidInput(
            f"the bundle was trained on {len(leaked)} of the {len(judgements)} anchors of {options.judged}, such as "
            f"{leaked[0]}; calibrate on other anchors, or pass --selection-anchors if training held them out"
        )
    return judgements


def summary(fitted: FittedCalibration) -> str:
    """Return the calibration and its errors as lines of text."""
    mapping, report = fitted.report.calibration, fitted.report
    measured = {"out of fold": report.quality, **({"dev": fitted.dev} if fitted.dev else {})}
    return "\n".join(
        [
            f"P(competitor) = sigmoid({mapping.slope:.4f} * cosine {mapping.intercept:+.4f}), from "
            f"{report.pairs:,} judged of {report.served:,} served pairs of {report.anchors:,} anchors",
            *(
                f"{name}: ECE {quality.ece.mean:.4f} (by chance {quality.chance_ece:.4f}), "
                f"Brier {quality.brier.mean:.4f}"
                for name, quality in measured.items()
            ),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, fit, write the bundle, and print the quality of the calibration."""
    options = _parser().parse_args(arguments)
    with refusing():
        bundle = ModelBundle.load(options.bundle)
        judgements = read_calibration_anchors(options)
        dev = read_relevance_labels(options.dev) if options.dev else None
        corpus = read_corpus(TextEncoder(bundle), companies=options.companies, index=options.index)
        fitted = fit_calibration(corpus, judgements, dev=dev, k=options.served, seed=options.seed)
        folder = options.output / bundle.encoder_id if options.output else options.bundle
        written = recalibrate(bundle, fitted, folder=folder)
        copy_listed_companies(options.bundle, to=written.folder)
        if options.plots:
            from training.evaluate.plots import reliability_plot

            tables = {"out of fold": fitted.report.quality.table, **({"dev": fitted.dev.table} if fitted.dev else {})}
            reliability_plot(tables, options.plots / f"reliability-{written.encoder_id}.png", title="Judged hits")
        say(summary(fitted))
        say(f"{written.folder}: encoder {written.encoder_id} as before, bundle {written.bundle_id}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.calibrate", description="Calibrate a bundle.")
    add = parser.add_argument
    add("--bundle", type=Path, required=True, help="folder of the bundle; it is replaced unless --output is given")
    add("--judged", type=Path, required=True, help="judgements of anchors that were not trained on")
    add("--companies", type=Path, help="JSONL file of all companies of the corpus")
    add("--index", help="index that already contains this bundle's vectors of them (a file or a URL)")
    add("--dev", type=Path, help="judgements of other anchors, to measure the calibration on")
    add("--served", type=int, default=HITS_PER_ANCHOR, help=f"hits per anchor (default: {HITS_PER_ANCHOR})")
    add("--selection-anchors", type=int, help="use only the anchors of --judged that training held out: their number")
    add("--grade-one", choices=get_args(GradeOne), default="negative", help="as in the training run")
    add("--seed", type=int, default=SEED, help="seed of the training run, of folds and resamples (default: 1)")
    add("--output", type=Path, help="folder in which to write the folder of the bundle (default: replace the bundle)")
    add("--plots", type=Path, help="folder for the reliability plot")
    return parser


if __name__ == "__main__":
    main()
