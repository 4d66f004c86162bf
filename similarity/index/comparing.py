"""Which documents one generation has newer than another, from two streams of versions in order of ids."""

from collections.abc import Iterable, Iterator

from similarity.index.protocol import DocumentVersion


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
