"""Gives a bundle a calibration, or a new one, without exporting it again.

    python -m training.calibrate --bundle models/<id> --judged judged.tsv --companies companies.jsonl
    python -m training.calibrate ... --index similarity.db     (takes the vectors from an index; else every company
                                                                is encoded)
    python -m training.calibrate ... --judged train.tsv --selection-anchors 100 --seed 1
                                                               (only the anchors that a run with that seed held out)

The anchors of `--judged` must not have been trained on. `--dev` names judgements of still others, which only
measure the fit. The bundle keeps its `encoder_id` and gets a new `bundle_id`. An index takes the new mapping over when
it is given the bundle; vectors are copied, nothing is encoded:

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
from training.evaluate.calibration import SERVED
from training.evaluate.corpus import read_corpus
from training.evaluate.tasks import held_out_judgements
from training.export.calibration import FittedCalibration, draw, fit_calibration, progress_with_eta, recalibrate


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, fit, write the bundle, and print the quality of the mapping."""
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
        draw(fitted, options.plots / f"reliability-{written.encoder_id}.png")
    say(summary(fitted))
    say(f"{written.folder}: encoder {written.encoder_id} as before, bundle {written.bundle_id}")


def selected(path: Path, *, anchors: int | None, seed: int) -> Judgements:
    """All judgements of a file, or those of the anchors that a training run with this seed held out.

    Raises:
        InvalidInput: the file cannot be used, or has not more anchors than that.
    """
    return read_judgements(path) if anchors is None else held_out_judgements(path, seed=seed, anchors=anchors)


def summary(fitted: FittedCalibration) -> str:
    """The mapping and its errors, in lines."""
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
    add("--companies", type=Path, help="JSONL file of all companies that a search can find")
    add("--index", help="index that holds this bundle's vectors of them already (a file or a URL)")
    add("--dev", type=Path, help="judgements of other anchors, to measure the mapping on")
    add("--served", type=int, default=SERVED, help=f"companies that a search returns (default: {SERVED})")
    add(
        "--selection-anchors",
        type=int,
        help="use only those of --judged that the training run held out",
    )
    add("--seed", type=int, default=SEED, help=f"that of the training; of folds and resamples too (default: {SEED})")
    add("--output", type=Path, help="store in which to write the bundle's folder (default: replace the bundle)")
    add("--judged-by", default="", help="who judged and how, for the card")
    add("--plots", type=Path, help="folder for the reliability plot")
    return parser


if __name__ == "__main__":
    main()
