"""Opens the index at a target: a file path is the embedded index, a URL is Elasticsearch.

    similarity.db                         the SQLite file
    https://search.example.com:9200/NAME  the indices NAME-... of an Elasticsearch cluster

Each client library is imported only when it is needed.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from similarity.errors import InvalidInput
from similarity.index.protocol import CompanyIndex

if TYPE_CHECKING:
    from similarity.index.elastic import ElasticSettings


def open_index(target: str | Path, environ: Mapping[str, str] | None = None, *, create: bool = False) -> CompanyIndex:
    """Return the index at `target`; the caller closes it. With `create`, a missing file is created.

    The settings for a URL are the SIMILARITY_ELASTICSEARCH_ variables of `environ` (by default os.environ).

    Raises:
        InvalidInput: the file does not exist (unless `create`), the URL or a setting is invalid, or
            the Elasticsearch client is not installed.
        IndexUnavailable: the store cannot be opened or does not answer.
    """
    target = str(target)
    if is_url(target):
        settings = elastic_settings(target, os.environ if environ is None else environ)
        from similarity.index.elastic import ElasticIndex

        return ElasticIndex(settings)
    from similarity.index.sqlite import SqliteIndex

    path = Path(target)
    if not create and not path.exists():
        raise InvalidInput(
            f"there is no index {path} yet; create one with: similarity ingest FILE --index {path} "
            "(in Python: open_index(..., create=True)), or name another with --index"
        )
    return SqliteIndex(path)


def is_url(target: str) -> bool:
    """Return whether a target is a URL, not a file."""
    return target.lower().startswith(("http://", "https://"))


def index_name(target: str) -> str:
    """Return the name of the index: a file's path, or the NAME at the end of a URL."""
    return urlsplit(target).path.rstrip("/").rpartition("/")[2] if is_url(target) else target


def elastic_settings(target: str, environ: Mapping[str, str]) -> "ElasticSettings":
    """Return the settings of an index at a URL.

    Raises:
        InvalidInput: the URL or a setting is invalid, or the Elasticsearch client is not installed.
    """
    try:
        from similarity.index.elastic import ElasticSettings
    except ImportError as error:
        raise InvalidInput(
            f"an index at a URL needs the Elasticsearch client ({error.name} is missing): "
            "pip install 'company-similarity[elasticsearch]', in a checkout pip install -e '.[elasticsearch]'"
        ) from error
    return ElasticSettings.from_environment(target, environ)
