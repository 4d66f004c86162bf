"""What feedback takes and answers."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from similarity.company import ID_PATTERN, MAX_NAME_CHARACTERS
from similarity.feedback.protocol import MAX_NOTE_CHARACTERS, MAX_USER_CHARACTERS, Verdict

from ..asking.schemas import Source
from ..wire.problem_documents import CompanyReference

DEEPEST_RANK = 1_000
MAX_EVENTS = 500
MAX_SUGGESTIONS = 100


def _whole(value: object) -> object:
    """JSON knows one kind of number: 3.0 is a rank too, but "3" and true are none."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Reference = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_NAME_CHARACTERS),
    Field(description="A company's id; its domain, name or an alias will do as well.", examples=["nike"]),
]
Rank = Annotated[int, Field(strict=True, ge=1, le=DEEPEST_RANK), BeforeValidator(_whole)]
Score = Annotated[float, Field(strict=True, ge=-1, le=1, allow_inf_nan=False)]
Probability = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
ModelName = Annotated[str, StringConstraints(max_length=64)]
User = Annotated[str, StringConstraints(min_length=1, max_length=MAX_USER_CHARACTERS)]


class FeedbackGiven(BaseModel):
    """One verdict, with what its author was shown when they judged."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, StringConstraints(pattern=f"^{ID_PATTERN.pattern}$")] | None = Field(
        default=None,
        description="An id of your own, new for each verdict: the same event can then be sent again without harm. "
        "Without it the service makes one.",
        examples=["2026-01-31T12:00:00.123-nike-adidas"],
    )
    anchor: Reference
    hit: Reference
    verdict: Verdict = Field(
        description="`unsure`: it cannot be told, and the pair gets no label. `withdrawn`: what you said of the pair "
        "before is void, as if you had never judged it.",
        examples=["competitor", "not_competitor"],
    )
    rank: Rank | None = None
    score: Score | None = None
    probability: Probability | None = None
    generation: ModelName = Field(default="", description="`generation` of the answer that was judged.")
    bundle_id: ModelName = Field(default="", description="`model.bundle_id` of the answer that was judged.")
    note: Annotated[str, StringConstraints(max_length=MAX_NOTE_CHARACTERS)] = Field(
        default="", description="Why, for people; no model reads it."
    )


class FeedbackRecord(BaseModel):
    """One event as it is kept. Events are only ever added; of one user and one pair the latest counts,
    and none where that is `withdrawn`.
    """

    id: str = Field(examples=["8c2f1d"])
    user: str = Field(description="Who judged: the name of their key.", examples=["ann"])
    at: datetime = Field(description="When the service was told (UTC).")
    anchor: str = Field(description="The company's id, whatever it was called.", examples=["nike"])
    hit: str = Field(examples=["adidas"])
    verdict: Verdict
    rank: int | None
    score: float | None
    probability: float | None
    generation: str
    bundle_id: str
    note: str


class FeedbackQuery(BaseModel):
    """Which feedback to show."""

    model_config = ConfigDict(extra="forbid")

    anchor: Reference | None = Field(default=None, description="Only pairs with this company, on either side.")
    who: Literal["mine", "all"] = Field(default="mine", description="Whose `verdicts`: your own, or everybody's.")
    user: User | None = Field(default=None, description="Only this user's `events`.")
    limit: int = Field(default=100, ge=1, le=MAX_EVENTS, description="How many `events` at most.")
    cursor: Annotated[str, StringConstraints(max_length=1_000)] | None = Field(
        default=None, description="`next_cursor` of the page of events before."
    )


class VerdictRecord(BaseModel):
    """What one user says now of the anchor and another company, whichever of the two was asked about."""

    hit: str = Field(description="The other company's id.", examples=["adidas"])
    verdict: Verdict
    user: str = Field(examples=["ann"])
    at: datetime


class Feedback(BaseModel):
    """What was said, and what of it counts."""

    anchor: str | None = Field(description="The company's id; null if none was asked about.", examples=["nike"])
    verdicts: list[VerdictRecord] = Field(
        description="What counts for pairs with `anchor`: the latest verdict of each user and pair, newest first, "
        "without those withdrawn. Empty without an anchor."
    )
    events: list[FeedbackRecord] = Field(description="The history, newest first, everybody's.")
    next_cursor: str | None = Field(default=None, description="Ask for the next events with it; null on the last page.")


class PairsQuery(BaseModel):
    """How to export the labelled pairs."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["jsonl", "csv"] | None = Field(
        default=None,
        description="`jsonl` for training: exact. `csv` for people: a cell that a spreadsheet would run begins with "
        "an apostrophe. Without it, by the `Accept` header; else `jsonl`.",
    )
    sides: Literal["texts", "ids"] = Field(
        default="texts",
        description="`texts`: both texts as the encoder reads them, so that training needs no other file. "
        "`ids`: company ids, to train on together with other files of ids.",
    )


class NextQuery(BaseModel):
    """How many suggestions, and about whom."""

    model_config = ConfigDict(extra="forbid")

    k: int = Field(default=10, ge=1, le=MAX_SUGGESTIONS, description="How many pairs at most.")
    anchor: Reference | None = Field(
        default=None, description="Only this company's neighbours. Without it, those of companies judged or saved last."
    )


class SuggestionRecord(BaseModel):
    """A pair that is worth a verdict, and why."""

    anchor: CompanyReference
    hit: CompanyReference
    worth: float = Field(description="0 to 1: the mean of uncertainty and disagreement.", examples=[0.62])
    why: list[str] = Field(
        description="At least one reason.", examples=[["uncertain: a competitor with probability 0.52"]]
    )
    score: float = Field(description="Cosine of the two descriptions' vectors.", examples=[0.61])
    probability: float | None = Field(description="null if the live generation has no calibration.", examples=[0.52])
    vector_rank: int | None = Field(description="Rank by meaning; null if it is below all that were looked at.")
    hybrid_rank: int | None = Field(description="Rank when shared words count too.")


class Suggestions(Source):
    """What to judge next, most worthwhile first. Send `generation` and `model.bundle_id` with a verdict."""

    pairs: list[SuggestionRecord]
    anchors: list[str] = Field(description="Ids of the companies whose neighbours were looked at.")
    depth: int = Field(description="How deep their rankings were read.")
    note: str | None = Field(default=None, description="Why there are none, and what to do.")
