"""The declared types of attributes in the SQLite index."""

import sqlite3

from similarity.index.attributes import AttributeSchema, parse_type
from similarity.index.sqlite.records import Records

DECLARED_TYPES = Records(
    table="attributes",
    key=("name",),
    values=("type", "is_size"),
    decode=lambda row: (str(row[0]), parse_type(str(row[0]), str(row[1])), bool(row[2])),
)


def read(connection: sqlite3.Connection) -> AttributeSchema:
    """Return the declared types, and which attribute is the size."""
    rows = DECLARED_TYPES.read(connection, "ORDER BY name")
    size = next((name for name, _, is_size in rows if is_size), "")
    return AttributeSchema({name: declared for name, declared, _ in rows}, size)


def declare(connection: sqlite3.Connection, schema: AttributeSchema) -> None:
    """Add the declarations of `schema`; they replace or withdraw those of the same attributes, and replace the size."""
    types = read(connection).updated(schema)
    connection.executemany("DELETE FROM attributes WHERE name = ?", [(name,) for name in schema.withdrawn])
    rows = [(name, each.text, int(name == types.size)) for name, each in types.types.items()]
    DECLARED_TYPES.write(connection, rows)
