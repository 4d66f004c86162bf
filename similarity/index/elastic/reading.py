"""Reads of documents and versions, by ids and in pages by ascending id, and the counts of a generation."""

from collections.abc import Collection, Iterator

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import document_of
from similarity.index.elastic.mapping import Body
from similarity.index.elastic.settings import MAX_CANDIDATES
from similarity.index.protocol import DocumentVersion, GenerationStats

SCAN_DOCUMENTS = 1_000  # with their vectors as digits, some 8 kB each


def companies_with_ids(
    cluster: Cluster, index: str, ids: Collection[str], *, encoder_id: str
) -> dict[str, EmbeddedCompany]:
    """Return the companies among `ids`, by id, as of the last acknowledged write, without deleted and unknown ones."""
    sources = cluster.documents(index, ids, vectors=True).values()
    documents = (document_of(source, encoder_id=encoder_id) for source in sources)
    return {document.id: document for document in documents if isinstance(document, EmbeddedCompany)}


def versions_with_ids(cluster: Cluster, index: str, ids: Collection[str]) -> dict[str, int]:
    """Return the versions of the documents among `ids`, tombstones included, as of the last acknowledged write."""
    sources = cluster.documents(index, ids, vectors=False)
    return {company_id: source["version"] for company_id, source in sources.items()}


def pages(
    cluster: Cluster, index: str, *, after: str, batch_size: int, encoder_id: str
) -> Iterator[list[EmbeddedCompany | DeletedCompany]]:
    """Yield all documents by ascending id after `after`.

    Without a point in time: a document keeps its id, so each page continues exactly after the one before. Documents
    that are written meanwhile may or may not be included.
    """
    body = _by_id(after, size=min(batch_size, SCAN_DOCUMENTS))
    for hits in cluster.pages(index, {**body, "_source": {"exclude_vectors": False}}):
        yield [document_of(hit["_source"], encoder_id=encoder_id) for hit in hits]


def version_pages(cluster: Cluster, index: str, *, after: str, batch_size: int) -> Iterator[list[DocumentVersion]]:
    """Yield the versions of all documents by ascending id after `after`."""
    body = _by_id(after, size=min(batch_size, MAX_CANDIDATES))
    for hits in cluster.pages(index, {**body, "_source": False, "docvalue_fields": ["version"]}):
        yield [DocumentVersion(id=hit["_id"], version=hit["fields"]["version"][0]) for hit in hits]


def stats(cluster: Cluster, index: str) -> GenerationStats:
    """Return the counts of one generation."""
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


def _by_id(after: str, *, size: int) -> Body:
    return {"size": size, "sort": [{"id": "asc"}], "search_after": [after], "track_total_hits": False}
