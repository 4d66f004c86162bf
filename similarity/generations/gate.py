"""The quality gate: decides whether a candidate generation may be promoted.

The gate refuses a candidate for any of these reasons; the report gives each reason with its numbers.

- It ranks the labelled companies worse than the old generation: the lower bound of the 95 % confidence interval of the
  difference in nDCG@10 (new - old), from a paired bootstrap over anchors, is below -0.01.
  If there is no old generation, nDCG@10 must reach a floor instead.
- Fewer than 50 anchors are usable (see `check`).
- It has more or fewer companies or tombstones than the old generation. Temporary differences, which other writers
  cause, are ignored.
- The vector of a labelled company is invalid: it has another encoder or dimension than the generation, or its norm is
  not 1. Companies without a vector are ignored.

An encoder that was trained on the labels can pass even if it is worse for other companies. So give all companies of
the training pairs as `trained_on`; anchors among these companies are skipped and counted.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.bundle import companies_trained_on
from similarity.company import EmbeddedCompany, Vector
from similarity.errors import InvalidInput
from similarity.generations.confidence_intervals import bootstrap_interval
from similarity.generations.relevance_labels import RelevanceLabels, ndcg, read_relevance_labels
from similarity.index.comparing import MAX_IN_FLIGHT_DOCUMENTS, Difference, differences
from similarity.index.protocol import CompanyIndex, Generation
from similarity.index.validation import unknown_generation, vector_problem

BOOTSTRAP_SEED = 0
MIN_ANCHORS = 50
MAX_LOSS = 0.01
"""Maximum fall of nDCG@10, measured at the lower bound of the confidence interval of the difference."""
IDS_PER_READ = 500
RECHECK_DELAYS_SECONDS = (0.2, 1.0, 3.0)
"""Pauses before each repeated comparison of the generations.

Writers write to the candidate first and to the live generation last, so a batch may be in only one of them for a short
time. The pauses together are longer than the write of a batch.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """The decision of the gate and its numbers; `reasons` is empty if the candidate passed.

    `anchors`: number of anchors that were evaluated. `trained_on`: number of anchors that were skipped because they
    are training companies; None if the training companies are not known. `difference`: new - old nDCG@10.
    `lower_bound` and `upper_bound`: 2.5th and 97.5th percentile of `difference` or, if there is no old generation, of
    `new_ndcg`. If no anchor was evaluated, the figures of quality are None.
    """

    passed: bool = False
    reasons: tuple[str, ...] = ()
    anchors: int = 0
    trained_on: int | None = None
    old_ndcg: float | None = None
    new_ndcg: float | None = None
    difference: float | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None


Gate: TypeAlias = Callable[[str | None, str], GateReport]
"""Evaluates a candidate. Called with the names of the live generation (None if there is none) and of the candidate."""


def check(
    index: CompanyIndex,
    *,
    old: str | None,
    new: str,
    labels: RelevanceLabels,
    trained_on: Collection[str] | None = None,
    floor: float = 0.5,
) -> GateReport:
    """Return the report on generation `new`: whether it may replace `old`, or be the first live one if `old` is None.

    An anchor is usable if each generation has a valid vector of the anchor and of at least two of its labelled
    companies, which have different grades. Labelled companies that only one generation has are ignored.

    Other processes may be writing. Therefore, if the counts differ, the generations are compared several times in a few
    seconds, and only documents that differ every time are counted.

    Raises:
        InvalidInput: `floor` is out of range.
        UnknownGeneration: one of the generations does not exist.
    """
    if not 0 <= floor <= 1:
        raise InvalidInput(f"the floor is {floor}; nDCG@10 is between 0 and 1")
    training_companies = set(trained_on or ())
    held_out = {anchor: grades for anchor, grades in labels.items() if anchor not in training_companies}
    new_vectors, reasons = _valid_vectors(index, new, labelled_companies(held_out))
    if old is None:
        usable = usable_labels(held_out, new_vectors)
        report = _measured(None, anchor_ndcg(usable, new_vectors))
    else:
        old_vectors, _ = _valid_vectors(index, old, new_vectors)
        reasons += _count_reasons(index, old=old, new=new)
        usable = usable_labels(held_out, old_vectors)  # `old_vectors` has no company that `new_vectors` lacks
        report = _measured(anchor_ndcg(usable, old_vectors), anchor_ndcg(usable, new_vectors))
    reasons += _anchor_reasons(usable=len(usable), labelled=len(held_out))
    reasons += _quality_reasons(report, floor=floor)
    skipped = None if trained_on is None else len(labels) - len(held_out)
    return replace(report, passed=not reasons, reasons=tuple(reasons), trained_on=skipped)


