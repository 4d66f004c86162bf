"""A bundle's calibration from cosine to P(competitor), fitted on the hits of searches with its own vectors.

The vectors and `encoder_id` do not change; `bundle_id` does. For the fit and its assumption about unjudged companies,
see training.evaluate.calibration.
"""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from similarity.bundle import CARD_FILE, ModelBundle, write_manifest
from similarity.errors import InvalidInput
from similarity.generations.judgements import Judgements
from similarity.model.calibration import Calibration
from similarity.model.manifest import Manifest
from training.console import Log
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
from training.evaluate.corpus import DEPTHS, Corpus, corpus_recall
from training.evaluate.encoding import Progress
from training.export.card import MEASURES, with_search_section
from training.export.publishing import publish


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCalibration:
    """A calibration, its quality (cross-validated, and on dev if given), and its figures for the manifest."""

    report: CalibrationReport
    dev: CalibrationQuality | None
    metrics: Mapping[str, float]

    @property
    def calibration(self) -> Calibration:
        """The calibration for the manifest."""
        return self.report.calibration


def fit_calibration(
    corpus: Corpus, judgements: Judgements, *, dev: Judgements | None = None, k: int = HITS_PER_ANCHOR, seed: int = 0
) -> FittedCalibration:
    """Fit on the judged companies among the top `k` hits of the anchors of `judgements`; `dev` only measures.

    Raises:
        InvalidInput: an anchor is in both, too few hits have been judged, or competitors do not have higher cosines
            than others.
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
        **_figures("calibration", report.platt),
    }
    quality = None
    if dev is not None:
        others = judged_hits(corpus, dev, k=k)
        quality = assess(others, probabilities(report.calibration, others.cosines), seed=seed)
        metrics |= {"dev_calibration_pairs": len(others.cosines), **_figures("dev_calibration", quality)}
        metrics |= _recall(corpus, dev)
    return FittedCalibration(report=report, dev=quality, metrics=metrics)


def calibrated(manifest: Manifest, fitted: FittedCalibration) -> Manifest:
    """Return the manifest with this calibration and its figures instead of earlier ones."""
    others = {name: value for name, value in manifest.metrics.items() if not _is_of_calibration(name)}
    return replace(manifest, calibration=fitted.calibration, metrics={**others, **fitted.metrics})


def recalibrate(bundle: ModelBundle, fitted: FittedCalibration, *, folder: Path, judged_by: str = "") -> ModelBundle:
    """Write `bundle` with this calibration to `folder`, which may be its own; other sections of the card are kept.

    Raises:
        InvalidBundle: the files of `bundle` have changed since it was loaded.
    """
    manifest = calibrated(bundle.manifest, fitted)
    with tempfile.TemporaryDirectory() as drafts:
        draft = Path(drafts) / bundle.encoder_id
        shutil.copytree(bundle.folder, draft)
        ModelBundle.load(draft)
        card = draft / CARD_FILE
        before = card.read_text(encoding="utf-8") if card.exists() else f"# Encoder {bundle.encoder_id}\n"
        card.write_text(with_search_section(before, manifest, judged_by=judged_by), encoding="utf-8")
        write_manifest(draft, manifest)
        return publish(draft, folder)


def plot_reliability(fitted: FittedCalibration, path: Path) -> None:
    """Write the reliability plot as PNG to `path`, outside the bundle, which may not contain pictures."""
    from training.evaluate.plots import reliability_plot

    tables = {"out of fold": fitted.report.platt.table}
    if fitted.dev is not None:
        tables["dev"] = fitted.dev.table
    reliability_plot(tables, path, title="Judged hits")


def progress_with_eta(what: str, log: Log) -> Progress:
    """Return a Progress that logs the count and an upper bound of the remaining time (the longest texts come first)."""
    start = perf_counter()

    def report(done: int, total: int) -> None:
        left = round((perf_counter() - start) / done * (total - done))
        log(f"{done:,} of {total:,} {what}, at most {left // 60}:{left % 60:02d} left")

    return report


def _figures(prefix: str, quality: CalibrationQuality) -> dict[str, float]:
    found = {f"{prefix}_ece_chance": quality.chance_ece}
    for measure in MEASURES:
        found |= with_bounds(f"{prefix}_{measure}", getattr(quality, measure))
    return found


def _recall(corpus: Corpus, dev: Judgements) -> dict[str, float]:
    recall = corpus_recall(corpus, dev)
    found: dict[str, float] = {}
    for place, depth in enumerate(DEPTHS):
        found |= with_bounds(f"dev_recall{depth}", mean_interval(recall.recall[:, place]))
    return found


def _is_of_calibration(name: str) -> bool:
    return name.startswith(("calibration_", "dev_calibration_", "dev_recall", "corpus_companies"))
