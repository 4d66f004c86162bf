"""Converts verdicts to pairs for training, which have a label if all users agree.

Only the latest verdict of a user on an unordered pair is valid; a user whose verdict is `withdrawn` has not judged
the pair. If all users agree on a pair, it is labelled; if they disagree, or one is unsure, it is exported without a
label, because a model cannot learn a pair on which people disagree.

A pair becomes one row with both texts (`text_record`: enough for training) or with both ids (`id_record`: for use
with a file of the companies).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from similarity.feedback.protocol import FeedbackEvent, Pair, Verdict

Label: TypeAlias = Literal["positive", "negative", ""]
"""The label in a file of pairs; empty: unlabelled."""

LatestVerdicts: TypeAlias = Mapping[Pair, Mapping[str, FeedbackEvent]]
"""The latest event of each user, by pair and user, without withdrawn verdicts; pairs without any event are left out."""

LABELS: Mapping[Verdict, Label] = {Verdict.COMPETITOR: "positive", Verdict.NOT_COMPETITOR: "negative"}
# Not named company_a and company_b: from columns of those names, training reads ids and ignores the texts.
TEXT_COLUMNS = ("text_a", "text_b", "label", "anchor_id", "hit_id", "users", "judged_at")
ID_COLUMNS = ("company_a", "company_b", "label", "users", "judged_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """Two companies that `users` people have judged. `anchor` and `hit`: as in the newest verdict.

    `label` is empty if the users disagree or one of them is unsure.
    """

    anchor: str
    hit: str
    label: Label
    users: int
    judged_at: datetime


def latest_verdicts(newest_first: Iterable[FeedbackEvent]) -> LatestVerdicts:
    """Return the valid events among `newest_first`, the result of `Workspace.events`."""
    latest: dict[Pair, dict[str, FeedbackEvent]] = defaultdict(dict)
    for event in newest_first:
        latest[event.pair].setdefault(event.user, event)
    standing = {pair: _not_withdrawn(by_user) for pair, by_user in latest.items()}
    return {pair: by_user for pair, by_user in standing.items() if by_user}


def judged_pairs(verdicts: LatestVerdicts) -> list[JudgedPair]:
    """Return one row per pair of `verdicts`, by anchor and hit."""
    rows = [_judged_pair(list(by_user.values())) for by_user in verdicts.values()]
    return sorted(rows, key=lambda row: (row.anchor, row.hit))


def label_of(verdicts: Iterable[Verdict]) -> Label:
    """Return the label for the verdicts of different users on one pair."""
    distinct = set(verdicts)
    return LABELS.get(distinct.pop(), "") if len(distinct) == 1 else ""


def with_consistent_texts(rows: Sequence[JudgedPair], texts: Mapping[str, str]) -> list[JudgedPair]:
    """Return the rows whose companies are both in `texts` (company id -> text, or its hash), with consistent labels.

    An encoder reads texts, not ids. Rows of the same two texts with different labels lose their label, because training
    would refuse the file. A row of two equal texts loses it too, because an encoder cannot distinguish them.
    """
    known = [row for row in rows if row.anchor in texts and row.hit in texts]
    labels: dict[frozenset[str], set[Label]] = defaultdict(set)
    for row in known:
        labels[_texts_of(row, texts)].add(row.label)
    return [
        row if len(sides := _texts_of(row, texts)) == 2 and len(labels[sides] - {""}) == 1 else replace(row, label="")
        for row in known
    ]


def text_record(row: JudgedPair, texts: Mapping[str, str]) -> dict[str, str | int]:
    """Return a row of `TEXT_COLUMNS`; `texts`: prepared texts by company id."""
    return {
        "text_a": texts[row.anchor],
        "text_b": texts[row.hit],
        "label": row.label,
        "anchor_id": row.anchor,
        "hit_id": row.hit,
        "users": row.users,
        "judged_at": row.judged_at.isoformat(),
    }


def id_record(row: JudgedPair) -> dict[str, str | int]:
    """Return a row of `ID_COLUMNS`."""
    return {
        "company_a": row.anchor,
        "company_b": row.hit,
        "label": row.label,
        "users": row.users,
        "judged_at": row.judged_at.isoformat(),
    }


def _not_withdrawn(by_user: Mapping[str, FeedbackEvent]) -> dict[str, FeedbackEvent]:
    return {user: event for user, event in by_user.items() if event.verdict is not Verdict.WITHDRAWN}


def _judged_pair(events: Sequence[FeedbackEvent]) -> JudgedPair:
    newest = max(events, key=lambda event: event.place)
    return JudgedPair(
        anchor=newest.anchor,
        hit=newest.hit,
        label=label_of(event.verdict for event in events),
        users=len(events),
        judged_at=newest.at,
    )


def _texts_of(row: JudgedPair, texts: Mapping[str, str]) -> frozenset[str]:
    return frozenset((texts[row.anchor], texts[row.hit]))
