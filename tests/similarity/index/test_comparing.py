from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from similarity.index.comparing import differences
from similarity.index.protocol import DocumentVersion

IDS = st.text(alphabet="abAB.:-_09", min_size=1, max_size=2)
VERSIONS = st.dictionaries(IDS, st.integers(0, 3), max_size=12)


def pages(versions: dict[str, int], size: int) -> Iterator[list[DocumentVersion]]:
    """As an index streams them; an empty page at the end must not matter."""
    stream = [DocumentVersion(id=company_id, version=versions[company_id]) for company_id in sorted(versions)]
    for start in range(0, len(stream) + 1, size):
        yield stream[start : start + size]


@given(old=VERSIONS, new=VERSIONS, size=st.integers(1, 5))
def test_the_differences_are_those_of_two_dicts(old: dict[str, int], new: dict[str, int], size: int) -> None:
    expected = [(each, old.get(each), new.get(each)) for each in sorted({*old, *new}) if old.get(each) != new.get(each)]
    assert list(differences(pages(old, size), pages(new, 6 - size))) == expected


def test_pages_are_read_only_as_far_as_they_are_needed() -> None:
    def endless() -> Iterator[list[DocumentVersion]]:
        number = 0
        while True:
            yield [DocumentVersion(id=f"{number:06}", version=1)]
            number += 1

    found = differences([[DocumentVersion(id="000001", version=1)]], endless())
    assert [next(found).id, next(found).id] == ["000000", "000002"]
