from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.files import RejectsFile
from similarity.search.export import export_neighbours
from tests.contract.steps import add_live
from tests.factories import make_embedded


def test_no_output_replaces_a_database(tmp_path: Path) -> None:
    path = tmp_path / "similarity.db"
    with closing(SqliteIndex(path)) as index:
        add_live(index, "live")
        before = path.read_bytes()
        with pytest.raises(InvalidInput, match="is a database, which would be lost"):
            RejectsFile(path)
        with pytest.raises(InvalidInput, match="is a database, which would be lost"):
            export_neighbours(index, index.live(), path, k=1)
        assert path.read_bytes() == before


def test_an_export_that_fails_leaves_no_part(tmp_path: Path) -> None:
    def full(rows: int) -> None:
        raise OSError("No space left on device")

    with closing(SqliteIndex(tmp_path / "similarity.db")) as index:
        add_live(index, "live")
        index.upsert("live", [make_embedded("a"), make_embedded("b")])
        with pytest.raises(OSError, match="No space"):
            export_neighbours(index, index.live(), tmp_path / "out.parquet", k=1, on_rows=full)
    assert not [each.name for each in tmp_path.iterdir() if "parquet" in each.name]


def test_rejected_rows_do_not_replace_the_file_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "companies.csv"
    path.write_text("id,name,description\n")
    (tmp_path / "link.csv").symlink_to(path)
    for rejects in (path, tmp_path / "link.csv"):
        with pytest.raises(InvalidInput, match="which is being read"):
            RejectsFile(rejects, source=path)


def test_a_backup_replaces_no_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "similarity.db.workspace"
    SqliteWorkspace(workspace).close()
    before = workspace.read_bytes()
    with closing(SqliteIndex(tmp_path / "similarity.db")) as index:
        with pytest.raises(InvalidInput, match="is another kind of file than the index"):
            index.backup(workspace, overwrite=True)
        index.backup(tmp_path / "copy.db")
        index.backup(tmp_path / "copy.db", overwrite=True)
    assert workspace.read_bytes() == before
