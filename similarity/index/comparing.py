"""The difference between two generations: a merge of their two streams of versions, in constant memory."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from similarity.index.protocol import CompanyIndex, DocumentVersion
from similarity.index.rules import lagging_behind

POLL_SECONDS = 0.2
IDS_SHOWN = 10
MAX_IN_FLIGHT_DOCUMENTS = 50_000
"""More documents than all writers together have in flight between two generations."""
_END = DocumentVersion(id="\x7f", version=-1)  # sorts after every id


class Difference(NamedTuple):
    """A document with different versions in two generations; None if a generation lacks it."""

    id: str
    old: int | None
    new: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How many documents a generation lacks, and the ids of the first of them."""

    count: int
    ids: tuple[str, ...]


def differences(old: Iterable[list[DocumentVersion]], new: Iterable[list[DocumentVersion]]) -> Iterator[Difference]:
    """Return the documents whose versions differ, by ascending id. Both are pages by ascending id; `old` is read first.

    Tombstones are documents.
    """
    olds, news = chain.from_iterable(old), chain.from_iterable(new)
    one, other = next(olds, _END), next(news, _END)
    while one is not _END or other is not _END:
        if one.id < other.id:
            yield Difference(one.id, one.version, None)
            one = next(olds, _END)
        elif other.id < one.id:
            yield Difference(other.id, None, other.version)
            other = next(news, _END)
        else:
            if one.version != other.version:
                yield Difference(one.id, one.version, other.version)
            one, other = next(olds, _END), next(news, _END)


def lagging(index: CompanyIndex, *, ahead: str, behind: str, after: str = "") -> Iterator[DocumentVersion]:
    """Return the documents of `ahead` that `behind` lacks or holds in an older version, by ascending id after `after`.

    Tombstones are documents too. While others write, the result may contain an id that is no longer behind; an id
    that is behind all the time is always in the result.
    """
    # `behind` is read first: a document that is written between the two reads then seems to be missing, and is checked
    # again by the caller.
    found = differences(index.versions(behind, after=after), index.versions(ahead, after=after))
    return (
        DocumentVersion(id=each.id, version=each.new)
        for each in found
        if each.new is not None and (each.old is None or each.old < each.new)
    )


def lag_that_stays(index: CompanyIndex, *, ahead: str, behind: str, wait: float) -> Lag:
    """Return the documents that `behind` lacks now and still lacks after `wait` seconds.

    Writers write one generation after the other, so a batch in flight is missing in one of them for a moment. Returns
    as soon as no document is missing, and immediately if more are missing than can be in flight.
    """
    differing = lagging(index, ahead=ahead, behind=behind)
    lacking = {document.id: document.version for document in islice(differing, MAX_IN_FLIGHT_DOCUMENTS)}
    others = sum(1 for _ in differing)
    give_up = time.monotonic() + wait
    while lacking and not others and (left := give_up - time.monotonic()) > 0:
        time.sleep(min(POLL_SECONDS, left))
        held = index.stored_versions(behind, lacking)
        lacking = {company_id: version for company_id, version in lacking.items() if held.get(company_id, -1) < version}
    return Lag(count=len(lacking) + others, ids=tuple(islice(lacking, IDS_SHOWN)))


def refuse_lagging(index: CompanyIndex, *, live: str, target: str, wait: float) -> None:
    """Raise GenerationConflict if `target` still lacks changes of `live` after `wait` seconds."""
    lag = lag_that_stays(index, ahead=live, behind=target, wait=wait)
    if lag.count:
        raise lagging_behind(target, live, lag.count, lag.ids)
