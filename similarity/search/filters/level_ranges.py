"""Ranges of levels: `attributes.size>=large` for an attribute that is declared as an ordinal.

Stores compare only numbers in ranges, so a range of levels is replaced by the values that companies have in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from similarity.errors import InvalidFilter
from similarity.index.attributes import AttributeType
from similarity.index.filters import FieldFilter, Limit, attribute_text
from similarity.index.protocol import CompanyIndex


def with_levels(index: CompanyIndex, generation: str, filters: Sequence[FieldFilter]) -> list[FieldFilter]:
    """Return the filters, with each range of levels replaced by the values of `generation` in that range.

    Raises:
        InvalidFilter: a limit is neither a number nor a level of the attribute, or no level is in the range.
    """
    if not any(each.has_range for each in filters):
        return list(filters)
    types = index.attributes().types
    changed: list[FieldFilter] = []
    for each in filters:
        declared = types.get(each.field.removeprefix("attributes."), AttributeType())
        if each.has_range and declared.levels:
            changed += _by_values(each, declared, index.field_values(generation, each.field))
        else:
            _refuse_words(each, [name for name, type_ in types.items() if type_.levels])
            changed.append(each)
    return changed


def _by_values(asked: FieldFilter, declared: AttributeType, values: Sequence[str]) -> Iterator[FieldFilter]:
    limits = {name: _step(asked.field, declared, limit) for name, limit in asked.limits.items()}
    places = [
        place
        for place in range(len(declared.levels))
        if limits.get("at_least", place) <= place <= limits.get("at_most", place)
        and limits.get("above", -1) < place < limits.get("below", len(declared.levels))
    ]
    if not places:
        raise InvalidFilter(f"no level of {asked.field} is in this range; {_listed(declared)}")
    found = tuple(value for value in values if declared.step(value) in places)
    yield FieldFilter(field=asked.field, any_of=found or tuple(declared.levels[place] for place in places))
    if asked.any_of or asked.none_of:
        yield replace(asked, at_least=None, at_most=None, above=None, below=None)


def _step(field: str, declared: AttributeType, limit: Limit) -> float:
    text = attribute_text(limit)
    step = declared.step(text)
    if step is None:
        raise InvalidFilter(f"{text!r:.80} is not a level of {field}; {_listed(declared)}")
    return step


def _listed(declared: AttributeType) -> str:
    return f"its levels, from the lowest, are {', '.join(declared.levels)}"


def _refuse_words(asked: FieldFilter, ordinals: Sequence[str]) -> None:
    for limit in asked.limits.values():
        if isinstance(limit, str):
            raise InvalidFilter(
                f"{limit!r:.80} is not a number, and {asked.field} is not declared as an ordinal (declared: "
                f"{', '.join(ordinals) or 'none'}); write a number such as 100, -2.5 or 1e6, or declare its levels "
                "when you load (--attribute NAME:ordinal=LOW,...,HIGH)"
            )
