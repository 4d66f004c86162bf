"""The two indices of a workspace on Elasticsearch, and requests for single documents."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from similarity.errors import IndexUnavailable
from similarity.feedback import elastic_mapping as mapping
from similarity.index.elastic import ElasticSettings
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.mapping import Body, small_index

PAGE_LISTS = 50  # few, because the query of one list may have 10,000 companies
MAX_NAMES = 10_000
CONFLICT, NOT_FOUND = 409, 404


class WorkspaceIndices:
    """The indices `<name>-feedback` and `<name>-lists`. The second holds lists, looks and the mark of erasures.

    `make_ready` must be called before any other method.
    """

    def __init__(self, settings: ElasticSettings) -> None:
        self.cluster = Cluster(settings)
        self.feedback = f"{settings.name}-feedback"
        self.lists = f"{settings.name}-lists"
        self._is_ready = False

    def make_ready(self) -> None:
        """Create missing indices. Only the first call sends requests.

        Raises:
            IndexUnavailable: an index has the schema of another release.
        """
        if self._is_ready:
            return
        for index, fields in ((self.feedback, mapping.FEEDBACK_FIELDS), (self.lists, mapping.LISTS_FIELDS)):
            with self.cluster.explained():
                found = self.cluster.retrying.options(ignore_status=NOT_FOUND).indices.get_mapping(index=index)
            if found.meta.status == NOT_FOUND:
                self.cluster.create_index(index, **small_index(fields, schema=mapping.SCHEMA_VERSION, replicas="0-1"))
                continue
            schema = found[index]["mappings"].get("_meta", {}).get("schema")
            if schema != mapping.SCHEMA_VERSION:
                raise IndexUnavailable(
                    f"the index {index} is not a workspace of this release (schema {schema}; this release reads "
                    f"{mapping.SCHEMA_VERSION}); upgrade this installation, or choose another index name"
                )
        self._is_ready = True

    def hit(self, key: str) -> Mapping[str, Any] | None:
        """Return the newest version of a list, a look or the mark, as a hit of a search; None if it does not exist."""
        with self.cluster.explained():
            hit = self.cluster.retrying.options(ignore_status=NOT_FOUND).get(index=self.lists, id=key)
        if "error" in hit:
            raise self.cluster.problem(503, hit["error"])
        return hit.body if hit["found"] else None

    def listed(self, kind: str, **terms: Collection[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the hits of all lists or looks with one of the values in each field, in the order of lists' names."""
        self.cluster.refresh(self.lists)
        filters = [{"term": {"kind": kind}}, *({"terms": {each: values}} for each, values in terms.items())]
        query: Body = {
            "query": {"bool": {"filter": filters}},
            "sort": [{"name": "asc"}, {"user": "asc"}],
            "size": PAGE_LISTS,
            "seq_no_primary_term": True,
        }
        return chain.from_iterable(self.cluster.pages(self.lists, query))

    def names_of_looks(self) -> list[str]:
        """Return the names of the lists that looks are at, also if there is no such list any more."""
        self.cluster.refresh(self.lists)
        names = {"names": {"terms": {"field": "name", "size": MAX_NAMES}}}
        found = self.cluster.search(self.lists, {"query": {"term": {"kind": "look"}}, "size": 0, "aggs": names})
        return [str(bucket["key"]) for bucket in found["aggregations"]["names"]["buckets"]]

    def replace(self, index: str, hit: Mapping[str, Any], source: Body, *, is_repeatable: bool = False) -> bool:
        """Replace the document of a hit. If the document was changed after the search, return False.

        Unless `is_repeatable`, the request is sent once, because a repetition may find the change of the first attempt.
        """
        with self.cluster.explained():
            client = self.cluster.retrying if is_repeatable else self.cluster.client
            sender = client.options(ignore_status=CONFLICT)
            answer = sender.index(index=index, id=hit["_id"], document=source, **unchanged(hit))
        return bool(answer.meta.status != CONFLICT)

    def delete(self, key: str, **parameters: Any) -> bool:
        """Delete a list or look; return whether it existed and was as in `parameters` (`unchanged`).

        The request is sent once: another would not find it.
        """
        with self.cluster.explained():
            client = self.cluster.client.options(ignore_status=(NOT_FOUND, CONFLICT))
            return client.delete(index=self.lists, id=key, **parameters).meta.status not in {NOT_FOUND, CONFLICT}

    def move(self, hit: Mapping[str, Any], key: str, source: Body) -> tuple[Mapping[str, Any] | None, bool]:
        """Write a new list `key` and delete the list of a hit, if that is unchanged, in one request that is sent once.

        Returns the new list as a hit, None if there was one already, and whether the other was deleted.
        """
        old = {"_id": hit["_id"], **unchanged(hit)}
        with self.cluster.explained():
            answer = self.cluster.client.bulk(
                index=self.lists, operations=[{"create": {"_id": key}}, source, {"delete": old}]
            )
        created, deleted = answer["items"][0]["create"], answer["items"][1]["delete"]
        for item in (created, deleted):
            if item["status"] not in {200, 201, NOT_FOUND, CONFLICT}:
                raise self.cluster.problem(item["status"], item["error"])
        return created if created["status"] == 201 else None, deleted["status"] == 200

    def remove_looks(self, name: str) -> None:
        """Delete all looks at a list."""
        while looks := list(self.listed("look", name=[name])):
            for look in looks:
                self.delete(look["_id"])


def unchanged(hit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request that fails if the document of a hit was changed after the search."""
    return {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
