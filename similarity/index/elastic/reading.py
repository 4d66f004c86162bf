"""Reads of documents and versions, by ids and in pages by ascending id; counts; look-up by name, domain and words."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from similarity.company import Company, DeletedCompany, EmbeddedCompany, name_key, normalize_domain
from similarity.errors import InvalidCompany
from similarity.index.elastic import queries
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import company_of, document_of
from similarity.index.elastic.mapping import Body
from similarity.index.elastic.settings import MAX_CANDIDATES
from similarity.index.protocol import EXAMPLE_IDS, DocumentVersion, Generation, GenerationStats
from similarity.index.validation import MAX_RESOLVED, filter_key, has_whole_words, storable
from similarity.preparation.language import UNDECIDED

MAX_LANGUAGES = 200
SCAN_DOCUMENTS = 1_000  # with vectors as JSON numbers, some 8 kB each
REFERENCES_AT_ONCE = 250  # with up to two searches each


def companies_with_ids(
    cluster: Cluster, index: str, ids: Collection[str], generation: Generation
) -> dict[str, EmbeddedCompany]:
    """Return the companies among `ids`, by id, as of the last acknowledged write, without deleted and unknown ones."""
    sources = cluster.documents(index, ids, vectors=True).values()
    documents = (document_of(source, generation) for source in sources)
    return {document.id: document for document in documents if isinstance(document, EmbeddedCompany)}


def versions_with_ids(cluster: Cluster, index: str, ids: Collection[str]) -> dict[str, int]:
    """Return the versions of the documents among `ids`, tombstones included, as of the last acknowledged write."""
    sources = cluster.documents(index, ids, vectors=False)
    return {company_id: source["version"] for company_id, source in sources.items()}


def pages(
    cluster: Cluster, index: str, *, after: str, batch_size: int, generation: Generation
) -> Iterator[list[EmbeddedCompany | DeletedCompany]]:
    """Yield all documents by ascending id after `after`.

    No PIT (point in time) is needed: a document keeps its id, so each page continues exactly after the one before.
    Documents that are written meanwhile may or may not be included.
    """
    body = _by_id(after, size=min(batch_size, SCAN_DOCUMENTS))
    for hits in cluster.pages(index, {**body, "_source": {"exclude_vectors": False}}):
        yield [document_of(hit["_source"], generation) for hit in hits]


def version_pages(cluster: Cluster, index: str, *, after: str, batch_size: int) -> Iterator[list[DocumentVersion]]:
    """Yield the versions of all documents by ascending id after `after`."""
    # Without stored fields, and so without `_id`: that halves the time of a rollback, which reads two generations.
    columns = {"_source": False, "stored_fields": "_none_", "docvalue_fields": ["version"]}
    for hits in cluster.pages(index, {**_by_id(after, size=min(batch_size, MAX_CANDIDATES)), **columns}):
        yield [DocumentVersion(id=hit["sort"][0], version=hit["fields"]["version"][0]) for hit in hits]


def field_values(cluster: Cluster, index: str, field: str, among: Collection[str]) -> list[str]:
    """Return the values of a filter field, most frequent first; see `CompanyIndex.field_values`."""
    answer = cluster.search(index, queries.values_of(field, among))
    return [bucket["key"] for bucket in answer["aggregations"]["values"]["buckets"]]


def stats(cluster: Cluster, index: str, languages: Collection[str]) -> GenerationStats:
    """Return the counts of one generation, whose encoder reads `languages`."""
    living = {"term": {"deleted": False}}
    read = {"terms": {"language": [*languages, UNDECIDED]}}
    first = {"top_hits": {"size": EXAMPLE_IDS, "sort": queries.BY_ID, "_source": False, "docvalue_fields": ["id"]}}
    answer = cluster.search(
        index,
        {
            "size": 1,
            "sort": [{"version": "desc"}],  # a maximum aggregation would round it to a double
            "_source": False,
            "docvalue_fields": ["version"],
            "track_total_hits": True,
            "aggs": {
                "living": {
                    "filter": living,
                    "aggs": {"languages": {"terms": {"field": "language", "size": MAX_LANGUAGES}}},
                },
                "unread": {"filter": {"bool": {"filter": living, "must_not": read}}, "aggs": {"first": first}},
                "without_vector": {
                    "filter": {"bool": {"filter": living, "must_not": queries.HAS_VECTOR}},
                    "aggs": {"first": first},
                },
            },
        },
    )
    hits = answer["hits"]
    unread, without_vector = answer["aggregations"]["unread"], answer["aggregations"]["without_vector"]
    companies = answer["aggregations"]["living"]["doc_count"]
    return GenerationStats(
        companies=companies,
        deleted=hits["total"]["value"] - companies,
        last_version=hits["hits"][0]["fields"]["version"][0] if hits["hits"] else 0,
        unread=unread["doc_count"],
        without_vector=without_vector["doc_count"],
        unread_ids=_ids_of(unread["first"]),
        without_vector_ids=_ids_of(without_vector["first"]),
        languages={
            bucket["key"]: bucket["doc_count"] for bucket in answer["aggregations"]["living"]["languages"]["buckets"]
        },
    )


def _ids_of(first: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(hit["fields"]["id"][0] for hit in first["hits"]["hits"])


def tombstones_before(cluster: Cluster, index: str, version: int) -> list[tuple[str, int]]:
    """Return some of the tombstones with a lower version, as (id, version); empty if there are none."""
    query = {"bool": {"filter": [{"term": {"deleted": True}}, {"range": {"version": {"lt": version}}}]}}
    body = {"query": query, "size": MAX_CANDIDATES, "_source": False, "docvalue_fields": ["version"]}
    hits = cluster.search(index, body)["hits"]["hits"]
    return [(hit["_id"], hit["fields"]["version"][0]) for hit in hits]


def _by_id(after: str, *, size: int) -> Body:
    return {"size": size, "sort": [{"id": "asc"}], "search_after": [after], "track_total_hits": False}


def resolve_many(cluster: Cluster, index: str, references: Collection[str]) -> dict[str, list[str]]:
    """Return the sorted ids of the companies with each reference as id, else as domain, else as name or alias."""
    known = cluster.documents(index, references, vectors=False)
    living = {company_id for company_id, source in known.items() if not source["deleted"]}
    resolved = {reference: [reference] if reference in living else [] for reference in references}
    others = [reference for reference, ids in resolved.items() if not ids]
    for start in range(0, len(others), REFERENCES_AT_ONCE):
        some = others[start : start + REFERENCES_AT_ONCE]
        searches = [(reference, body) for reference in some for body in _searches(reference)]
        answers = cluster.searches(index, [body for _, body in searches])
        for (reference, _), answer in zip(searches, answers, strict=True):
            # Only the first search with a result is used.
            resolved[reference] = resolved[reference] or [hit["_id"] for hit in answer["hits"]["hits"]]
    return resolved


def find(cluster: Cluster, index: str, query: str, *, limit: int) -> list[Company]:
    """Return companies found by domain, by prefix of a name, or by words; best matches first."""
    text = storable(query)
    prefix, domain = name_key(text), _domain(text)
    prefix += " " * bool(prefix and has_whole_words(text))
    bodies = [
        queries.with_domain(domain, size=limit) if domain else None,
        queries.with_name_prefix(prefix) if prefix else None,
        queries.with_all_words(text, size=limit),
    ]
    found: dict[str, None] = {}
    for answer in cluster.searches(index, [body for body in bodies if body]):
        hits = answer["hits"]["hits"]
        if hits and "fields" in hits[0]:
            hits = _by_shortest_match(hits, prefix)
        found |= dict.fromkeys(hit["_id"] for hit in hits)
    return _companies(cluster, index, list(found)[:limit])


def find_misspelled(cluster: Cluster, index: str, query: str, *, limit: int) -> list[Company]:
    """Return companies with a name that has the words of `query`, typing errors allowed; best matches first."""
    words = list(dict.fromkeys(" ".join(queries.words_of(query)).split()))
    if not words:
        return []
    counts = cluster.searches(index, [queries.count_of(word) for word in words])
    misspelled = {word for word, answer in zip(words, counts, strict=True) if not answer["hits"]["total"]["value"]}
    (answer,) = cluster.searches(index, [queries.with_misspelled_words(words, misspelled, size=limit)])
    return _companies(cluster, index, [hit["_id"] for hit in answer["hits"]["hits"]])


def _companies(cluster: Cluster, index: str, ids: Sequence[str]) -> list[Company]:
    sources = cluster.documents(index, ids, vectors=False)
    return [
        company_of(company_id, sources[company_id]["company"])
        for company_id in ids
        if company_id in sources and not sources[company_id]["deleted"]
    ]


def _searches(reference: str) -> list[Body]:
    """Return the searches for companies with the domain `reference` (if it can be one), then with that name."""
    by_name = queries.with_name(filter_key(reference), size=MAX_RESOLVED)
    domain = _domain(reference)
    return [queries.with_domain(domain, size=MAX_RESOLVED), by_name] if domain else [by_name]


def _by_shortest_match(hits: Sequence[Mapping[str, Any]], prefix: str) -> list[Mapping[str, Any]]:
    matches = {
        hit["_id"]: [(len(name), name) for name in hit["fields"]["names"] if name.startswith(prefix)] for hit in hits
    }
    return sorted((hit for hit in hits if matches[hit["_id"]]), key=lambda hit: min(matches[hit["_id"]]))


def _domain(text: str) -> str:
    try:
        return name_key(normalize_domain(text))
    except InvalidCompany:
        return ""
