import sys
from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import IndexUnavailable, InvalidInput
from similarity.index.opening import index_name, open_index
from similarity.index.sqlite import SqliteIndex


def test_a_file_is_the_embedded_index(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(open_index(str(path), {}, create=True)) as made:
        assert isinstance(made, SqliteIndex)
    with closing(open_index(str(path), {})) as found:
        assert found.generations() == []


def test_a_missing_file_is_not_made_by_looking(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    with pytest.raises(
        InvalidInput, match=r"there is no index .*none\.db yet; create one with: similarity ingest FILE"
    ):
        open_index(str(path), {})
    assert not path.exists()


@pytest.mark.parametrize(
    "target", ["http://localhost:9200/companies", "https://a:9200,b:9200/companies", "HTTP://a:1/companies"]
)
def test_a_url_is_elasticsearch_with_the_settings_of_the_environment(target: str) -> None:
    from similarity.index.elastic import ElasticIndex

    with closing(open_index(target, {"SIMILARITY_ELASTICSEARCH_NUM_CANDIDATES": "300"})) as index:
        assert isinstance(index, ElasticIndex)
        assert (index.settings.name, index.settings.num_candidates) == ("companies", 300)


def test_a_loop_of_symbolic_links_is_an_error_of_one_line(tmp_path: Path) -> None:
    loop = tmp_path / "loop.db"
    loop.symlink_to(loop)
    with pytest.raises(IndexUnavailable, match=r"loop\.db does not answer: it cannot be opened"):
        open_index(str(loop), {}, create=True)


def test_without_the_client_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("similarity.index.elastic")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "elasticsearch", None)
    with pytest.raises(InvalidInput, match=r"pip install -e '\.\[elasticsearch\]'"):
        open_index("http://localhost:9200/companies", {})


def test_an_index_is_called_by_its_path_or_by_the_end_of_its_url() -> None:
    assert index_name("data/similarity.db") == "data/similarity.db"
    assert index_name("https://localhost:9200/companies/") == "companies"
