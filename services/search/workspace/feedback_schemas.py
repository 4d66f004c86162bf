"""Requests and responses of feedback."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from similarity.company import MAX_NAME_CHARACTERS
from similarity.feedback.protocol import MAX_NOTE_CHARACTERS, MAX_USER_CHARACTERS, Verdict

from ..asking.schemas import Source
from ..wire.bodies import Closed, CompanyId, example
from ..wire.problem_documents import CompanyReference

DEEPEST_RANK = 1_000
MAX_EVENTS = 500
MAX_SUGGESTIONS = 100


def _whole(value: object) -> object:
    """JSON has one number type: 3.0 is a valid rank, but "3" and true are not."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Reference = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_NAME_CHARACTERS),
    Field(description="A company's id, domain, name or alias.", examples=["nike"]),
]
Rank = Annotated[int, Field(strict=True, ge=1, le=DEEPEST_RANK), BeforeValidator(_whole)]
Score = Annotated[float, Field(strict=True, ge=-1, le=1, allow_inf_nan=False)]
Probability = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
ModelName = Annotated[str, StringConstraints(max_length=64)]
User = Annotated[str, StringConstraints(min_length=1, max_length=MAX_USER_CHARACTERS)]


class FeedbackGiven(Closed):
    """One verdict, with the rank and scores that its author saw."""

    model_config = example(anchor="nike", hit="adidas", verdict="competitor", rank=1)

    id: CompanyId | None = Field(
        default=None,
        description="A new id for each verdict, which makes it safe to send again. By default the service makes one.",
        examples=["2026-01-31T12:00:00.123-nike-adidas"],
    )
    anchor: Reference
    hit: Reference
    verdict: Verdict = Field(
        description="`unsure`: the pair gets no label. `withdrawn`: your earlier verdict on the pair is void.",
        examples=["competitor", "not_competitor"],
    )
    rank: Rank | None = None
    score: Score | None = None
    probability: Probability | None = None
    generation: ModelName = Field(default="", description="`generation` of the answer that was judged.")
    bundle_id: ModelName = Field(default="", description="`model.bundle_id` of the answer that was judged.")
    note: Annotated[str, StringConstraints(max_length=MAX_NOTE_CHARACTERS)] = Field(
        default="", description="The reason, for people; no model reads it."
    )


class FeedbackRecord(BaseModel):
    """One stored event. Events are append-only; the latest of a user and a pair counts, unless it is `withdrawn`."""

    id: str = Field(examples=["8c2f1d"])
    user: str = Field(description="The user who judged: the name of their key.", examples=["ann"])
    at: datetime = Field(description="The time at which the service received it (UTC).")
    anchor: str = Field(description="The company's id, even if the request had a name.", examples=["nike"])
    hit: str = Field(examples=["adidas"])
    verdict: Verdict
    rank: int | None
    score: float | None
    probability: float | None
    generation: str
    bundle_id: str
    note: str


class FeedbackQuery(Closed):
    """The parameters of a request for feedback."""

    anchor: Reference | None = Field(default=None, description="Only pairs with this company.")
    who: Literal["mine", "all"] = Field(default="mine", description="Whose `verdicts`: your own, or all users'.")
    user: User | None = Field(default=None, description="Only this user's `events`.")
    limit: int = Field(default=100, ge=1, le=MAX_EVENTS, description="Maximum number of `events`.")
    cursor: Annotated[str, StringConstraints(max_length=1_000)] | None = Field(
        default=None, description="`next_cursor` of the page of events before."
    )


class VerdictRecord(BaseModel):
    """The valid verdict of one user on the pair of the anchor and another company."""

    hit: str = Field(description="The other company's id.", examples=["adidas"])
    verdict: Verdict
    user: str = Field(examples=["ann"])
    at: datetime
    note: str = Field(description="The reason that the user gave; empty if none.")


class Feedback(BaseModel):
    """Valid verdicts, and the history of events."""

    anchor: str | None = Field(description="The company's id; null without `anchor` in the request.", examples=["nike"])
    verdicts: list[VerdictRecord] = Field(
        description="The latest verdict of each user on pairs with `anchor`, newest first, without withdrawn ones."
    )
    events: list[FeedbackRecord] = Field(description="The history of all users, newest first.")
    next_cursor: str | None = Field(default=None, description="The `cursor` of the next page; null on the last.")


class PairsQuery(Closed):
    """The parameters of an export of labelled pairs."""

    format: Literal["jsonl", "csv"] | None = Field(
        default=None,
        description="`jsonl` for training. `csv` for people: cells that a spreadsheet would run begin with an "
        "apostrophe. By default the `Accept` header decides; else `jsonl`.",
    )
    sides: Literal["texts", "ids"] = Field(
        default="texts",
        description="`texts`: both texts as the encoder reads them, enough for training. `ids`: both company ids.",
    )


class NextQuery(Closed):
    """The parameters of a request for suggestions."""

    k: int = Field(default=10, ge=1, le=MAX_SUGGESTIONS, description="Maximum number of pairs.")
    anchor: Reference | None = Field(
        default=None, description="Only its neighbours; by default those of the companies judged or saved last."
    )


class SuggestionRecord(BaseModel):
    """A pair to judge, and the reasons to judge it."""

    anchor: CompanyReference
    hit: CompanyReference
    worth: float = Field(description="0 to 1: the mean of uncertainty and disagreement.", examples=[0.62])
    why: list[str] = Field(
        description="At least one reason.", examples=[["uncertain: a competitor with probability 0.52"]]
    )
    score: float = Field(description="Cosine of the two descriptions' vectors.", examples=[0.61])
    probability: float | None = Field(description="null if the live generation has no calibration.", examples=[0.52])
    cosine_rank: int | None = Field(description="Rank with `rank=cosine`; null if below `depth`.")
    business_rank: int | None = Field(description="Rank with `rank=business`; null if below `depth`.")


class Suggestions(Source):
    """Pairs to judge next, the most useful first. Send `generation` and `model.bundle_id` with a verdict."""

    pairs: list[SuggestionRecord]
    anchors: list[str] = Field(description="Ids of the companies whose neighbours were considered.")
    depth: int = Field(description="Number of neighbours that were considered for each.")
    note: str | None = Field(default=None, description="If there are no suggestions: the reason, and what to do.")
