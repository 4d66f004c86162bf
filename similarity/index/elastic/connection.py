"""The Elasticsearch client, and the conversion of its errors to ours. No message contains a secret."""

import logging
import ssl
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from elasticsearch import (
    ApiError,
    AuthenticationException,
    AuthorizationException,
    BadRequestError,
    ConnectionTimeout,
    Elasticsearch,
    TransportError,
)

from similarity.company import ID_PATTERN
from similarity.errors import IndexUnavailable, InvalidInput, UnknownGeneration
from similarity.index.elastic.mapping import Body
from similarity.index.elastic.settings import PREFIX, ElasticSettings

BUSY = (429, 502, 503, 504)
MAX_ATTEMPTS = 3
GET_DOCUMENTS = 500
PLACED_SECONDS = 20
FIRST_WITH_PACKED_VECTORS = (9, 3)
JSON_HEADERS = {"accept": "application/json", "content-type": "application/json"}


class Cluster:
    """The requests of this package to Elasticsearch, with errors that say what to do.

    `client` sends each request once. `retrying` repeats a failed request on another node. Use it for reads, and for
    writes that have the same effect if they arrive twice.
    """

    def __init__(self, settings: ElasticSettings) -> None:
        self.settings = settings
        self.client = connect(settings)
        self.retrying = self.client.options(max_retries=MAX_ATTEMPTS - 1, retry_on_timeout=True, retry_on_status=BUSY)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    @cached_property
    def packs_vectors(self) -> bool:
        """Whether every node accepts vectors as base64 (9.3 and newer): a quarter of the bytes, and faster to parse.

        If this client may not read the versions of the nodes, vectors are sent as numbers, which every release reads.
        """
        try:
            nodes = self.retrying.nodes.info(filter_path=["nodes.*.version"])["nodes"]
        except (ApiError, KeyError):
            return False
        except TransportError as error:
            raise self.unreachable(error) from error
        return all(_release(node["version"]) >= FIRST_WITH_PACKED_VECTORS for node in nodes.values())

    def search(self, index: str, body: Body) -> Mapping[str, Any]:
        """Return the response to one search. Raises UnknownGeneration if the index was deleted."""
        [answer] = self.searches(index, [body])
        return answer

    def searches(self, index: str, bodies: Sequence[Body]) -> list[Mapping[str, Any]]:
        """Return the responses to several searches, in one request. Raises as `search`."""
        if not bodies:
            return []
        lines = [line for body in bodies for line in ({"index": index}, body)]
        for _ in range(MAX_ATTEMPTS):
            with self.explained():
                responses = self.retrying.msearch(searches=lines)["responses"]
            if not any(map(_was_interrupted, responses)):
                break
        for response in responses:
            if "error" in response:
                raise self.problem(response["status"], response["error"])
            if response["_shards"]["failed"]:
                failure = response["_shards"]["failures"][0]
                raise self.problem(503, failure.get("reason", failure))
        return list(responses)

    def pages(self, index: str, body: Body) -> Iterator[list[Mapping[str, Any]]]:
        """Yield all hits of a search with `size` and `sort`, in pages. Raises as `search`."""
        while True:
            hits = list(self.search(index, body)["hits"]["hits"])
            if hits:
                yield hits
            if len(hits) < body["size"]:
                return
            body = {**body, "search_after": hits[-1]["sort"]}

    def documents(self, index: str, ids: Collection[str], *, vectors: bool) -> dict[str, Mapping[str, Any]]:
        """Return the newest sources of these ids, also before a refresh; without unknown and invalid ids."""
        valid = [each for each in dict.fromkeys(ids) if ID_PATTERN.fullmatch(each)]
        found = {}
        for start in range(0, len(valid), GET_DOCUMENTS):
            with self.explained():
                answer = self.retrying.perform_request(
                    "POST",
                    f"/{index}/_mget",
                    params={"_source_exclude_vectors": "false" if vectors else "true"},
                    headers=JSON_HEADERS,
                    body={"ids": valid[start : start + GET_DOCUMENTS]},
                )
            for document in answer["docs"]:
                if "error" in document:
                    raise self.problem(503, document["error"])
                if document["found"]:
                    found[document["_id"]] = document["_source"]
        return found

    def bulk(self, index: str, operations: Sequence[Body]) -> None:
        """Send a bulk request, which may be repeated. Raises IndexUnavailable if one of its operations fails."""
        if not operations:
            return
        with self.explained():
            answer = self.retrying.bulk(index=index, operations=operations)
        for item in answer["items"]:
            for result in item.values():
                if "error" in result:
                    raise self.problem(result["status"], result["error"])

    def refresh(self, index: str) -> None:
        """Make all acknowledged writes visible to searches. Raises UnknownGeneration if the index was deleted."""
        with self.explained():
            self.retrying.indices.refresh(index=index)

    def create_index(self, index: str, **body: Any) -> None:
        """Create an index if it does not exist, and wait until it can be written to.

        Raises:
            IndexUnavailable: no node can hold it; the message has Elasticsearch's reason, such as a full disk.
        """
        client = self.client.options(request_timeout=PLACED_SECONDS + 10)
        with self.explained():
            try:
                made = client.indices.create(index=index, timeout=f"{PLACED_SECONDS}s", **body)
                placed = made["shards_acknowledged"]
            except BadRequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise
                # Not `wait_for_status`: an index that another process has just created counts as yellow.
                shards = body["settings"]["index"]["number_of_shards"]
                health = client.options(ignore_status=408).cluster.health(
                    index=index, wait_for_active_shards=shards, timeout=f"{PLACED_SECONDS}s"
                )
                placed = not health["timed_out"]
            if not placed:
                raise IndexUnavailable(
                    f"Elasticsearch at {self.settings.place} cannot allocate {index} "
                    f"({self._allocation_problem(index)}); see GET _cluster/allocation/explain"
                )

    def _allocation_problem(self, index: str) -> str:
        """Return the reasons of the nodes for not allocating the first shard of the index."""
        explained = self.client.cluster.allocation_explain(index=index, shard=0, primary=True)
        nodes = explained.get("node_allocation_decisions", ())
        reasons = dict.fromkeys(each["explanation"] for node in nodes for each in node.get("deciders", ()))
        return "; ".join(reasons)[:600] or str(explained.get("allocate_explanation", "no reason was given"))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Convert exceptions of the client to ours."""
        try:
            yield
        except ApiError as error:
            raise self.api_problem(error) from error
        except TransportError as error:
            raise self.unreachable(error) from error
        except RecursionError as error:
            raise IndexUnavailable(
                f"Elasticsearch at {self.settings.place} returned JSON that is nested too deeply; it is not of this "
                f"library, so find and delete the documents of another program in {self.settings.name}-*"
            ) from error

    def unreachable(self, error: TransportError) -> IndexUnavailable:
        """Return the error for a cluster that did not answer."""
        problem = "did not answer in time" if isinstance(error, ConnectionTimeout) else "cannot be reached"
        return IndexUnavailable(
            f"Elasticsearch at {self.settings.place} {problem} ({type(error).__name__}: {error.message!s:.200}); check "
            f"that it runs, its address, and if it is https its certificate (a private authority's: {PREFIX}CA_CERTS)"
        )

    def api_problem(self, error: ApiError) -> IndexUnavailable | UnknownGeneration:
        """Return the error for a request that the cluster refused."""
        if isinstance(error, AuthenticationException | AuthorizationException):
            return IndexUnavailable(
                f"Elasticsearch at {self.settings.place} refused access ({error.status_code}); check {PREFIX}API_KEY, "
                f"or {PREFIX}USERNAME and {PREFIX}PASSWORD, and that they may manage indices {self.settings.name}-*"
            )
        body = error.body if isinstance(error.body, dict) else {}
        return self.problem(error.status_code, body.get("error", str(error.message)))

    def problem(self, status: int, error: Any) -> IndexUnavailable | UnknownGeneration:
        """Return the error for a status and the `error` member of a response."""
        kind, reason = error_text(error)
        # If the index is deleted during the request, this exception is a cause of another one.
        if "index_not_found_exception" in _kinds(error):
            return UnknownGeneration(f"an index does not exist ({reason}); its generation was retired: start again")
        return IndexUnavailable(f"Elasticsearch at {self.settings.place} answered {status}: {kind}: {reason:.300}")


def connect(settings: ElasticSettings) -> Elasticsearch:
    """Return a client of the cluster; nothing is sent yet. Server certificates are always checked.

    Raises:
        InvalidInput: the file of certificate authorities cannot be read.
    """
    # The client logs every request with its path, and each failed attempt with a traceback; our errors are enough.
    logging.getLogger("elastic_transport").setLevel(logging.ERROR)
    options: dict[str, Any] = {}
    if settings.api_key:
        options["api_key"] = settings.api_key
    elif settings.username:
        options["basic_auth"] = (settings.username, settings.password)
    if settings.ca_certs:
        options["ca_certs"] = settings.ca_certs
        try:
            ssl.create_default_context(cafile=settings.ca_certs)
        except OSError as error:
            raise InvalidInput(
                f"{PREFIX}CA_CERTS is {settings.ca_certs!r:.200}, which is not a readable file of certificates in PEM "
                f"form ({error})"
            ) from error
    return Elasticsearch(
        list(settings.hosts), request_timeout=settings.request_seconds, max_retries=0, retry_on_timeout=False, **options
    )


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _was_interrupted(response: Mapping[str, Any]) -> bool:
    """Return whether the shard moved, or its index was deleted, between the steps of a search; then search again."""
    failures = response.get("_shards", {}).get("failures", ())
    errors = [response.get("error"), *(failure.get("reason") for failure in failures)]
    return any("search_context_missing_exception" in _kinds(error) for error in errors)


def _kinds(error: Any) -> Iterator[str]:
    """Yield the type of an `error` member, and the types of its causes."""
    if isinstance(error, dict):
        yield str(error.get("type"))
        for cause in (error.get("caused_by"), *error.get("root_cause", ())):
            yield from _kinds(cause)


def error_text(error: Any) -> tuple[str, str]:
    """Return type and reason of an `error` member, with its innermost cause."""
    if not isinstance(error, dict):
        return "error", str(error)
    for cause in (error.get("caused_by"), *error.get("root_cause", ())):
        if isinstance(cause, dict) and cause.get("reason") not in {None, error.get("reason")}:
            return str(error.get("type", "error")), f"{error.get('reason')} ({': '.join(error_text(cause))})"
    return str(error.get("type", "error")), str(error.get("reason", ""))
