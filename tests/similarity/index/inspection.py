"""Looks into the file of an embedded index for anything that was written only in part."""

from contextlib import closing
from pathlib import Path

from similarity.index.sqlite import SqliteIndex


def damage(path: Path) -> list[str]:
    """What is wrong with the file, one line each; empty where all is well."""
    with closing(SqliteIndex(path)) as index:
        return index.damage()
