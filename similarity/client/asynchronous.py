"""The client for programs with `async`, on asyncio or trio."""

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import Any, Concatenate, ParamSpec, Self

import anyio
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


def _sends(
    build: Callable[Arguments, Call[Answer]],
) -> "Callable[Concatenate[AsyncClient, Arguments], Coroutine[Any, Any, Answer]]":
    """The method that builds a call of these arguments, sends it and returns its answer."""

    @like(build)
    async def method(client: "AsyncClient", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return await client.send(build(*args, **kwargs))

    return method


def _pages(
    build: Callable[Arguments, Question],
) -> "Callable[Concatenate[AsyncClient, Arguments], AsyncIterator[Ranking]]":
    """The method that asks a question of these arguments, page after page."""

    @like(build, doc=PAGES)
    def pages(client: "AsyncClient", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> AsyncIterator[Ranking]:
        return client.ask_on(build(*args, **kwargs))

    return pages


def _hits(
    build: Callable[Arguments, Question],
) -> "Callable[Concatenate[AsyncClient, Arguments], AsyncIterator[Hit]]":
    """The method that asks a question of these arguments and gives hit after hit."""

    @like(build, doc=HITS)
    def hits(client: "AsyncClient", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> AsyncIterator[Hit]:
        question = build(*args, **kwargs)
        return (hit async for page in client.ask_on(question) for hit in page.hits)

    return hits


class AsyncClient:
    """The search service at `url`; an asynchronous context manager, which closes its connections.

    The same as `Client`, whose documentation counts; `http` is an `httpx2.AsyncClient` of your own.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        self._connection = Connection(url=url, api_key=api_key, timeout=timeout, retries=retries or Retries())
        self._http = http or httpx2.AsyncClient()
        self._owns_http = http is None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def send(self, call: Call[Answer]) -> Answer:
        """Sends a call, again where that is safe and may help, and returns its answer."""
        request_id = new_request_id()
        conversation = self._connection.conversation(call)
        attempt = next(conversation)
        while True:
            await anyio.sleep(attempt.after)
            outcome = await self._try(call, attempt, request_id)
            try:
                attempt = conversation.send(outcome)
            except StopIteration as end:
                answer: Answer = end.value
                return answer

    async def _try(self, call: Call[Answer], attempt: Attempt, request_id: str) -> Reply | Unreachable:
        request = self._connection.request(call, attempt, request_id=request_id, http=self._http)
        body = bytearray()
        try:
            async with aclosing(await self._http.send(request, stream=True, follow_redirects=False)) as response:
                async for chunk in response.aiter_bytes():
                    late(attempt, time.monotonic())
                    body += chunk
        except httpx2.RequestError as error:
            return self._connection.failed(error, request_id)
        return reply_of(response, bytes(body), request_id)

    async def ask_on(self, question: Question) -> AsyncIterator[Ranking]:
        """The answer to `question` page by page."""
        asked: Question | None = question
        while asked is not None:
            ranking = await self.send(asking.ask(asked))
            yield ranking
            asked = asked.after(ranking)

    async def bulk(
        self, changes: Iterable[Change], *, at_once: int = writing.LINES_AT_ONCE
    ) -> AsyncIterator[LineResult]:
        """Sends many changes, `at_once` a request, and yields what became of each, in order.

        Nothing is sent before the first result is asked for: iterate over it.
        """
        for call in writing.bulk(changes, at_once=at_once):
            for result in await self.send(call):
                yield result

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
