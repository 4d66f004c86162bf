"""The difference between two generations: a merge of their two streams of versions, in constant memory."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from similarity.index.protocol import CompanyIndex, DocumentVersion
from similarity.index.validation import lagging_behind

POLL_SECONDS = 0.2
IDS_SHOWN = 10
MAX_IN_FLIGHT_DOCUMENTS = 50_000
"""Upper limit of the documents in flight between two generations. If more are missing, the generation is behind."""
_END = DocumentVersion(id="\x7f", version=-1)  # sorts after every id


class Difference(NamedTuple):
    """A document with different versions in two generations; None if a generation lacks it."""

    id: str
    old: int | None
    new: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The number of documents that a generation lacks or holds in an older version, and the first of their ids."""

    count: int
    ids: tuple[str, ...]


def differences(old: Iterable[list[DocumentVersion]], new: Iterable[list[DocumentVersion]]) -> Iterator[Difference]:
    """Return the documents whose versions differ, by ascending id.

    `old` and `new` are batches sorted by id; the first item is read from `old` (see `lagging`). Tombstones are
    documents.
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
    that stays behind during the call is always in the result.
    """
    # `behind` is read first: a document that is written between the two reads then seems to be missing, and is checked
    # again by the caller.
    found = differences(index.versions(behind, after=after), index.versions(ahead, after=after))
    return (
        DocumentVersion(id=each.id, version=each.new)
        for each in found
        if each.new is not None and (each.old is None or each.old < each.new)
    )


def persistent_lag(index: CompanyIndex, *, ahead: str, behind: str, wait: float) -> Lag:
    """Return the number and the first ids of the documents that are behind now and still behind after `wait` seconds.

    A document is behind if `behind` lacks it or holds an older version. Writers write one generation after the other,
    so a batch in flight is behind in one of them for a moment. Returns as soon as no document is behind, and
    immediately if more are behind than can be in flight.
    """
    differing = lagging(index, ahead=ahead, behind=behind)
    lacking = {document.id: document.version for document in islice(differing, MAX_IN_FLIGHT_DOCUMENTS)}
    over_limit = sum(1 for _ in differing)
    give_up = time.monotonic() + wait
    while lacking and not over_limit and (left := give_up - time.monotonic()) > 0:
        time.sleep(min(POLL_SECONDS, left))
        held = index.stored_versions(behind, lacking)
        lacking = {company_id: version for company_id, version in lacking.items() if held.get(company_id, -1) < version}
    return Lag(count=len(lacking) + over_limit, ids=tuple(islice(lacking, IDS_SHOWN)))


def refuse_lagging(index: CompanyIndex, *, live: str, target: str, wait: float) -> None:
    """Raise GenerationConflict if `target` lacks documents of `live`, or holds older versions, after `wait` seconds."""
    lag = persistent_lag(index, ahead=live, behind=target, wait=wait)
    if lag.count:
        raise lagging_behind(target, live, lag.count, lag.ids)
