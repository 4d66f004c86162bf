"""Filters on the country by any spelling: `country=USA` also finds companies in "United States"."""

from collections.abc import Sequence
from dataclasses import replace

from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex
from similarity.search.countries import spellings


def with_countries(index: CompanyIndex, generation: str, filters: Sequence[FieldFilter]) -> list[FieldFilter]:
    """Return the filters, with each country replaced by those of its spellings that companies of `generation` have.

    A value that is no country, or that no company has in any spelling, stays as it is.
    """

    def spelt(values: Sequence[str]) -> tuple[str, ...]:
        found: list[str] = []
        for value in values:
            same = spellings(value)
            found += (index.field_values(generation, "country", same) if same else []) or [value]
        return tuple(dict.fromkeys(found))

    return [
        replace(each, any_of=spelt(each.any_of), none_of=spelt(each.none_of)) if each.field == "country" else each
        for each in filters
    ]
