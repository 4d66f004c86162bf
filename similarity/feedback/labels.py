"""From verdicts to labelled pairs that `training` reads.

Of one user and one unordered pair the latest verdict counts; where that is `withdrawn`, the user counts
as one who never judged the pair. Where all who judged a pair agree, it is labelled; where they do not, or
somebody is unsure, it is exported without a label: what two people cannot agree on, no model learns.

A pair becomes one row with both texts (`text_record`: training needs nothing else) or with both ids
(`id_record`: together with other files of ids, and a file of the companies).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from similarity.feedback.protocol import FeedbackEvent, Pair, Verdict

Label: TypeAlias = Literal["positive", "negative", ""]
"""As a pairs file has it; empty: unlabelled."""

LatestVerdicts: TypeAlias = Mapping[Pair, Mapping[str, FeedbackEvent]]
"""What counts: pair -> user -> event; no pair without a user, and no event that withdraws."""

LABELS: Mapping[Verdict, Label] = {Verdict.COMPETITOR: "positive", Verdict.NOT_COMPETITOR: "negative"}
# With texts the names must not be those that pair files give to columns of ids, or ids are what is read.
TEXT_COLUMNS = ("text_a", "text_b", "label", "anchor_id", "hit_id", "users", "judged_at")
ID_COLUMNS = ("company_a", "company_b", "label", "users", "judged_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """What `users` people say together of two companies. `anchor` and `hit` are those of the newest verdict."""

    anchor: str
    hit: str
    label: Label
    users: int
    judged_at: datetime


def latest_verdicts(newest_first: Iterable[FeedbackEvent]) -> LatestVerdicts:
    """The events that count, of `newest_first` as `Workspace.events` gives them."""
    latest: dict[Pair, dict[str, FeedbackEvent]] = defaultdict(dict)
    for event in newest_first:
        latest[event.pair].setdefault(event.user, event)
    standing = {pair: _not_withdrawn(by_user) for pair, by_user in latest.items()}
    return {pair: by_user for pair, by_user in standing.items() if by_user}


def labelled_pairs(verdicts: LatestVerdicts) -> list[LabelledPair]:
    """One row per pair of `verdicts`, by anchor and hit."""
    rows = [_labelled_pair(list(by_user.values())) for by_user in verdicts.values()]
    return sorted(rows, key=lambda row: (row.anchor, row.hit))


def label_of(verdicts: Iterable[Verdict]) -> Label:
    """The label that these verdicts of different users make together."""
    said = set(verdicts)
    return LABELS.get(said.pop(), "") if len(said) == 1 else ""


def with_consistent_texts(rows: Sequence[LabelledPair], texts: Mapping[str, str]) -> list[LabelledPair]:
    """The rows whose companies are both in `texts` (company id -> text, or a hash of it), by what is read.

    An encoder sees texts, not ids. Where the same two texts were labelled differently under different
    ids, those rows lose their label: `training` would refuse the file. So do pairs of one and the
    same text: no encoder can tell these two companies apart.
    """
    known = [row for row in rows if row.anchor in texts and row.hit in texts]
    labels: dict[frozenset[str], set[Label]] = defaultdict(set)
    for row in known:
        labels[_texts_of(row, texts)].add(row.label)
    return [
        row if len(sides := _texts_of(row, texts)) == 2 and len(labels[sides] - {""}) == 1 else replace(row, label="")
        for row in known
    ]


def text_record(row: LabelledPair, texts: Mapping[str, str]) -> dict[str, str | int]:
    """A row of `TEXT_COLUMNS`; `texts` by company id, prepared as the encoder reads them."""
    return {
        "text_a": texts[row.anchor],
        "text_b": texts[row.hit],
        "label": row.label,
        "anchor_id": row.anchor,
        "hit_id": row.hit,
        "users": row.users,
        "judged_at": row.judged_at.isoformat(),
    }


def id_record(row: LabelledPair) -> dict[str, str | int]:
    """A row of `ID_COLUMNS`."""
    return {
        "company_a": row.anchor,
        "company_b": row.hit,
        "label": row.label,
        "users": row.users,
        "judged_at": row.judged_at.isoformat(),
    }


def _not_withdrawn(by_user: Mapping[str, FeedbackEvent]) -> dict[str, FeedbackEvent]:
    return {user: event for user, event in by_user.items() if event.verdict is not Verdict.WITHDRAWN}


def _labelled_pair(events: Sequence[FeedbackEvent]) -> LabelledPair:
    newest = max(events, key=lambda event: event.place)
    return LabelledPair(
        anchor=newest.anchor,
        hit=newest.hit,
        label=label_of(event.verdict for event in events),
        users=len(events),
        judged_at=newest.at,
    )


def _texts_of(row: LabelledPair, texts: Mapping[str, str]) -> frozenset[str]:
    return frozenset((texts[row.anchor], texts[row.hit]))
