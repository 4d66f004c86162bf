"""Opens the workspace of an index.

    similarity.db                         the file similarity.db.workspace
    https://search.example.com:9200/NAME  the indices NAME-feedback and NAME-lists on the same cluster

The Elasticsearch client is imported only when it is needed.
"""

from collections.abc import Mapping
from pathlib import Path

from similarity.feedback.protocol import Workspace
from similarity.index.opening import elastic_settings, is_url
from similarity.settings import followed


def open_workspace(target: str, environ: Mapping[str, str]) -> Workspace:
    """Return the workspace of the index at `target`, created if it does not exist; the caller closes it.

    Raises:
        InvalidInput: the URL or a setting is invalid, or the Elasticsearch client is not installed.
        IndexUnavailable: the store cannot be opened or does not answer.
    """
    if is_url(target):
        settings = elastic_settings(target, environ)
        from similarity.feedback.elastic import ElasticWorkspace

        return ElasticWorkspace(settings)
    from similarity.feedback.sqlite import SqliteWorkspace

    return SqliteWorkspace(workspace_file(followed(target)))


def open_existing_workspace(target: str, environ: Mapping[str, str]) -> Workspace | None:
    """Return the workspace of the index at `target`; None if its file does not exist: it is empty.

    Raises:
        InvalidInput: as `open_workspace`.
        IndexUnavailable: as `open_workspace`.
    """
    return open_workspace(target, environ) if is_url(target) or workspace_file(followed(target)).exists() else None


def workspace_file(target: str | Path) -> Path:
    """Return the workspace file next to the file of an index; back it up like the index."""
    return Path(f"{target}.workspace")
