"""Values of a stored company that it loses when it is written again."""

from similarity.company import Company
from similarity.ingest.records import Columns, ParsedRecord, Record, attribute_values

OPTIONAL_FIELDS = ("aliases", "domain", "country", "industry", "tags")


def lost_to_invalid_values(before: Company, parsed: ParsedRecord) -> list[str]:
    """Return the fields and attributes of `before` whose new value was ignored because it is invalid."""
    had = {"domain"} if before.domain else set()
    had.update(f"attributes.{name}" for name in before.attributes)
    return [name for name in parsed.warned_fields if name in had - parsed.ambiguous]


def removed_fields(before: Company, after: Company, record: Record, columns: Columns) -> list[str]:
    """Return the fields and attributes of `before` that `after` lacks because its row has no column for them."""
    fields = [
        name
        for name in OPTIONAL_FIELDS
        if getattr(before, name) and not getattr(after, name) and not columns.has(record, name)
    ]
    named = {*after.attributes, *attribute_values(record, columns)}
    return fields + [f"attributes.{name}" for name in before.attributes if name not in named]
