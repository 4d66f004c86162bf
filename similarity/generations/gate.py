"""The quality gate: decides whether a generation may be promoted.

A candidate is refused if any of these is true; the report gives each reason with its numbers.

- It ranks labelled candidates worse: the lower bound of the interval of new - old nDCG@10 is below -.01.
  The interval is a paired bootstrap over anchors, two-sided 95 %, so the bound is its 2.5th percentile.
  The first generation of an index is not compared: its nDCG@10 must reach a floor.
- There are fewer than 50 usable anchors.
- It holds more or fewer companies or tombstones than the old one, and not only because others are writing.
- The vector of a labelled company has another encoder or dimension than the generation.

No anchor may be in the training data: an encoder that was trained on the labels passes even if it is worse.
Give all companies of the training pairs as `trained_on`; anchors among them are skipped and counted.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import EmbeddedCompany, Vector
from similarity.errors import InvalidInput
from similarity.generations.bootstrap import bootstrap_interval
from similarity.generations.judgements import Judgements, ndcg, read_judgements
from similarity.index.comparing import MAX_IN_FLIGHT_DOCUMENTS, Difference, differences
from similarity.index.protocol import CompanyIndex, Generation
from similarity.index.rules import unknown_generation, vector_problem

SEED = 0
MIN_ANCHORS = 50
MARGIN = 0.01
BATCH_IDS = 500
# A writer writes to the candidate first and to the live generation last: a batch in flight is in only one of them.
RECHECK_DELAYS_SECONDS = (0.2, 1.0, 3.0)
"""Waits before each new comparison of the two generations: together longer than any batch is in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """The decision of the gate and its numbers; `reasons` is empty if it passed.

    `anchors`: number of anchors that were evaluated. `trained_on`: number of anchors that were skipped because they
    are training companies. The bounds are the 2.5th and 97.5th percentile of `difference` (new - old nDCG@10), or of
    `new_ndcg` if there is no old generation. Without anchors, these numbers are None.
    """

    passed: bool = False
    reasons: tuple[str, ...] = ()
    anchors: int = 0
    trained_on: int = 0
    old_ndcg: float | None = None
    new_ndcg: float | None = None
    difference: float | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None


Gate: TypeAlias = Callable[[str | None, str], GateReport]
"""Called with the names of the live generation (None if there is none) and of the candidate."""


def check(
    index: CompanyIndex,
    *,
    old: str | None,
    new: str,
    judgements: Judgements,
    trained_on: Collection[str] = (),
    floor: float = 0.5,
) -> GateReport:
    """Return whether generation `new` may replace `old`, or become the first live one if `old` is None.

    An anchor is usable if it and two labelled candidates of different grade are in both generations; companies that
    only one of them holds are ignored. If the counts differ, the comparison is repeated for some seconds, and only
    documents that differ every time are counted, because other processes may be writing.

    Raises:
        InvalidInput: `floor` is out of range.
        UnknownGeneration: one of the generations does not exist.
    """
    if not 0 <= floor <= 1:
        raise InvalidInput(f"the floor is {floor}; nDCG@10 is between 0 and 1")
    seen = set(trained_on)
    unseen = {anchor: grades for anchor, grades in judgements.items() if anchor not in seen}
    vectors, reasons = _valid_vectors(index, new, judged_companies(unseen))
    before = vectors
    if old is not None:
        before, _ = _valid_vectors(index, old, vectors)
        reasons += _count_reasons(index, old=old, new=new)
    usable = usable_judgements(unseen, before)
    report = _measured(None if old is None else anchor_ndcg(usable, before), anchor_ndcg(usable, vectors))
    reasons += _anchor_reasons(usable=len(usable), judged=len(unseen))
    reasons += _quality_reasons(report, floor=floor)
    trained = len(judgements) - len(unseen)
    return replace(report, passed=not reasons, reasons=tuple(reasons), trained_on=trained)


