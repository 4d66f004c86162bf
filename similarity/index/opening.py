"""Opens the index that a target names: a file is the embedded index, a URL is Elasticsearch.

    similarity.db                         the SQLite file
    https://search.example.com:9200/NAME  the indices called NAME-... of an Elasticsearch cluster

Either client is imported only when it is asked for.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from similarity.errors import InvalidInput
from similarity.index.protocol import CompanyIndex


def open_index(target: str | Path, environ: Mapping[str, str] | None = None, *, create: bool = False) -> CompanyIndex:
    """Return the index at `target`; the caller closes it. With `create` a missing file is made.

    How to connect to a URL is read from the SIMILARITY_ELASTICSEARCH_ variables of `environ` (the process's own).

    Raises:
        InvalidInput: there is no such file (unless `create`), the URL or a setting cannot be used, or
            the Elasticsearch client is not installed.
        IndexUnavailable: the store cannot be opened or does not answer.
    """
    target = str(target)
    if is_url(target):
        return _open_elasticsearch(target, os.environ if environ is None else environ)
    from similarity.index.sqlite import SqliteIndex

    path = Path(target)
    if not create and not path.exists():
        raise InvalidInput(f"there is no index {path} yet; make one with: similarity ingest FILE --index {path}")
    return SqliteIndex(path)


def is_url(target: str) -> bool:
    """Whether a target names a server rather than a file."""
    return target.startswith(("http://", "https://"))


def index_name(target: str) -> str:
    """What the index is called: a file's path, or the NAME at the end of a URL."""
    return urlsplit(target).path.rstrip("/").rpartition("/")[2] if is_url(target) else target


def _open_elasticsearch(target: str, environ: Mapping[str, str]) -> CompanyIndex:
    try:
        from similarity.index.elastic import ElasticIndex, ElasticSettings
    except ImportError as error:
        raise InvalidInput(
            f"an index at a URL needs the Elasticsearch client ({error.name} is missing): "
            "pip install 'company-similarity[elasticsearch]', in a checkout pip install -e '.[elasticsearch]'"
        ) from error
    return ElasticIndex(ElasticSettings.from_environment(target, environ))
