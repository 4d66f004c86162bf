"""A bundle's mapping from cosine to P(competitor), fitted on the search results of its own vectors.

The vectors stay as they are, and so does `encoder_id`; `bundle_id` changes. How the mapping is fitted,
and what is assumed about companies that nobody judged: training.evaluate.calibration.
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
    SERVED,
    CalibrationQuality,
    CalibrationReport,
    assess,
    calibrate,
    probabilities,
    served_pairs,
)
from training.evaluate.corpus import DEPTHS, Corpus, corpus_recall
from training.evaluate.encoding import Progress
from training.export.card import MEASURES, with_search_section
from training.export.publishing import publish


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCalibration:
    """The mapping, how good it is (out of fold, and on anchors of dev if there are any), and its figures by name."""

    report: CalibrationReport
    dev: CalibrationQuality | None
    metrics: Mapping[str, float]

    @property
    def calibration(self) -> Calibration:
        """The mapping for the manifest."""
        return self.report.calibration


def fit_calibration(
    corpus: Corpus, judgements: Judgements, *, dev: Judgements | None = None, k: int = SERVED, seed: int = 0
) -> FittedCalibration:
    """Fits on the `k` companies that the anchors of `judgements` are served; `dev` only measures.

    Raises:
        InvalidInput: both name the same anchor, too little of what is served has been judged, or
            competitors are not nearer than others.
    """
    shared = sorted(set(judgements) & set(dev or {}))
    if shared:
        raise InvalidInput(
            f"{len(shared)} anchors are both fitted on and measured on, such as {shared[0]}; give other judgements"
        )
    report = calibrate(served_pairs(corpus, judgements, k=k), seed=seed)
    if not report.calibration.slope > 0:
        raise InvalidInput(
            f"competitors among the {k} companies served are not nearer than others (slope "
            f"{report.calibration.slope:.3f}): this encoder's cosine gives no probability; train it, or judge more"
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
        others = served_pairs(corpus, dev, k=k)
        quality = assess(others, probabilities(report.calibration, others.cosines), seed=seed)
        metrics |= {"dev_calibration_pairs": len(others.cosines), **_figures("dev_calibration", quality)}
        metrics |= _recall(corpus, dev)
    return FittedCalibration(report=report, dev=quality, metrics=metrics)


def calibrated(manifest: Manifest, fitted: FittedCalibration) -> Manifest:
    """The manifest with this mapping and its figures instead of earlier ones."""
    kept = {name: value for name, value in manifest.metrics.items() if not _is_of_calibration(name)}
    return replace(manifest, calibration=fitted.calibration, metrics={**kept, **fitted.metrics})


def recalibrate(bundle: ModelBundle, fitted: FittedCalibration, *, folder: Path, judged_by: str = "") -> ModelBundle:
    """Writes `bundle` with this mapping to `folder`, which may be its own; its card keeps all other sections.

    Raises:
        InvalidBundle: `bundle` was changed since it was loaded.
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


def draw(fitted: FittedCalibration, path: Path) -> None:
    """The reliability plot, as PNG. A bundle holds no pictures: it lies elsewhere."""
    from training.evaluate.plots import reliability_plot

    tables = {"out of fold": fitted.report.platt.table}
    if fitted.dev is not None:
        tables["dev"] = fitted.dev.table
    reliability_plot(tables, path, title="Companies served, judged ones")


def progress_with_eta(what: str, log: Log) -> Progress:
    """A Progress that logs the count and an upper bound of the time left: encoding begins with the longest texts."""
    started = perf_counter()

    def report(done: int, total: int) -> None:
        left = round((perf_counter() - started) / done * (total - done))
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