def gate_from_file(index: CompanyIndex, judged: Path, *, trained_on: Path | None = None, floor: float = 0.5) -> Gate:
    """Return a gate that evaluates generations with the relevance labels in a file.

    `trained_on`: a file with one company id per line.

    Raises:
        InvalidInput: the file has no relevance labels, or `trained_on` cannot be read.
    """
    judgements = read_judgements(judged)
    try:
        seen = trained_on.read_text(encoding="utf-8").split() if trained_on else []
    except OSError as error:
        raise InvalidInput(
            f"{trained_on} cannot be read: {error.strerror}; it must have one company id per line"
        ) from error
    return lambda old, new: check(index, old=old, new=new, judgements=judgements, trained_on=seen, floor=floor)


def companies_trained_on(bundle_folder: Path) -> Path | None:
    """Return the file `<folder>.trained-on.txt` that training.export writes next to a bundle; None without one."""
    path = trained_on_path(bundle_folder)
    return path if path.is_file() else None


def trained_on_path(bundle_folder: Path) -> Path:
    """Return the path of a bundle's list of training companies: next to its folder, whose files the manifest fixes."""
    folder = bundle_folder.resolve()
    return folder.with_name(f"{folder.name}.trained-on.txt")


def judged_companies(judgements: Judgements) -> set[str]:
    """Return the ids of all anchors and candidates."""
    return {company for anchor, grades in judgements.items() for company in (anchor, *grades)}


