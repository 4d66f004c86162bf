"""Opens the workspace that belongs to an index, wherever that is.

    similarity.db                         a file of its own: similarity.db.workspace
    https://search.example.com:9200/NAME  indices of its own on the same cluster: NAME-feedback, NAME-lists

The Elasticsearch client is imported only when it is asked for.
"""

from collections.abc import Mapping
from pathlib import Path

from similarity.errors import InvalidInput
from similarity.feedback.protocol import Workspace
from similarity.index.opening import is_url


def open_workspace(target: str, environ: Mapping[str, str]) -> Workspace:
    """The workspace of the index at `target`, made if there is none yet; the caller closes it.

    Raises:
        InvalidInput: the URL or a setting cannot be used, or the Elasticsearch client is not installed.
        IndexUnavailable: the store cannot be opened or does not answer.
    """
    if is_url(target):
        return _open_elasticsearch(target, environ)
    from similarity.feedback.sqlite import SqliteWorkspace

    return SqliteWorkspace(workspace_file(target))


def open_existing_workspace(target: str, environ: Mapping[str, str]) -> Workspace | None:
    """The same, but None where a file is missing: nobody ever added anything to that index.

    Raises:
        InvalidInput: as `open_workspace`.
        IndexUnavailable: as `open_workspace`.
    """
    return open_workspace(target, environ) if is_url(target) or workspace_file(target).exists() else None


def workspace_file(target: str | Path) -> Path:
    """The file beside an index's file that holds its workspace; back it up like the index."""
    return Path(f"{target}.workspace")


def _open_elasticsearch(target: str, environ: Mapping[str, str]) -> Workspace:
    try:
        from similarity.feedback.elastic import ElasticWorkspace
        from similarity.index.elastic import ElasticSettings
    except ImportError as error:
        raise InvalidInput(
            f"an index at a URL needs the Elasticsearch client ({error.name} is missing): "
            "pip install 'company-similarity[elasticsearch]', in a checkout pip install -e '.[elasticsearch]'"
        ) from error
    return ElasticWorkspace(ElasticSettings.from_environment(target, environ))
