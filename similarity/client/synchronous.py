"""The client for programs without `async`."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Concatenate, ParamSpec, Self

import httpx2

from similarity.client import feedback as feedback_calls
from similarity.client import queries, saved_lists, writes
from similarity.client.call import Answer, Attempt, Call, Reply
from similarity.client.connection import Connection, check_encoding, check_size, new_request_id, reply_of
from similarity.client.deadline import deadline
from similarity.client.methods import with_signature_of
from similarity.client.problems import Unreachable
from similarity.client.question import HITS, PAGES, Question
from similarity.client.ranking import Hit, Ranking
from similarity.client.retries import Retries
from similarity.client.writes import Change, LineResult

Arguments = ParamSpec("Arguments")


def _sends(build: Callable[Arguments, Call[Answer]]) -> "Callable[Concatenate[Client, Arguments], Answer]":
    """Return a method that builds a call from its arguments, sends it and returns its answer."""

    @with_signature_of(build)
    def method(client: "Client", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return client.send(build(*args, **kwargs))

    return method


def _pages(build: Callable[Arguments, Question]) -> "Callable[Concatenate[Client, Arguments], Iterator[Ranking]]":
    """Return a method that runs a query of its arguments and yields its pages."""

    @with_signature_of(build, doc=PAGES)
    def pages(client: "Client", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Ranking]:
        return client.ask_on(build(*args, **kwargs))

    return pages


def _hits(build: Callable[Arguments, Question]) -> "Callable[Concatenate[Client, Arguments], Iterator[Hit]]":
    """Return a method that runs a query of its arguments and yields its hits."""

    @with_signature_of(build, doc=HITS)
    def hits(client: "Client", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Hit]:
        return (hit for page in client.ask_on(build(*args, **kwargs)) for hit in page.hits)

    return hits


class Client:
    """A client of the search service at `url`; a context manager that closes its connections.

    `timeout`: seconds that the network may be silent. `retries`: how often and how long a call is tried.
    `http`: your own httpx2 client (proxies, certificates), which you close. Thread-safe.

    Every method raises a `Problem` for an error response, `Unreachable` if there is no response, and
    `UnreadableAnswer` if the response is not of this API.

    Raises:
        InvalidInput: an argument is invalid.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        http: httpx2.Client | None = None,
    ) -> None:
        self._connection = Connection(url=url, api_key=api_key, timeout=timeout, retries=retries or Retries())
        self._http = http or httpx2.Client()
        self._owns_http = http is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            self._http.close()

    def send(self, call: Call[Answer]) -> Answer:
        """Send a call, with retries, and return its answer."""
        request_id = new_request_id()
        conversation = self._connection.conversation(call)
        attempt = next(conversation)
        while True:
            time.sleep(attempt.after)
            outcome = self._try(call, attempt, request_id)
            try:
                attempt = conversation.send(outcome)
            except StopIteration as end:
                answer: Answer = end.value
                return answer

    def _try(self, call: Call[Answer], attempt: Attempt, request_id: str) -> Reply | Unreachable:
        request = self._connection.request(call, attempt, request_id=request_id, http=self._http)
        body = bytearray()
        try:
            with (
                deadline(attempt.until),
                closing(self._http.send(request, stream=True, follow_redirects=False)) as response,
            ):
                check_encoding(response, request_id)
                for chunk in response.iter_bytes():
                    body += chunk
                    check_size(body, request_id)
        except httpx2.RequestError as error:
            return self._connection.failed(error, request_id)
        return reply_of(response, bytes(body), request_id)

    def ask_on(self, question: Question) -> Iterator[Ranking]:
        """Yield the pages of the ranking of `question`."""
        page: Question | None = question
        while page is not None:
            ranking = self.send(queries.ask(page))
            yield ranking
            page = page.after(ranking)

    def bulk(self, changes: Iterable[Change], *, at_once: int = writes.LINES_PER_REQUEST) -> Iterator[LineResult]:
        """Send many changes, `at_once` per request, and yield the result of each, in order.

        Requests are sent only while you iterate over the results.
        """
        for call in writes.bulk(changes, at_once=at_once):
            yield from self.send(call)

    ask = _sends(queries.ask)
    similar = _sends(queries.similar)
    similar_text = _sends(queries.similar_text)
    pages = _pages(Question.about)
    hits = _hits(Question.about)
    batch = _sends(queries.batch)
    table = _sends(queries.table)
    find = _sends(queries.find)
    company = _sends(queries.company)
    match = _sends(queries.match)
    map = _sends(queries.map_of)
    ready = _sends(queries.ready)

    put = _sends(writes.put)
    delete = _sends(writes.delete)
    write_status = _sends(writes.write_status)
    erase = _sends(writes.erase)
    erasure = _sends(writes.erasure)

    feedback = _sends(feedback_calls.feedback)
    verdicts = _sends(feedback_calls.verdicts)
    history = _sends(feedback_calls.history)
    pairs = _sends(feedback_calls.pairs)
    next_to_label = _sends(feedback_calls.next_to_label)

    lists = _sends(saved_lists.lists)
    saved_list = _sends(saved_lists.saved_list)
    save_list = _sends(saved_lists.save_list)
    delete_list = _sends(saved_lists.delete_list)
    list_hits = _sends(saved_lists.list_hits)
    looked = _sends(saved_lists.looked)