def stored_documents(index: CompanyIndex, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
    """Return the companies among `ids` that a generation holds; reads in batches."""
    ordered = sorted(ids)
    found: dict[str, EmbeddedCompany] = {}
    for start in range(0, len(ordered), BATCH_IDS):
        found |= index.get(generation, ordered[start : start + BATCH_IDS])
    return found


def usable_judgements(judgements: Judgements, held: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the labels whose anchor and candidate are both in `held`, for anchors with at least two grades."""
    kept = {
        anchor: {candidate: grade for candidate, grade in grades.items() if candidate in held}
        for anchor, grades in judgements.items()
        if anchor in held
    }
    return {anchor: grades for anchor, grades in kept.items() if len(set(grades.values())) > 1}


def anchor_ndcg(judgements: Judgements, vectors: Mapping[str, Vector]) -> NDArray[np.float64]:
    """Return nDCG@10 of each anchor's candidates ranked by cosine, `[anchors]`, in the order of the labels."""
    reached = []
    for anchor, grades in judgements.items():
        candidates = np.stack([vectors[candidate] for candidate in grades])
        # Not a matrix product: its rounding depends on the row, and equal vectors must have equal scores.
        cosines = (candidates * vectors[anchor]).sum(axis=1)
        reached.append(ndcg(cosines, np.array(list(grades.values()))))
    return np.array(reached, dtype=np.float64)


def generation_named(index: CompanyIndex, name: str) -> Generation:
    """Return the generation of this name. Raises UnknownGeneration if there is none."""
    known = {generation.name: generation for generation in index.generations()}
    if name not in known:
        raise unknown_generation(name, list(known))
    return known[name]


def _measured(old: NDArray[np.float64] | None, new: NDArray[np.float64]) -> GateReport:
    """Return a report with the figures of these nDCG values, `[anchors]`, and without a decision."""
    if not len(new):
        return GateReport()
    lower, upper = bootstrap_interval(new if old is None else new - old, seed=SEED)
    return GateReport(
        anchors=len(new),
        old_ndcg=None if old is None else float(old.mean()),
        new_ndcg=float(new.mean()),
        difference=None if old is None else float((new - old).mean()),
        lower_bound=lower,
        upper_bound=upper,
    )


def _quality_reasons(report: GateReport, *, floor: float) -> list[str]:
    new, old, lower = report.new_ndcg, report.old_ndcg, report.lower_bound
    if new is not None and old is None and new < floor:
        return [
            f"nDCG@10 is {new:.4f}, under the floor of {floor:.4f} for a first generation; use a better "
            "encoder, or a lower floor if this corpus is harder"
        ]
    if old is not None and lower is not None and lower < -MARGIN:
        return [
            f"nDCG@10 goes from {old:.4f} to {new:.4f}; the 2.5th percentile of the difference is "
            f"{lower:+.4f}, under the limit of {-MARGIN:+.4f}; keep the old generation, or judge more "
            "anchors if the interval is wide"
        ]
    return []


def _anchor_reasons(*, usable: int, judged: int) -> list[str]:
    if usable >= MIN_ANCHORS:
        return []
    return [
        f"{usable} of {judged} labelled anchors are usable, fewer than {MIN_ANCHORS}: an anchor and two candidates of "
        "different grade must be in every compared generation; label more companies of this corpus"
    ]


def _count_reasons(index: CompanyIndex, *, old: str, new: str) -> list[str]:
    old_stats, new_stats = index.stats(old), index.stats(new)
    old_counts = {"companies": old_stats.companies, "tombstones": old_stats.deleted}
    excess = {
        "companies": new_stats.companies - old_stats.companies,
        "tombstones": new_stats.deleted - old_stats.deleted,
    }
    if any(excess.values()):
        lasting = _lasting_differences(index, old=old, new=new)
        excess = excess if lasting is None else _excess_of_new(index, lasting, old=old, new=new)
    return [
        f"{new} holds {old_counts[kind] + count:,} {kind} and {old} holds {old_counts[kind]:,}; they differ by "
        f"{abs(count):,}; run the re-embed again, then the gate"
        for kind, count in excess.items()
        if count
    ]


def _lasting_differences(index: CompanyIndex, *, old: str, new: str) -> set[Difference] | None:
    """Return the documents that differ in every comparison; None if more differ than can be in flight."""
    lasting = set(islice(differences(index.versions(old), index.versions(new)), MAX_IN_FLIGHT_DOCUMENTS + 1))
    if len(lasting) > MAX_IN_FLIGHT_DOCUMENTS:
        return None
    for pause in RECHECK_DELAYS_SECONDS:
        if not lasting:
            break
        time.sleep(pause)
        found = differences(index.versions(old), index.versions(new))
        lasting = {document for document in found if document in lasting}
    return lasting


def _excess_of_new(index: CompanyIndex, lasting: Collection[Difference], *, old: str, new: str) -> dict[str, int]:
    """Return how many more companies and tombstones `new` holds among these documents than `old`."""
    of_old = [document.id for document in lasting if document.old is not None]
    of_new = [document.id for document in lasting if document.new is not None]
    # Tombstones are not among the stored documents.
    companies = len(stored_documents(index, new, of_new)) - len(stored_documents(index, old, of_old))
    return {"companies": companies, "tombstones": len(of_new) - len(of_old) - companies}


def _valid_vectors(index: CompanyIndex, name: str, ids: Collection[str]) -> tuple[dict[str, Vector], list[str]]:
    """Return the valid vectors of these companies in a generation, and a reason if some are invalid."""
    generation = generation_named(index, name)
    documents = stored_documents(index, name, ids)
    problems = {
        company: problem for company in sorted(documents) if (problem := _problem(generation, documents[company]))
    }
    vectors = {company: document.vector for company, document in documents.items() if company not in problems}
    return vectors, [
        f"{len(problems):,} of {len(documents):,} labelled companies in {name} have an invalid vector; for "
        f"example {company}: {problem}; embed the corpus again"
        for company, problem in list(problems.items())[:1]
    ]


def _problem(generation: Generation, document: EmbeddedCompany) -> str:
    if document.encoder_id != generation.encoder_id:
        return f"it is of encoder {document.encoder_id}, not {generation.encoder_id}"
    return vector_problem(document.vector, dimension=generation.dimension)
