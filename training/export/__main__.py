"""Exports a sentence encoder as a bundle: one folder from which the search runs it without torch.

    python -m training.export --model runs/first/best --output bundles --judged FOLDER --companies FILE
    python -m training.export --model runs/first/best --output bundles --judged FOLDER --companies FILE \
        --reference models/<id>
    python -m training.export --model my-finetuned-folder --output bundles --precision float32

`--model` is the folder `best` of a run of training.train, a Hugging Face id or folder of an encoder with mean pooling,
a Python package that ships one, or a bundle (`shipped`: the shipped bundle), which is exported again from its own
weights. For a run, training.json provides the base model, the method and the maximum number of tokens.

docs/distilling.md has the commands that make an encoder like the shipped one. The export is refused if the ONNX output
differs from torch, or int8 or float16 vectors are too far from float32; with `--judged`, also if they rank worse than
float32, or the model worse than `--reference` (limits: training.export.gates). A new bundle has no calibration;
`python -m training.calibrate` fits one.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from similarity.bundle import ModelBundle, is_bundle, seed_folder, trained_on_path
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.gate import labelled_companies
from similarity.generations.relevance_labels import read_relevance_labels
from similarity.text import DEFAULT_SETTINGS
from training.config import SHIPPED
from training.console import refusing, say
from training.evaluate.judged import judged_split
from training.export.bundle_export import FLOAT16, FLOAT32, INT8, MAX_BYTES, SAMPLE, ExportSettings, export
from training.export.gates import JudgedData, Reference
from training.export.graph import SentenceEncoder, load_encoder
from training.run.trained_run import TrainedRun, listed_companies, read_run

MEGABYTE = 1_000_000
LICENCE = "Apache-2.0"


def main(arguments: Sequence[str] | None = None, *, load: Callable[[str], SentenceEncoder] = load_encoder) -> None:
    """Read the options, export the encoder that `load` reads, and say where the bundle is."""
    options = read_options(arguments)
    with refusing():
        if options.companies_trained_on and not options.companies_trained_on.is_file():
            raise InvalidInput(
                f"--companies-trained-on: there is no file {options.companies_trained_on}; pass a file with one "
                "company id a line"
            )
        if is_bundle(options.model) and Path(options.model).resolve().parent == options.output.resolve():
            raise InvalidInput(
                f"--output {options.output} contains the bundle to export; choose another folder, because the export "
                "could overwrite that bundle"
            )
        reference = None
        if options.reference:
            encoder = TextEncoder(ModelBundle.load(options.reference))
            reference = Reference(encoder=encoder, allow_worse=options.allow_worse)
        run = read_run(Path(options.model))
        recorded_ids = recorded_training_companies(options, run)
        bundle = export(
            settings_of(options, run),
            output=options.output,
            sample=options.sample,
            judged=judged_data(options, run, recorded_ids=recorded_ids),
            reference=reference,
            load=load,
            log=say,
        )
    write_training_companies(bundle, options.companies_trained_on, recorded_ids)
    say(f"{bundle.folder}: encoder {bundle.encoder_id}, bundle {bundle.bundle_id}")
    if bundle.manifest.ranker is None:
        say("it has no ranker, so it counts as reading English only; python -m training.rank --languages names others")


def recorded_training_companies(options: argparse.Namespace, run: TrainedRun | None) -> tuple[str, ...]:
    """Return the recorded training companies of the run, or of the bundle exported again."""
    if run is not None:
        return run.training_companies
    return tuple(listed_companies(Path(options.model))) if is_bundle(options.model) else ()


def write_training_companies(bundle: ModelBundle, listed_file: Path | None, recorded_ids: Sequence[str]) -> None:
    """Write the ids of all training companies to the list stored with the bundle."""
    ids = {*recorded_ids, *listed_companies(bundle.folder)}  # also ids of an earlier export of the same model
    if listed_file:
        ids.update(listed_file.read_text(encoding="utf-8").split())
    if ids:
        path = trained_on_path(bundle.folder)
        path.write_text("".join(f"{company}\n" for company in sorted(ids)), encoding="utf-8")
        say(f"{path} lists {len(ids):,} training companies; the gate of a re-embed does not judge the model by these")


def settings_of(options: argparse.Namespace, run: TrainedRun | None) -> ExportSettings:
    """Return the export settings: the options or, if omitted, the values of the run or bundle."""
    text_settings, licence = DEFAULT_SETTINGS, run.start.licence if run else ""
    if run is None and is_bundle(options.model):
        manifest = ModelBundle.load(options.model).manifest
        max_tokens, base_model, text_settings = manifest.max_tokens, manifest.base_model, manifest.text_settings
        licence = manifest.licence
        if manifest.calibration:
            say("the calibration of the bundle is not copied; fit a new one with python -m training.calibrate")
        training_data = options.training_data or manifest.training_data
    elif run is None:
        max_tokens, base_model = 128, options.model
        training_data = options.training_data or "none beyond the base model's own"
    else:
        max_tokens, base_model = run.settings.max_tokens, run.start.base_model
        training_data = f"{options.training_data or 'unspecified pairs'}; {run.method}"
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


def judged_data(
    options: argparse.Namespace, run: TrainedRun | None, *, recorded_ids: Sequence[str]
) -> JudgedData | None:
    """Return the judged pairs to measure on, or None without --judged.

    Companies seen in training are `recorded_ids` and, for a run, the companies of the judged train split.
    """
    if options.judged is None:
        return None
    train = judged_split(options.judged, "train")
    judgements = read_relevance_labels(train) if run is not None and train.exists() else {}
    return JudgedData(
        folder=options.judged,
        companies=options.companies,
        seen=frozenset({*recorded_ids, *labelled_companies(judgements)}),
    )


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line; exit with a usage error if an option is given without one that it requires."""
    parser = argparse.ArgumentParser(
        prog="python -m training.export", description="Export a sentence encoder as a bundle."
    )
    add = parser.add_argument
    add(
        "--model",
        required=True,
        help="folder 'best' of a run, Hugging Face id, folder, package that ships a model, bundle, or 'shipped'",
    )
    add("--output", type=Path, required=True, help="folder in which the folder of the bundle is created")
    add("--base-model", help="name for the manifest (default: the run's or the bundle's, else --model)")
    add("--licence", help=f"SPDX expression of the weights (default: that of the initial bundle, else {LICENCE})")
    add("--training-data", help="description of the training pairs, for the manifest; the method is added from the run")
    add("--precision", choices=[INT8, FLOAT16, FLOAT32], default=INT8)
    add("--max-tokens", type=int, help="longer texts are cut (default: the run's or the bundle's, else 128)")
    add("--max-megabytes", type=float, default=MAX_BYTES / MEGABYTE, help="largest int8 bundle (default: 150)")
    add("--sample", type=Path, default=SAMPLE, help=f"companies that set the scales of int8 (default: {SAMPLE})")
    add("--judged", type=Path, help="folder of judged pairs; turns the quality gates on")
    add("--companies", type=Path, help="JSONL file of the judged companies")
    add(
        "--companies-trained-on",
        type=Path,
        help="ids of further training companies, one a line (similarity pairs writes them), if the run was on pairs of "
        "texts: stored with the bundle, so that the gate of a re-embed does not measure on them",
    )
    add("--judged-by", default="", help="who judged and how, for the card")
    add("--reference", type=Path, help="bundle that it must not rank worse than")
    add("--allow-worse", action="store_true", help="export even if the model ranks worse than --reference")
    options = parser.parse_args(arguments)
    if options.model == SHIPPED:
        options.model = str(seed_folder())
    if bool(options.judged) != bool(options.companies):
        parser.error("--judged and --companies, the file of the judged companies, are only used together")
    if options.reference and not options.judged:
        parser.error("--reference needs --judged, the pairs to compare on")
    return options


if __name__ == "__main__":
    main()
