"""A workspace lies beside the index it belongs to."""

from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from similarity.feedback.elastic import ElasticWorkspace
from similarity.feedback.opening import open_workspace, workspace_file
from similarity.feedback.sqlite import SqliteWorkspace
from tests.workspace_records import make_event


def test_an_index_file_has_a_workspace_file_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "similarity.db"
    workspace = open_workspace(str(target), {})
    assert isinstance(workspace, SqliteWorkspace)
    with closing(workspace):
        workspace.add_event(make_event())
    assert workspace_file(target) == tmp_path / "similarity.db.workspace"
    assert [file.name for file in tmp_path.iterdir()] == ["similarity.db.workspace"]


def test_an_index_at_a_url_has_indices_there() -> None:
    with closing(open_workspace("http://localhost:9200/companies", {})) as workspace:
        assert isinstance(workspace, ElasticWorkspace)


def test_a_setting_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(InvalidInput, match="SIMILARITY_ELASTICSEARCH_TYPO"):
        open_workspace("http://localhost:9200/companies", {"SIMILARITY_ELASTICSEARCH_TYPO": "1"})
