"""Filters in the form that `lookups` is compared with: for the rows of a matrix, and as SQL."""

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

from similarity.index.protocol import FieldFilter
from similarity.index.rules import filter_key

HAS_ANY = """
    EXISTS (
        SELECT 1 FROM lookups
        WHERE lookups.generation = documents.generation AND lookups.document = documents.document
        AND lookups.field = ? AND lookups.value IN (SELECT value FROM json_each(?))
    )
"""


class Condition(NamedTuple):
    """A filter whose values are as stored, sorted and distinct; equal for filters of equal meaning."""

    field: str
    any_of: tuple[str, ...]
    none_of: tuple[str, ...]


Conditions: TypeAlias = tuple[Condition, ...]


def conditions(filters: Sequence[FieldFilter]) -> Conditions:
    """What all of these filters ask of a company."""
    return tuple(Condition(held.field, _stored(held.any_of), _stored(held.none_of)) for held in filters)


def where(asked: Conditions) -> tuple[str, list[str]]:
    """The conditions on a row of `documents` as SQL, " AND ..." or empty, and the values to bind."""
    terms = ""
    values = []
    for field, any_of, none_of in asked:
        for term, wanted in ((f" AND {HAS_ANY}", any_of), (f" AND NOT {HAS_ANY}", none_of)):
            if wanted:
                terms += term
                values += [field, json.dumps(wanted)]
    return terms, values


def _stored(values: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted({filter_key(value) for value in values}))
