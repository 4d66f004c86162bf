"""The SQLite index: companies in one SQLite file, searched exactly in memory."""

from similarity.index.sqlite.index import SqliteIndex

__all__ = ["SqliteIndex"]
