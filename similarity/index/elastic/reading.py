"""Reads of documents and versions, by ids and in pages by ascending id, and the counts of a generation."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from similarity.company import ID_PATTERN, DeletedCompany, EmbeddedCompany
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import document_of
from similarity.index.elastic.mapping import Body
from similarity.index.elastic.settings import MAX_CANDIDATES
from similarity.index.protocol import DocumentVersion, GenerationStats

GET_DOCUMENTS = 500
SCAN_DOCUMENTS = 1_000  # with their vectors as digits, some 8 kB each


def companies_with_ids(
    cluster: Cluster, index: str, ids: Collection[str], *, encoder_id: str
) -> dict[str, EmbeddedCompany]:
    """Return the companies among `ids`, by id, as of the last acknowledged write, without deleted and unknown ones."""
    found = {}
    for source in _sources(cluster, index, ids, vectors=True):
        document = document_of(source, encoder_id=encoder_id)
        if isinstance(document, EmbeddedCompany):
            found[document.id] = document
    return found


def versions_with_ids(cluster: Cluster, index: str, ids: Collection[str]) -> dict[str, int]:
    """Return the versions of the documents among `ids`, tombstones included, as of the last acknowledged write."""
    return {source["id"]: source["version"] for source in _sources(cluster, index, ids, vectors=False)}


def pages(
    cluster: Cluster, index: str, *, after: str, batch_size: int, encoder_id: str
) -> Iterator[list[EmbeddedCompany | DeletedCompany]]:
    """All documents by ascending id after `after`.

    No point in time is held: an id never moves, so each page goes on exactly after the one before,
    and what is written meanwhile may or may not be seen.
    """
    body: Body = {"_source": {"exclude_vectors": False}}
    for hits in _in_order(cluster, index, body, after=after, size=min(batch_size, SCAN_DOCUMENTS)):
        yield [document_of(hit["_source"], encoder_id=encoder_id) for hit in hits]


def version_pages(cluster: Cluster, index: str, *, after: str, batch_size: int) -> Iterator[list[DocumentVersion]]:
    """The versions of all documents by ascending id after `after`."""
    body: Body = {"_source": False, "docvalue_fields": ["version"]}
    for hits in _in_order(cluster, index, body, after=after, size=min(batch_size, MAX_CANDIDATES)):
        yield [DocumentVersion(id=hit["_id"], version=hit["fields"]["version"][0]) for hit in hits]


def stats(cluster: Cluster, index: str) -> GenerationStats:
    """Counts of one generation."""
    living = {"term": {"deleted": False}}
    english = {"terms": {"language": ["en", "und"]}}
    answer = cluster.search(
        index,
        {
            "size": 1,
            "sort": [{"version": "desc"}],  # a maximum aggregation would pass through a double
            "_source": False,
            "docvalue_fields": ["version"],
            "track_total_hits": True,
            "aggs": {
                "living": {"filter": living},
                "other": {"filter": {"bool": {"filter": living, "must_not": english}}},
            },
        },
    )
    hits = answer["hits"]
    companies = answer["aggregations"]["living"]["doc_count"]
    return GenerationStats(
        companies=companies,
        deleted=hits["total"]["value"] - companies,
        last_version=hits["hits"][0]["fields"]["version"][0] if hits["hits"] else 0,
        not_english=answer["aggregations"]["other"]["doc_count"],
    )


def tombstones_before(cluster: Cluster, index: str, version: int) -> list[tuple[str, int]]:
    """Return some of the tombstones with a lower version, as (id, version); empty if there are none."""
    query = {"bool": {"filter": [{"term": {"deleted": True}}, {"range": {"version": {"lt": version}}}]}}
    body = {"query": query, "size": MAX_CANDIDATES, "_source": False, "docvalue_fields": ["version"]}
    hits = cluster.search(index, body)["hits"]["hits"]
    return [(hit["_id"], hit["fields"]["version"][0]) for hit in hits]


def _sources(cluster: Cluster, index: str, ids: Collection[str], *, vectors: bool) -> Iterator[Mapping[str, Any]]:
    possible = [company_id for company_id in dict.fromkeys(ids) if ID_PATTERN.fullmatch(company_id)]
    for start in range(0, len(possible), GET_DOCUMENTS):
        yield from cluster.documents(index, possible[start : start + GET_DOCUMENTS], vectors=vectors).values()


def _in_order(cluster: Cluster, index: str, body: Body, *, after: str, size: int) -> Iterator[list[Mapping[str, Any]]]:
    while True:
        page = {**body, "size": size, "sort": [{"id": "asc"}], "search_after": [after], "track_total_hits": False}
        hits = cluster.search(index, page)["hits"]["hits"]
        if hits:
            yield hits
        if len(hits) < size:
            return
        after = hits[-1]["_id"]
