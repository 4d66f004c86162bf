"""Filters on the country by any spelling: `country=USA` also finds companies in "United States"."""

from collections.abc import Sequence
from dataclasses import replace

from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex
from similarity.search.countries import country_code, spellings


def with_countries(index: CompanyIndex, generation: str, filters: Sequence[FieldFilter]) -> list[FieldFilter]:
    """Return the filters, with each country replaced by those of its spellings that companies of `generation` have.

    A value that is no country, or that no company has in any spelling, stays as it is. All values are looked up at
    once: one search may have thousands.
    """
    values = {value for each in filters if each.field == "country" for value in (*each.any_of, *each.none_of)}
    codes = {value: country_code(value) for value in values}
    one_of_each = {code: value for value, code in codes.items() if code}
    looked_up = [*values, *(spelling for value in one_of_each.values() for spelling in spellings(value))]
    held: dict[str, list[str]] = {}
    for value in index.field_values(generation, "country", looked_up) if one_of_each else []:
        if code := country_code(value):
            held.setdefault(code, []).append(value)

    def spelt(values: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for value in values for name in held.get(codes[value], [value])))

    return [
        replace(each, any_of=spelt(each.any_of), none_of=spelt(each.none_of)) if each.field == "country" else each
        for each in filters
    ]
