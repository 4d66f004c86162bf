"""A country is found by any spelling, and all values of all filters are looked up at once."""

from collections.abc import Collection
from typing import Any

from similarity.index.filters import FieldFilter
from similarity.search.queries.country_filters import with_countries


class Values:
    """An index that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def field_values(self, generation: str, field: str, among: Collection[str]) -> list[str]:
        self.asked += 1
        held = ("united states", "usa", "germany", "u.k.", "the netherlands", "kosovo", "european union", "turkiye")
        return [value for value in held if value in {each.casefold() for each in among}]


def test_values_become_the_spellings_that_companies_have_with_one_question_to_the_index() -> None:
    index: Any = Values()
    filters = [
        FieldFilter(field="country", any_of=("US", "Atlantis"), none_of=("Deutschland",)),
        FieldFilter(field="country", any_of=("U.S.A.", "France")),
        FieldFilter(field="tags", any_of=("US",)),
    ]
    first, second, tags = with_countries(index, "g", filters)
    assert (first.any_of, first.none_of) == (("united states", "usa", "Atlantis"), ("germany",))
    assert second.any_of == ("united states", "usa", "France")
    assert tags == filters[2]
    assert index.asked == 1
    [british] = with_countries(index, "g", [FieldFilter(field="country", any_of=("UK", "Holland"), none_of=("u.k.",))])
    assert (british.any_of, british.none_of) == (("u.k.", "the netherlands"), ("u.k.",))
    [turkish] = with_countries(index, "g", [FieldFilter(field="country", any_of=("Turkey",))])
    assert turkish.any_of == ("turkiye",)
    others = FieldFilter(field="country", any_of=("Kosovo", "Germany"), none_of=("European Union",))
    [kosovan] = with_countries(index, "g", [others])
    assert (kosovan.any_of, kosovan.none_of) == (("Kosovo", "germany"), ("European Union",))
    index.asked = 1
    with_countries(index, "g", [filters[2]])
    assert index.asked == 1
