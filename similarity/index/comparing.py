"""Which documents one generation has newer than another, from two streams of versions in order of ids."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from similarity.index.protocol import CompanyIndex, DocumentVersion
from similarity.index.rules import lagging_behind

LOOK_SECONDS = 0.2
IDS_SHOWN = 10
MOST_UNDER_WAY = 50_000
"""Documents: more than all writers together have between two generations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How many documents a generation lacks, and the first ids of them."""

    count: int
    ids: tuple[str, ...]


def newer(ahead: Iterable[list[DocumentVersion]], behind: Iterable[list[DocumentVersion]]) -> Iterator[DocumentVersion]:
    """What `ahead` holds and `behind` lacks or has older. Both are pages by ascending id; neither is held in memory."""
    others = (version for page in behind for version in page)
    other = next(others, None)
    for page in ahead:
        for version in page:
            while other is not None and other.id < version.id:
                other = next(others, None)
            if other is None or other.id != version.id or other.version < version.version:
                yield version


def lag_that_stays(index: CompanyIndex, *, ahead: str, behind: str, wait: float) -> Lag:
    """What generation `behind` lacks of generation `ahead` now, and still lacks after `wait` seconds.

    Writers write one generation after the other, so a write that is under way is missing in one of them
    for a moment. Returns as soon as nothing is missing, and at once if too much is.
    """
    differing = newer(index.versions(ahead), index.versions(behind))
    lacking = {document.id: document.version for document in islice(differing, MOST_UNDER_WAY)}
    others = sum(1 for _ in differing)
    give_up = time.monotonic() + wait
    while lacking and not others and (left := give_up - time.monotonic()) > 0:
        time.sleep(min(LOOK_SECONDS, left))
        held = index.stored_versions(behind, lacking)
        lacking = {company_id: version for company_id, version in lacking.items() if held.get(company_id, -1) < version}
    return Lag(count=len(lacking) + others, ids=tuple(islice(lacking, IDS_SHOWN)))


def refuse_lagging(index: CompanyIndex, *, live: str, target: str, wait: float) -> None:
    """Raises GenerationConflict if `target` still lacks changes of `live` after `wait` seconds."""
    lag = lag_that_stays(index, ahead=live, behind=target, wait=wait)
    if lag.count:
        raise lagging_behind(target, live, lag.count, lag.ids)
