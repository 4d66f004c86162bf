"""The rankings that the service returns, as frozen records; members that a newer service adds are ignored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

from similarity.company import AttributeValue, Company


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyReference:
    """The fields of a company that are needed to choose it from a list."""

    id: str
    name: str = ""
    domain: str = ""
    country: str = ""
    industry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyRecord(CompanyReference):
    """The fields of a company. Unknown texts are empty, and so are fields that were not requested (`fields`)."""

    description: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    def as_company(self) -> Company:
        """Return a `Company` with these fields, for `put`. Raises InvalidCompany if a required field is empty."""
        return Company(**{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model whose vectors were compared. Vectors are comparable if their `encoder_id` is equal."""

    encoder_id: str
    bundle_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A line of business in a company's description: `number` is for `Anchor.segment`."""

    number: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAnchor:
    """An anchor or a negative as the service resolved it; `company` is None for free text.

    `redirected_from`: the requested domain or name; None if the id was requested. `confidence`: measured share of
    right companies among those found in this way. `duplicates`: ids of the same company, which are therefore not hits.
    """

    asked: str = ""
    company: CompanyRecord | None = None
    text: str | None = None
    segment: Segment | None = None
    weight: float = 1.0
    redirected_from: str | None = None
    confidence: float = 1.0
    language: str = "und"
    warning: str | None = None
    updated_at: datetime | None = None
    embedded_at: datetime | None = None
    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A reference that no company or several match, or with too few words: its `role` in the query, and the `problem`.

    `suggestions` are companies with similar names.
    """

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
class RankFact:
    """A fact (`industry`, `size`, `country`) that moved a hit by `effect`, in log-odds of being a competitor."""

    field: str
    relation: str
    effect: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A phrase that explains a hit: without it the cosine of hit and anchor falls by `weight`.

    It is at characters `[start, end)` in the description of the `hit` or of an `anchor` (`of`). `anchor`: the
    anchor's position in the query.
    """

    text: str
    of: str
    weight: float
    start: int = 0
    end: int = 0
    anchor: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a company is a hit; `phrases` is None if they were not computed."""

    shared: tuple[SharedFact, ...] = ()
    moved: tuple[RankFact, ...] = ()
    phrases: tuple[Phrase, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One competitor. `duplicates` are other ids of the same company, merged into this hit."""

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
    """Competitors in the order of `rank`, all from one `generation`.

    `misses`: references that match no company or several, or have too few words. `next_cursor`: for the next page; None
    on the last page. `approximate`: if true, some nearer companies may be missing.
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
