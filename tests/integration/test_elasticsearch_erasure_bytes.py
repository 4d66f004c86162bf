"""What an erasure leaves on a real Elasticsearch node: nothing, as its files and its searches show."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from similarity.client import Client
from similarity.index.bundle_store import keep_bundle
from tests.integration.elasticsearch_place import Place
from tests.servers.elasticsearch import ElasticsearchCluster
from tests.services.search.erasure_story import (
    ALIAS,
    ID,
    LATER,
    LATER_DESCRIPTION,
    NOTE,
    WORDS,
    add_two_generations,
    erase,
    words_in_files,
    words_in_text,
    write_everywhere,
)
from tests.services.search.serving import running
from tests.tiny_bundle import write_tiny_bundle

pytestmark = pytest.mark.integration


def test_no_file_of_a_node_holds_a_word_of_an_erased_company(
    secured_cluster: ElasticsearchCluster, secured_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sees every file under the node's folder once the node has stopped: segments, translogs and logs.

    Stored fields are compressed (LZ4), which keeps the first occurrence of such words as they are; that the
    search of files sees them is asserted before the erasure. What searches return is read too: every source,
    and every term of `names`, which no source holds.
    """
    place = secured_place
    bundle = write_tiny_bundle(tmp_path / "tiny")
    keep_bundle(bundle, tmp_path / "bundles")
    add_two_generations(place.open(), bundle)
    settings = place.settings
    monkeypatch.setenv("SIMILARITY_BUNDLES", str(tmp_path / "bundles"))
    monkeypatch.setenv("SIMILARITY_ELASTICSEARCH_USERNAME", settings.username)
    monkeypatch.setenv("SIMILARITY_ELASTICSEARCH_PASSWORD", settings.password)
    monkeypatch.setenv("SIMILARITY_ELASTICSEARCH_CA_CERTS", settings.ca_certs)
    folders = [node.folder for node in secured_cluster.nodes]
    with (
        running(f"{settings.hosts[0]}/{place.name}", tmp_path, writes="direct") as service,
        Client(f"http://127.0.0.1:{service.port}") as client,
    ):
        write_everywhere(client)
        place.client.indices.flush(index=f"{place.name}-*")
        before = words_in_files(folders)
        assert set().union(*before.values()) == set(WORDS)
        assert any(not name.startswith("translog") for name in before)
        assert words_in_text(everything(place)) > {LATER, LATER_DESCRIPTION, ALIAS, NOTE}
        erasure = erase(client)
    assert (erasure.state, erasure.problem, erasure.compaction) == ("done", "", "done")
    counts = erasure.forgotten
    assert (counts.events, counts.lists, counts.looks, counts.notes) == (1, 7, 1, 2)
    with closing(place.open()) as index:
        assert index.ledger.remembered(ID) == frozenset()
    assert words_in_text(everything(place)) == set()
    assert words_in_text(service.log) == set()
    secured_cluster.stop()
    try:
        left = words_in_files(folders)
    finally:
        secured_cluster.start()
    assert left == {}


def everything(place: Place) -> str:
    """What searches over all indices of this place return: every source, and every name that is searched by."""
    indices = f"{place.name}-*"
    place.client.indices.refresh(index=indices)
    found = place.client.search(index=indices, size=1000)
    assert found["hits"]["total"]["value"] < 1000
    names = place.client.search(
        index=f"{place.name}-first-*,{place.name}-second-*",
        size=0,
        aggs={"names": {"terms": {"field": "names", "size": 1000}}},
    )
    sources = [hit["_source"] for hit in found["hits"]["hits"]]
    return json.dumps([sources, names["aggregations"]], ensure_ascii=False)