def gate_from_file(
    index: CompanyIndex,
    label_file: Path,
    *,
    trained_on: Path | None = None,
    store: Path | None = None,
    floor: float = 0.5,
) -> Gate:
    """Return a gate that evaluates generations with the relevance labels in `label_file`.

    `trained_on`: a file of the training companies, one id per line. By default it is the list that is stored with the
    bundle of the candidate in `store`, if there is one (`keep_bundle`).

    Raises:
        InvalidInput: `label_file` has no or invalid relevance labels, or `trained_on` cannot be read.
    """
    labels = read_relevance_labels(label_file)
    named = _ids_in(trained_on)

    def gate(old: str | None, new: str) -> GateReport:
        listed = companies_trained_on(store / generation_named(index, new).encoder_id) if store else None
        known = _ids_in(listed) if named is None else named
        return check(index, old=old, new=new, labels=labels, trained_on=known, floor=floor)

    return gate


def _ids_in(path: Path | None) -> list[str] | None:
    try:
        return path.read_text(encoding="utf-8").split() if path else None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}; it must have one company id per line") from error


def labelled_companies(labels: RelevanceLabels) -> set[str]:
    """Return the ids of all anchors and of all companies that are labelled for them."""
    return {company for anchor, grades in labels.items() for company in (anchor, *grades)}


