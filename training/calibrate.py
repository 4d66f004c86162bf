"""Adds a calibration to a bundle, or replaces it, without exporting the bundle again.

    python -m training.calibrate --bundle models/<id> --judged judged.tsv --companies companies.jsonl
    python -m training.calibrate ... --index similarity.db     (takes the vectors from an index; else every company
                                                                is encoded)
    python -m training.calibrate ... --judged train.tsv --selection-anchors 100 --seed 1
                                                               (only the anchors that a run with that seed held out)

The anchors of `--judged` must not have been trained on. `--dev` names judgements of other anchors, which only measure
the calibration. The bundle keeps its `encoder_id` and gets a new `bundle_id`. To apply the calibration to an index, run
this command, which copies the vectors and encodes nothing:

    similarity generations reembed --index similarity.db --bundle models/<id> --without-gate
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.generations.judgements import Judgements, read_judgements
from training.config import SEED
from training.console import refusing, say
from training.evaluate.calibration import HITS_PER_ANCHOR
from training.evaluate.corpus import read_corpus
from training.evaluate.tasks import held_out_judgements
from training.export.calibration import (
    FittedCalibration,
    fit_calibration,
    plot_reliability,
    progress_with_eta,
    recalibrate,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, fit, write the bundle, and print the quality of the calibration."""
    options = _parser().parse_args(arguments)
    with refusing():
        _run(options)


def _run(options: argparse.Namespace) -> None:
    bundle = ModelBundle.load(options.bundle)
    judgements = selected(options.judged, anchors=options.selection_anchors, seed=options.seed)
    dev = read_judgements(options.dev) if options.dev else None
    progress = progress_with_eta("companies encoded", say)
    corpus = read_corpus(TextEncoder(bundle), companies=options.companies, index=options.index, progress=progress)
    fitted = fit_calibration(corpus, judgements, dev=dev, k=options.served, seed=options.seed)
    folder = options.output / bundle.encoder_id if options.output else options.bundle
    written = recalibrate(bundle, fitted, folder=folder, judged_by=options.judged_by)
    if options.plots:
        plot_reliability(fitted, options.plots / f"reliability-{written.encoder_id}.png")
    say(summary(fitted))
    say(f"{written.folder}: encoder {written.encoder_id} as before, bundle {written.bundle_id}")


def selected(path: Path, *, anchors: int | None, seed: int) -> Judgements:
    """Return all judgements of a file or, if `anchors` is given, those of the anchors that training held out.

    Raises:
        InvalidInput: the file is invalid, or has no more than `anchors` anchors.
    """
    return read_judgements(path) if anchors is None else held_out_judgements(path, seed=seed, anchors=anchors)


def summary(fitted: FittedCalibration) -> str:
    """Return the calibration and its errors as lines of text."""
    mapping, quality = fitted.calibration, fitted.report.platt
    lines = [
        f"P(competitor) = sigmoid({mapping.slope:.4f} * cosine {mapping.intercept:+.4f}), from "
        f"{fitted.report.pairs:,} judged of {fitted.report.served:,} served pairs of {fitted.report.anchors:,} anchors",
        f"out of fold: ECE {quality.ece.mean:.4f} (by chance {quality.chance_ece:.4f}), Brier {quality.brier.mean:.4f}",
    ]
    if fitted.dev is not None:
        lines.append(
            f"dev: ECE {fitted.dev.ece.mean:.4f} (by chance {fitted.dev.chance_ece:.4f}), "
            f"Brier {fitted.dev.brier.mean:.4f}"
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.calibrate", description="Calibrate a bundle.")
    add = parser.add_argument
    add("--bundle", type=Path, required=True, help="folder of the bundle; it is replaced unless --output is given")
    add("--judged", type=Path, required=True, help="judgements of anchors that were not trained on")
    add("--companies", type=Path, help="JSONL file of all companies of the corpus")
    add("--index", help="index that already contains this bundle's vectors of them (a file or a URL)")
    add("--dev", type=Path, help="judgements of other anchors, to measure the calibration on")
    add("--served", type=int, default=HITS_PER_ANCHOR, help=f"hits per anchor (default: {HITS_PER_ANCHOR})")
    add(
        "--selection-anchors",
        type=int,
        help="number of anchors of --judged that the training run held out; only those are used",
    )
    add(
        "--seed", type=int, default=SEED, help=f"seed of the training run, and of folds and resamples (default: {SEED})"
    )
    add("--output", type=Path, help="folder in which to write the folder of the bundle (default: replace the bundle)")
    add("--judged-by", default="", help="who judged and how, for the card")
    add("--plots", type=Path, help="folder for the reliability plot")
    return parser


if __name__ == "__main__":
    main()
