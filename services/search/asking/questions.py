"""Understanding a question: whom it is about, what it leaves out, and the vector to look for."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from services.search.asking.question_schemas import BatchQuestion, Negative
from services.search.asking.ranking_schemas import Role
from services.search.asking.references import References
from services.search.asking.text_vectors import TextVectors
from services.search.wire.problems import Problem
from similarity.anchors import anchor_vector
from similarity.company import EmbeddedCompany, Vector

SUGGESTED_FOR = 20
SAME_RANKING = {"anchors", "negatives", "filters", "exclude", "mode", "min_probability"}
"""The members of a question that decide its ranking; the others only decide how it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """An anchor or a negative: a company, or (`company` is None) the words that were asked, with its vector."""

    asked: str
    weight: float
    company: EmbeddedCompany | None
    vector: Vector


@dataclass(frozen=True, slots=True)
class Missed:
    """What the question named and why nobody can tell whom it means."""

    asked: str
    role: Role
    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """All of a question that names companies. Each name is in `anchors`, `negatives`, the excluded ones or `misses`.

    `exclude` are ids: what was asked to be left out, and the anchors and negatives themselves.
    `vector` is what to look for: the only anchor's own, or the mean of several less the negatives.
    """

    anchors: tuple[Understood, ...]
    negatives: tuple[Understood, ...]
    exclude: frozenset[str]
    misses: tuple[Missed, ...]
    vector: Vector

    @property
    def is_plain(self) -> bool:
        """Whether the vector is that of one anchor as it is."""
        return len(self.anchors) == 1 and not self.negatives

    @property
    def anchor_companies(self) -> list[EmbeddedCompany]:
        """The anchors that are companies."""
        return [anchor.company for anchor in self.anchors if anchor.company is not None]


def understand(question: BatchQuestion, references: References, texts: TextVectors) -> Understanding:
    """What `question` means in the generation of `references`.

    Raises:
        Problem: it names no anchor that is known, or has free words and the encoder is not loaded.
        InvalidInput: its anchors and negatives cancel out.
    """
    named = [each.company for each in (*question.anchors, *question.negatives) if each.company is not None]
    known = references.companies([*named, *question.exclude], suggest=SUGGESTED_FOR)
    words = [each.text for each in (*question.anchors, *question.negatives) if each.text is not None]
    vectors = texts.of(words, references.generation)
    misses: list[Missed] = []

    def tell(asked: Sequence[Negative], role: Role) -> tuple[Understood, ...]:
        return tuple(
            understood for each in asked if (understood := _understood(each, role, known, vectors, misses)) is not None
        )

    anchors = tell(question.anchors, "anchor")
    if not anchors:
        raise _nobody_left(misses)
    negatives = tell(question.negatives, "negative")
    excluded = {each: known[each] for each in question.exclude}
    misses += [Missed(each, "exclude", meant) for each, meant in excluded.items() if isinstance(meant, Problem)]
    left_out = (*excluded.values(), *(each.company for each in (*anchors, *negatives)))
    return Understanding(
        anchors=anchors,
        negatives=negatives,
        exclude=frozenset(each.id for each in left_out if isinstance(each, EmbeddedCompany)),
        misses=tuple(misses),
        vector=anchor_vector(
            [anchor.vector for anchor in anchors],
            weights=[anchor.weight for anchor in anchors],
            negatives=[negative.vector for negative in negatives],
        ),
    )


def digest_of(question: BatchQuestion) -> str:
    """Equal for questions with the same ranking."""
    told = question.model_dump(include=SAME_RANKING)
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]


def words_of(understanding: Understanding) -> str:
    """What a hybrid search looks for: the words of the first anchor."""
    first = understanding.anchors[0]
    return first.asked if first.company is None else first.company.company.description


def _understood(
    asked: Negative,
    role: Role,
    known: dict[str, EmbeddedCompany | Problem],
    vectors: dict[str, Vector],
    misses: list[Missed],
) -> Understood | None:
    weight = getattr(asked, "weight", 1.0)
    if asked.company is None:
        return Understood(asked=asked.asked, weight=weight, company=None, vector=vectors[asked.asked])
    company = known[asked.company]
    if isinstance(company, Problem):
        misses.append(Missed(asked.company, role, company))
        return None
    return Understood(asked=asked.company, weight=weight, company=company, vector=company.vector)


def _nobody_left(misses: Sequence[Missed]) -> Problem:
    """The first anchor's problem; its detail says what is wrong with the others too."""
    first = misses[0].problem
    return Problem(first.kind, "; ".join(dict.fromkeys(miss.problem.detail for miss in misses)), **first.extras)
