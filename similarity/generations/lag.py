"""What one generation lacks of another: a merge of their two streams of versions, in constant memory."""

from collections.abc import Iterator

from similarity.index.comparing import newer
from similarity.index.protocol import CompanyIndex, DocumentVersion


def lagging(index: CompanyIndex, *, ahead: str, behind: str, after: str = "") -> Iterator[str]:
    """Ids after `after`, ascending, whose version in generation `behind` is missing or below that in `ahead`.

    Tombstones count: a delete that `behind` has not heard of makes it lag. While others write, an id
    may appear that has caught up since; none is left out that lagged all the while.
    """
    return (document.id for document in lagging_versions(index, ahead=ahead, behind=behind, after=after))


def lagging_versions(index: CompanyIndex, *, ahead: str, behind: str, after: str = "") -> Iterator[DocumentVersion]:
    """The ids that `lagging` names, with their version in `ahead`."""
    # Read behind first: what is written between the two readings then seems to lag, and is looked at again.
    held = index.versions(behind, after=after)
    return newer(index.versions(ahead, after=after), held)
