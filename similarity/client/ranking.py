"""Answers to questions for competitors. All are frozen; members that a newer service adds are left out."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

from similarity.company import AttributeValue, Company


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyReference:
    """Just enough of a company to choose it."""

    id: str
    name: str = ""
    domain: str = ""
    country: str = ""
    industry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyRecord(CompanyReference):
    """What a company says about itself. Unknown texts are empty, and so is what was not asked for (`fields`)."""

    description: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    def as_company(self) -> Company:
        """The same as the library's own record, as `put` takes it. Raises InvalidCompany if something is lacking."""
        return Company(**{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model whose vectors were compared: those of one `encoder_id` are comparable."""

    encoder_id: str
    bundle_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAnchor:
    """An anchor or a negative as the service understood it; `company` is None where it was a text.

    `redirected_from` is the domain, name or alias that was asked for, where that is not the id;
    `duplicates` are ids that would have been hits but are the same company.
    """

    asked: str = ""
    company: CompanyRecord | None = None
    text: str | None = None
    weight: float = 1.0
    redirected_from: str | None = None
    language: str = "und"
    warning: str | None = None
    updated_at: datetime | None = None
    embedded_at: datetime | None = None
    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Something asked for that was not found: its `role` in the question, the `problem` and companies alike."""

    asked: str
    role: str
    problem: str
    detail: str = ""
    suggestions: tuple[CompanyReference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFact:
    """Values of `field` that a hit has in common with the anchors."""

    field: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """Words that carry a match: without them the cosine of the pair falls by `weight`.

    They stand in the description of the `hit` or of an `anchor` (`of`; `anchor` is its position in the
    question), from character `start` to before `end`.
    """

    text: str
    of: str
    weight: float
    start: int = 0
    end: int = 0
    anchor: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a company is a hit; `phrases` is None where they were not looked for."""

    shared: tuple[SharedFact, ...] = ()
    phrases: tuple[Phrase, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One competitor. `duplicates` are ids of the same company under other ids, folded into this hit."""

    rank: int
    score: float
    company: CompanyRecord
    probability: float | None = None
    reason: Reason = Reason()
    duplicates: tuple[str, ...] = ()
    language: str = "und"
    warning: str | None = None
    updated_at: datetime | None = None
    embedded_at: datetime | None = None
    new: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Competitors, nearest first, all from one `generation`.

    `misses` are anchors, negatives and exclusions that named no company. `next_cursor` is for the hits
    that follow. Where `approximate` is true, some nearer ones may be missing.
    """

    hits: tuple[Hit, ...]
    generation: str
    model: Model
    anchors: tuple[AskedAnchor, ...] = ()
    negatives: tuple[AskedAnchor, ...] = ()
    misses: tuple[Miss, ...] = ()
    next_cursor: str | None = None
    approximate: bool = False
    warnings: tuple[str, ...] = ()
    took_ms: float = 0.0
