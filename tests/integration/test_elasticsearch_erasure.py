"""Erasing a company: no request finds it again, in no generation, and its words leave the files."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from similarity.company import DeletedCompany, version_of
from similarity.index.elastic import ElasticIndex
from similarity.index.ledger import DamagedErasure, ErasureRecord
from similarity.index.protocol import WriteOutcome
from similarity.upkeep.erasure import Eraser
from tests.contract.steps import add_candidate, add_live, found
from tests.factories import make_embedded, unit_vector
from tests.integration.elasticsearch_place import Place
from tests.servers.elasticsearch import ElasticsearchCluster

pytestmark = pytest.mark.integration

SECRET = "zyxwvutsrqponm"
NOW = datetime(2025, 3, 2, tzinfo=UTC)
GENERATIONS = ("first", "second", "third")
TOMBSTONE = DeletedCompany(id="gone", version=version_of(NOW, now=NOW, deleted=True))
JSON = {"accept": "application/json", "content-type": "application/json"}


@dataclass(frozen=True)
class Erased:
    """A place where a company was erased: its record, and which files held its words before and after."""

    place: Place
    record: ErasureRecord
    seconds: float
    files_before: list[Path]
    files_after: list[Path]


@pytest.fixture(scope="module")
def erased(secured_cluster: ElasticsearchCluster) -> Iterator[Erased]:
    """Erased from a previous, a live and a candidate generation at once, because it takes half a minute."""
    place = Place(secured_cluster.connection, f"t{secrets.token_hex(6)}")
    index = place.open()
    for add, name in zip((add_live, add_live, add_candidate), GENERATIONS, strict=True):
        add(index, name)
        index.upsert(name, [make_embedded(f"c{number}") for number in range(20)])
        for version in (2, 4):
            index.upsert(name, [make_embedded("gone", version=version, name=SECRET, description=f"{SECRET} {version}")])
    assert place.client.count(index=f"{place.name}-*", query={"match": {"words.name": SECRET}})["count"] == 3
    before = place.files_with(SECRET, secured_cluster)
    began = time.monotonic()
    record = erase(index)
    seconds = time.monotonic() - began
    yield Erased(place, record, seconds, before, place.files_with(SECRET, secured_cluster))
    place.remove()


def erase(index: ElasticIndex, *, compact: bool = True) -> ErasureRecord:
    eraser = Eraser(index, clock=lambda: NOW)
    eraser.accept("gone")
    [record] = eraser.finish(compact=compact)
    return record


def test_the_company_becomes_a_tombstone_in_every_generation(erased: Erased) -> None:
    applied = dict.fromkeys(GENERATIONS, WriteOutcome.APPLIED)
    assert {name: result.outcome for name, result in erased.record.results.items()} == applied
    index = erased.place.open()
    for name in GENERATIONS:
        assert index.get(name, ["gone"]) == {}
        assert index.resolve(name, "gone") + index.resolve(name, SECRET) == []
        assert index.find(name, SECRET) == []
        assert "gone" not in found(index.similar(name, unit_vector(1), k=100))
        assert (index.stats(name).companies, index.stats(name).deleted) == (20, 1)
        assert [each for batch in index.scan(name) for each in batch if each.id == "gone"] == [TOMBSTONE]


def test_no_request_past_us_finds_its_words(erased: Erased) -> None:
    client = erased.place.client
    for name in GENERATIONS:
        index = erased.place.index_of(name)
        by_id = client.search(index=index, query={"ids": {"values": ["gone"]}}, source_exclude_vectors=False)
        by_ids = client.mget(index=index, ids=["gone"])
        for source in (by_id["hits"]["hits"][0]["_source"], by_ids["docs"][0]["_source"]):
            assert source == {"id": "gone", "version": TOMBSTONE.version, "deleted": True}
        by_words = client.search(index=index, query={"multi_match": {"query": SECRET}})
        assert by_words["hits"]["hits"] == []
        names = client.search(index=index, size=0, aggs={"names": {"terms": {"field": "names", "size": 1000}}})
        assert len(names["aggregations"]["names"]["buckets"]) == 20
        terms = client.perform_request(
            "POST", f"/{index}/_terms_enum", headers=JSON, body={"field": "names", "string": SECRET[:4]}
        )
        assert terms["terms"] == []


def test_no_segment_keeps_what_was_replaced(erased: Erased) -> None:
    segments: Any = erased.place.client.cat.segments(
        index=[erased.place.index_of(name) for name in GENERATIONS], format="json", h="docs.count,docs.deleted"
    )
    assert [(line["docs.count"], line["docs.deleted"]) for line in segments] == [("21", "0")] * 3


def test_its_words_leave_the_files(erased: Erased) -> None:
    assert erased.files_before
    assert erased.files_after == []


def test_all_generations_wait_for_the_same_half_minute(erased: Erased) -> None:
    assert erased.seconds < 80


def test_an_older_message_does_not_bring_it_back(erased: Erased) -> None:
    late = make_embedded("gone", version=TOMBSTONE.version - 3, name=SECRET)
    index = erased.place.open()
    for name in GENERATIONS:
        assert [result.outcome for result in index.upsert(name, [late])] == [WriteOutcome.SUPERSEDED]


@pytest.mark.parametrize("compact", [True, False])
def test_no_search_finds_the_company_once_it_is_erased(place: Place, compact: bool) -> None:
    """Though the next refresh is an hour away."""
    index = place.open(visible_at_once=False, refresh_seconds=3600)
    add_candidate(index, "first")
    index.upsert("first", [make_embedded("gone"), make_embedded("kept")])
    index.promote("first")
    assert set(found(index.similar("first", unit_vector(1), k=2))) == {"gone", "kept"}
    erase(index, compact=compact)
    assert found(index.similar("first", unit_vector(1), k=2)) == ["kept"]


@pytest.mark.parametrize(
    "record", [{"id": "bad"}, {"requested_at": 7}, {"results": ["x"]}, {"forgotten": {"events": "x"}}]
)
def test_a_record_that_cannot_be_read_holds_up_no_other_erasure(place: Place, record: dict[str, Any]) -> None:
    index = place.open()
    index.upsert(add_live(index, "first"), [make_embedded(each) for each in ("bad", "good")])
    eraser = Eraser(index)
    for company_id in ("bad", "good"):
        eraser.accept(company_id)
    place.client.indices.refresh(index=f"{place.name}-names")
    [hit] = place.client.search(
        index=f"{place.name}-names",
        query={"bool": {"filter": [{"term": {"kind": "erasure"}}, {"term": {"id": "bad"}}]}},
    )["hits"]["hits"]
    broken = {**hit["_source"]["record"], **record} if "id" not in record else record
    place.client.index(index=f"{place.name}-names", id=hit["_id"], document={**hit["_source"], "record": broken})
    assert [(each.id, each.state) for each in eraser.finish(compact=False)] == [("good", "done")]
    with pytest.raises(DamagedErasure, match="the erasure of 'bad': its record cannot be read"):
        index.ledger.erasure("bad")
    eraser.accept("bad")
    assert [(each.id, each.state) for each in eraser.finish(compact=False)] == [("bad", "done")]