def stored_documents(index: CompanyIndex, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
    """Return the stored companies with these ids, by id; IDS_PER_READ of them are read at once."""
    ordered = sorted(ids)
    documents: dict[str, EmbeddedCompany] = {}
    for start in range(0, len(ordered), IDS_PER_READ):
        documents |= index.get(generation, ordered[start : start + IDS_PER_READ])
    return documents


def usable_labels(labels: RelevanceLabels, companies: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the labels of pairs of these companies, for anchors whose labels have at least two different grades."""
    known = {
        anchor: {company: grade for company, grade in grades.items() if company in companies}
        for anchor, grades in labels.items()
        if anchor in companies
    }
    return {anchor: grades for anchor, grades in known.items() if len(set(grades.values())) > 1}


def anchor_ndcg(labels: RelevanceLabels, vectors: Mapping[str, Vector]) -> NDArray[np.float64]:
    """Return nDCG@10 of each anchor's labelled companies ranked by cosine, `[anchors]`, in the order of `labels`."""
    values = []
    for anchor, grades in labels.items():
        labelled = np.stack([vectors[company] for company in grades])
        # Not a matrix product: its rounding depends on the row, and equal vectors must have equal scores.
        cosines = (labelled * vectors[anchor]).sum(axis=1)
        values.append(ndcg(cosines, np.array(list(grades.values()))))
    return np.array(values, dtype=np.float64)


def generation_named(index: CompanyIndex, name: str) -> Generation:
    """Return the generation of this name. Raises UnknownGeneration if there is none."""
    generations = {generation.name: generation for generation in index.generations()}
    if name not in generations:
        raise unknown_generation(name, list(generations))
    return generations[name]


def _measured(old: NDArray[np.float64] | None, new: NDArray[np.float64]) -> GateReport:
    """Return a report without a decision: the figures of the nDCG values `[anchors]` of both generations."""
    if not len(new):
        return GateReport()
    lower, upper = bootstrap_interval(new if old is None else new - old, seed=BOOTSTRAP_SEED)
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
            "encoder, or set a lower floor if this corpus is more difficult"
        ]
    if old is not None and lower is not None and lower < -MAX_LOSS:
        return [
            f"nDCG@10 goes from {old:.4f} to {new:.4f}; the 2.5th percentile of the difference is "
            f"{lower:+.4f}, under the limit of {-MAX_LOSS:+.4f}; keep the old generation, or label more "
            "anchors if the interval is wide"
        ]
    return []


def _anchor_reasons(*, usable: int, labelled: int) -> list[str]:
    if usable >= MIN_ANCHORS:
        return []
    return [
        f"{usable} of {labelled} labelled anchors are usable, fewer than {MIN_ANCHORS}: each compared generation must "
        "have the anchor and two companies labelled with different grades; label more companies of this corpus, or "
        "look at what changes (similarity generations drift OLD NEW) and decide without the gate: similarity "
        "generations promote NEW --without-gate"
    ]


def _count_reasons(index: CompanyIndex, *, old: str, new: str) -> list[str]:
    """Return one reason if the numbers of companies differ, and one if the numbers of tombstones differ."""
    old_stats, new_stats = index.stats(old), index.stats(new)
    excess = {
        "companies": new_stats.companies - old_stats.companies,
        "tombstones": new_stats.deleted - old_stats.deleted,
    }
    if any(excess.values()):
        lasting = _lasting_differences(index, old=old, new=new)
        excess = excess if lasting is None else _excess_of_new(index, lasting, old=old, new=new)
    # The message does not show the counts of the generations: they include writes in progress, the excess does not.
    return [
        f"{kind}: {new} has {abs(count):,} {'more' if count > 0 else 'fewer'} than {old}, and writes in progress do "
        "not explain the difference; run the re-embed again, then the gate"
        for kind, count in excess.items()
        if count
    ]


def _lasting_differences(index: CompanyIndex, *, old: str, new: str) -> set[Difference] | None:
    """Return the documents that differ in every comparison.

    If more documents differ than can be in flight, return None after the first comparison.
    """
    lasting = set(islice(differences(index.versions(old), index.versions(new)), MAX_IN_FLIGHT_DOCUMENTS + 1))
    if len(lasting) > MAX_IN_FLIGHT_DOCUMENTS:
        return None
    for delay in RECHECK_DELAYS_SECONDS:
        if not lasting:
            break
        time.sleep(delay)
        current = differences(index.versions(old), index.versions(new))
        lasting = {difference for difference in current if difference in lasting}
    return lasting


def _excess_of_new(index: CompanyIndex, lasting: Collection[Difference], *, old: str, new: str) -> dict[str, int]:
    """Return how many more companies and tombstones `new` has than `old` among the documents that differ."""
    old_ids = [difference.id for difference in lasting if difference.old is not None]
    new_ids = [difference.id for difference in lasting if difference.new is not None]
    # `stored_documents` returns no tombstones.
    companies = len(stored_documents(index, new, new_ids)) - len(stored_documents(index, old, old_ids))
    return {"companies": companies, "tombstones": len(new_ids) - len(old_ids) - companies}


def _valid_vectors(index: CompanyIndex, name: str, ids: Collection[str]) -> tuple[dict[str, Vector], list[str]]:
    """Return the valid vectors of these companies in generation `name`, by id, and a reason if others are invalid."""
    generation = generation_named(index, name)
    stored = stored_documents(index, name, ids)
    documents = {company: document for company, document in stored.items() if document.has_vector}
    problems = {
        company: problem for company in sorted(documents) if (problem := _problem(generation, documents[company]))
    }
    vectors = {company: document.vector for company, document in documents.items() if company not in problems}
    return vectors, [
        f"{len(problems):,} of {len(documents):,} labelled companies in {name} have an invalid vector, for "
        f"example {company}: {problem}; embed the corpus again"
        for company, problem in list(problems.items())[:1]
    ]


def _problem(generation: Generation, document: EmbeddedCompany) -> str:
    if document.encoder_id != generation.encoder_id:
        return f"it is of encoder {document.encoder_id}, not {generation.encoder_id}"
    return vector_problem(document.vector, dimension=generation.dimension)
