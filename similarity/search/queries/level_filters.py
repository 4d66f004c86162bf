"""Levels in filters: `attributes.size>=large` and `attributes.size=large`, if the attribute is declared as an ordinal.

In ranges stores compare only numbers; they compare other values as text. So a range of levels is replaced by the values
that companies have in it, and a level by the values that are of this level, such as "Large Cap".
"""

from collections.abc import Iterator, Sequence

from similarity.errors import InvalidFilter
from similarity.index.attributes import AttributeType, level_key
from similarity.index.filters import FieldFilter, Limit, attribute_text
from similarity.index.protocol import CompanyIndex

ATTRIBUTE = "attributes."


def with_levels(index: CompanyIndex, generation: str, filters: Sequence[FieldFilter]) -> list[FieldFilter]:
    """Return the filters, with each level and each range of levels replaced by the values of `generation`.

    Raises:
        InvalidFilter: a limit is no level of an ordinal, or no number of another attribute; or no level is in range.
    """
    if not any(each.has_range or each.field.startswith(ATTRIBUTE) for each in filters):
        return list(filters)
    types = {f"{ATTRIBUTE}{name}": declared for name, declared in index.attributes().types.items()}
    changed: list[FieldFilter] = []
    for asked in filters:
        declared = types.get(asked.field, AttributeType())
        if declared.levels:
            changed += _by_values(asked, declared, index.field_values(generation, asked.field))
        else:
            ordinals = [name.removeprefix(ATTRIBUTE) for name, type_ in types.items() if type_.levels]
            _refuse_words(asked, ordinals, is_number=asked.field in types)
            changed.append(asked)
    return changed


def _of_levels(asked: Sequence[str], declared: AttributeType, values: Sequence[str]) -> tuple[str, ...]:
    """Return `asked` with each level replaced by the values of companies on it, if there are any."""
    found: list[str] = []
    for text in asked:
        is_level = level_key(text) in map(level_key, declared.levels)
        held = [value for value in values if declared.step(value) == declared.step(text)] if is_level else []
        found += held or [text]
    return tuple(dict.fromkeys(found))


def _by_values(asked: FieldFilter, declared: AttributeType, values: Sequence[str]) -> Iterator[FieldFilter]:
    any_of, none_of = (_of_levels(texts, declared, values) for texts in (asked.any_of, asked.none_of))
    if any_of or none_of:
        yield FieldFilter(field=asked.field, any_of=any_of, none_of=none_of)
    if not asked.has_range:
        return
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


def _step(field: str, declared: AttributeType, limit: Limit) -> float:
    text = attribute_text(limit)
    step = declared.step(text)
    if step is None:
        raise InvalidFilter(f"{text!r:.80} is not a level of {field}; {_listed(declared)}")
    return step


def _listed(declared: AttributeType) -> str:
    return f"its levels, from the lowest, are {', '.join(declared.levels)}"


def _refuse_words(asked: FieldFilter, ordinals: Sequence[str], *, is_number: bool) -> None:
    for limit in asked.limits.values():
        if isinstance(limit, str):
            advice = "write a number such as 100, -2.5 or 1e6 (of a date, its year)"
            if is_number:
                raise InvalidFilter(f"{limit!r:.80} is not a number, and {asked.field} is declared as one; {advice}")
            raise InvalidFilter(
                f"{limit!r:.80} is not a number, and {asked.field} is not declared as an ordinal (declared: "
                f"{', '.join(ordinals) or 'none'}); {advice}, or "
                "declare its type when you load (--attribute NAME:number, or NAME:ordinal=LOW,...,HIGH)"
            )
