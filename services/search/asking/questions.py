"""Understanding a question: whom it is about, what it leaves out, and the vector to look for."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.search.asking.duplicates import SHARED_HOSTS
from services.search.asking.question_schemas import BatchQuestion, Negative
from services.search.asking.ranking_schemas import Role
from services.search.asking.references import CANDIDATES_SHOWN, References
from services.search.wire import problems
from services.search.wire.problems import CompanyReference, Problem
from similarity.anchors import anchor_vector
from similarity.company import EmbeddedCompany, Vector
from similarity.errors import InvalidInput
from similarity.matching import domain_of

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

    @property
    def meant(self) -> tuple[str, str]:
        """The same for whatever means the same: a company by any of its names, or the same words."""
        return ("text", self.asked) if self.company is None else ("company", self.company.id)


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
    `excluded` are the companies that were asked to be left out.
    `vector` is what to look for: the only anchor's own, or the mean of several less the negatives.
    """

    anchors: tuple[Understood, ...]
    negatives: tuple[Understood, ...]
    exclude: frozenset[str]
    excluded: tuple[EmbeddedCompany, ...]
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

    @property
    def negative_companies(self) -> list[EmbeddedCompany]:
        """The negatives that are companies."""
        return [negative.company for negative in self.negatives if negative.company is not None]


def understand(
    question: BatchQuestion, references: References, encode: Callable[[Sequence[str]], dict[str, Vector]]
) -> Understanding:
    """What `question` means in the generation of `references`; its free words, if it has any, go to `encode`.

    Raises:
        Problem: it names no anchor that is known, or has free words and the encoder is not loaded.
        InvalidInput: something is anchor and negative at once, or anchors and negatives cancel out.
    """
    named = [each.company for each in (*question.anchors, *question.negatives) if each.company is not None]
    known = references.companies([*named, *question.exclude], suggest=SUGGESTED_FOR)
    words = [each.text for each in (*question.anchors, *question.negatives) if each.text is not None]
    vectors = encode(words) if words else {}
    misses: list[Missed] = []

    def tell(asked: Sequence[Negative], role: Role) -> tuple[Understood, ...]:
        return tuple(
            understood for each in asked if (understood := _understood(each, role, known, vectors, misses)) is not None
        )

    anchors = tell(question.anchors, "anchor")
    if not anchors:
        raise _nobody_left(misses)
    negatives = tell(question.negatives, "negative")
    _refuse_both(anchors, negatives)
    meant = {each: known[each] for each in question.exclude}
    of_one_domain = {each: ids for each, problem in meant.items() if (ids := _ids_of_one_domain(each, problem))}
    misses += [
        Missed(each, "exclude", problem)
        for each, problem in meant.items()
        if isinstance(problem, Problem) and each not in of_one_domain
    ]
    excluded = tuple(each for each in meant.values() if isinstance(each, EmbeddedCompany))
    left_out = (*excluded, *(each.company for each in (*anchors, *negatives) if each.company is not None))
    return Understanding(
        anchors=anchors,
        negatives=negatives,
        exclude=frozenset(each.id for each in left_out).union(*of_one_domain.values()),
        excluded=excluded,
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


def _refuse_both(anchors: Sequence[Understood], negatives: Sequence[Understood]) -> None:
    """Raises InvalidInput if a company, under whichever names, or a text is to be near and far at once."""
    near = {anchor.meant: anchor.asked for anchor in anchors}
    for negative in negatives:
        if negative.meant in near:
            asked = near[negative.meant]
            also = "" if asked == negative.asked else f" (as {negative.asked!r})"
            raise InvalidInput(f"{asked!r} is an anchor and a negative{also} at once; leave it out of one of the two")


def _ids_of_one_domain(asked: str, meant: EmbeddedCompany | Problem) -> frozenset[str]:
    """The ids of an exclusion that is the domain of several: they are one company, and all of it is to be left out.

    None where it is clear, or where nobody can tell.
    """
    if not isinstance(meant, Problem) or meant.kind is not problems.CONTESTED_NAME:
        return frozenset()
    domain, candidates = domain_of(asked), meant.extras["candidates"]
    several = [each for each in candidates if isinstance(each, CompanyReference) and each.domain == domain]
    of_one = domain and domain not in SHARED_HOSTS and len(several) == len(candidates) < CANDIDATES_SHOWN
    return frozenset(each.id for each in several) if of_one else frozenset()


def _nobody_left(misses: Sequence[Missed]) -> Problem:
    """The first anchor's problem; its detail says what is wrong with the others too."""
    first = misses[0].problem
    return Problem(first.kind, "; ".join(dict.fromkeys(miss.problem.detail for miss in misses)), **first.extras)
