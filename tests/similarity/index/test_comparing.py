from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from similarity.index.comparing import newer
from similarity.index.protocol import DocumentVersion

IDS = st.text(alphabet="abAB.:-_09", min_size=1, max_size=2)
VERSIONS = st.dictionaries(IDS, st.integers(0, 3), max_size=12)


def pages(versions: dict[str, int], size: int) -> Iterator[list[DocumentVersion]]:
    """As an index streams them; an empty page at the end must not matter."""
    stream = [DocumentVersion(id=company_id, version=versions[company_id]) for company_id in sorted(versions)]
    for start in range(0, len(stream) + 1, size):
        yield stream[start : start + size]


@given(ahead=VERSIONS, behind=VERSIONS, size=st.integers(1, 5))
def test_what_is_newer_is_those_that_two_dicts_tell(ahead: dict[str, int], behind: dict[str, int], size: int) -> None:
    expected = sorted(each for each, version in ahead.items() if behind.get(each, -1) < version)
    assert [version.id for version in newer(pages(ahead, size), pages(behind, 6 - size))] == expected


def test_pages_are_read_only_as_far_as_they_are_needed() -> None:
    def endless() -> Iterator[list[DocumentVersion]]:
        number = 0
        while True:
            yield [DocumentVersion(id=f"{number:06}", version=1)]
            number += 1

    found = newer(endless(), [[DocumentVersion(id="000001", version=1)]])
    assert [next(found).id, next(found).id] == ["000000", "000002"]
