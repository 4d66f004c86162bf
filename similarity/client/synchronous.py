"""The client for programs without `async`."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Concatenate, ParamSpec, Self

import httpx2

from similarity.client import asking, judging, keeping, writing
from similarity.client.call import Answer, Attempt, Call, Reply
from similarity.client.connection import Connection, late, new_request_id, reply_of
from similarity.client.methods import like
from similarity.client.problems import Unreachable
from similarity.client.question import HITS, PAGES, Question
from similarity.client.ranking import Hit, Ranking
from similarity.client.retries import Retries
from similarity.client.writing import Change, LineResult

Arguments = ParamSpec("Arguments")


def _sends(build: Callable[Arguments, Call[Answer]]) -> "Callable[Concatenate[Client, Arguments], Answer]":
    """The method that builds a call of these arguments, sends it and returns its answer."""

    @like(build)
    def method(client: "Client", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return client.send(build(*args, **kwargs))

    return method


def _pages(build: Callable[Arguments, Question]) -> "Callable[Concatenate[Client, Arguments], Iterator[Ranking]]":
    """The method that asks a question of these arguments, page after page."""

    @like(build, doc=PAGES)
    def pages(client: "Client", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Ranking]:
        return client.ask_on(build(*args, **kwargs))

    return pages


def _hits(build: Callable[Arguments, Question]) -> "Callable[Concatenate[Client, Arguments], Iterator[Hit]]":
    """The method that asks a question of these arguments and gives hit after hit."""

    @like(build, doc=HITS)
    def hits(client: "Client", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Hit]:
        return (hit for page in client.ask_on(build(*args, **kwargs)) for hit in page.hits)

    return hits


class Client:
    """The search service at `url`; a context manager, which closes its connections.

    `timeout` is how many seconds the network may be silent; `retries` says how often and how long a
    call is tried. `http` is an httpx2 client of your own (proxies, certificates), which you close.
    One client may be used by several threads.

    Every method raises a `Problem` where the service says no, `Unreachable` where it cannot be
    asked, and `UnreadableAnswer` where something else answers.

    Raises:
        InvalidInput: an argument cannot be used.
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
        """Closes the connections."""
        if self._owns_http:
            self._http.close()

    def send(self, call: Call[Answer]) -> Answer:
        """Sends a call, again where that is safe and may help, and returns its answer."""
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
            with closing(self._http.send(request, stream=True, follow_redirects=False)) as response:
                for chunk in response.iter_bytes():
                    late(attempt, time.monotonic())
                    body += chunk
        except httpx2.RequestError as error:
            return self._connection.failed(error, request_id)
        return reply_of(response, bytes(body), request_id)

    def ask_on(self, question: Question) -> Iterator[Ranking]:
        """The answer to `question` page by page."""
        asked: Question | None = question
        while asked is not None:
            ranking = self.send(asking.ask(asked))
            yield ranking
            asked = asked.after(ranking)

    def bulk(self, changes: Iterable[Change], *, at_once: int = writing.LINES_AT_ONCE) -> Iterator[LineResult]:
        """Sends many changes, `at_once` a request, and yields what became of each, in order.

        Nothing is sent before the first result is asked for: iterate over it.
        """
        for call in writing.bulk(changes, at_once=at_once):
            yield from self.send(call)

    ask = _sends(asking.ask)
    similar = _sends(asking.similar)
    similar_text = _sends(asking.similar_text)
    pages = _pages(Question.about)
    hits = _hits(Question.about)
    batch = _sends(asking.batch)
    table = _sends(asking.table)
    find = _sends(asking.find)
    company = _sends(asking.company)
    match = _sends(asking.match)
    map = _sends(asking.map_of)
    ready = _sends(asking.ready)

    put = _sends(writing.put)
    delete = _sends(writing.delete)
    write_status = _sends(writing.write_status)
    erase = _sends(writing.erase)
    erasure = _sends(writing.erasure)

    feedback = _sends(judging.feedback)
    verdicts = _sends(judging.verdicts)
    history = _sends(judging.history)
    pairs = _sends(judging.pairs)
    next_to_label = _sends(judging.next_to_label)

    lists = _sends(keeping.lists)
    saved_list = _sends(keeping.saved_list)
    save_list = _sends(keeping.save_list)
    delete_list = _sends(keeping.delete_list)
    list_hits = _sends(keeping.list_hits)
    looked = _sends(keeping.looked)
