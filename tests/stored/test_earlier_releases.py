"""What earlier releases wrote opens and answers as it did then.

Each archive holds an index, its workspace (a verdict, a saved list, a look) and its bundle, written by the code of
the day in its name. A new stored format adds an archive; none is ever changed.
"""

import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.bundle_store import StoredEncoders
from similarity.index.filters import FieldFilter
from similarity.index.sqlite import SqliteIndex
from similarity.search.queries.question import Anchor, Question
from similarity.search.searcher import Searcher

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.gz"))


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name.removesuffix(".tar.gz"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2, of Debian 12, has none
        archive.extractall(tmp_path)
    return tmp_path


@pytest.fixture
def index(folder: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(folder / "index.db")
    yield index
    index.close()


@pytest.fixture
def encoders(folder: Path) -> StoredEncoders:
    return StoredEncoders(folder / "index.db.bundles", TextEncoder)


def test_companies_rank_as_they_did(index: SqliteIndex) -> None:
    ranking = Searcher(index).search("acme.com")
    assert [(hit.company.id, round(hit.score, 6)) for hit in ranking.hits] == [("borg", 0.942809), ("cara", 0.333333)]
    assert ranking.hits[0].probability is not None
    large = Question(
        anchors=[Anchor(company="Borg AG")], filters=[FieldFilter(field="attributes.employees", at_least=13)]
    )
    assert [hit.company.id for hit in Searcher(index).search(large).hits] == ["cara"]


def test_the_deleted_company_stays_deleted(index: SqliteIndex) -> None:
    stats = index.stats("first")
    assert (stats.companies, stats.deleted) == (3, 1)


def test_what_was_upgraded_has_no_damage(index: SqliteIndex, folder: Path) -> None:
    assert index.damage() == []
    with closing(SqliteWorkspace(folder / "index.db.workspace")) as workspace:
        assert workspace.damage() == []


def test_its_bundle_still_encodes_texts_for_it(index: SqliteIndex, encoders: StoredEncoders, folder: Path) -> None:
    [stored] = (folder / "index.db.bundles").iterdir()
    bundle = ModelBundle.load(stored)
    assert (bundle.encoder_id, bundle.bundle_id) == (index.live().encoder_id, index.live().bundle_id)
    ranking = Searcher(index, encoders).search(Question(anchors=[Anchor(text="cars cars cars")], k=1))
    assert [hit.company.id for hit in ranking.hits] == ["cara"]


def test_verdicts_and_saved_lists_are_answered_by_the_service(index: SqliteIndex, folder: Path) -> None:
    workspace = SqliteWorkspace(folder / "index.db.workspace")
    with TestClient(create_app(index=index, workspace=workspace)) as client:
        assert [hit["company"]["id"] for hit in client.get("/lists/metal/hits").json()["hits"]] == ["borg"]
        [event] = client.get("/feedback").json()["events"]
        assert (event["anchor"], event["hit"], event["verdict"], event["note"]) == (
            "acme",
            "borg",
            "competitor",
            "seen",
        )
    assert workspace.last_look("metal", "ann") is not None
    workspace.close()
