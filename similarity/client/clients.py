"""The two clients of the search service: `Client`, and `AsyncClient` for asyncio and trio."""

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import aclosing, closing
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Concatenate, Generic, ParamSpec, Self, Unpack, cast, overload

import anyio
import httpx2

from similarity.client import feedback as feedback_calls
from similarity.client import queries, saved_lists, writes
from similarity.client.call import Answer, Call, Reply
from similarity.client.connection import Connection, Http, Incoming
from similarity.client.deadline import bound_connection, deadline
from similarity.client.problems import Problem, Unreachable
from similarity.client.question import Anchor, AnyQuestion, Question, QuestionOptions, as_question
from similarity.client.ranking import Hit, Ranking
from similarity.client.retries import Attempts
from similarity.client.writes import Change, LineResult

Arguments = ParamSpec("Arguments")

SELF = Parameter("self", Parameter.POSITIONAL_ONLY)


class Method(Generic[Arguments, Answer]):
    """A method of both clients: it builds a call from its arguments, sends it and returns the answer.

    It has the name, docstring and parameters of the function that builds the call.
    """

    def __init__(self, build: Callable[Arguments, Call[Answer]]) -> None:
        @wraps(build)
        def method(client: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:
            return client.send(build(*args, **kwargs))

        shown = signature(build)
        parameters = [SELF, *shown.parameters.values()]
        self._method = cast(Any, method)
        self._method.__signature__ = shown.replace(parameters=parameters, return_annotation=shown.empty)

    @overload
    def __get__(self, client: "Client", owner: type) -> Callable[Arguments, Answer]: ...
    @overload
    def __get__(self, client: "AsyncClient", owner: type) -> Callable[Arguments, Coroutine[Any, Any, Answer]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, Arguments], Any]: ...
    def __get__(self, client: object, owner: type) -> Any:
        return self._method.__get__(client, owner)


class Methods(Connection[Http]):
    """The methods of both clients that send one call."""

    ask = Method(queries.ask)
    similar = Method(queries.similar)
    similar_text = Method(queries.similar_text)
    batch = Method(queries.batch)
    table = Method(queries.table)
    find = Method(queries.find)
    company = Method(queries.company)
    segments = Method(queries.segments)
    locate = Method(queries.locate)
    match = Method(queries.match)
    map = Method(queries.map_of)
    ready = Method(queries.ready)

    put = Method(writes.put)
    delete = Method(writes.delete)
    write_status = Method(writes.write_status)
    erase = Method(writes.erase)
    erasure = Method(writes.erasure)

    feedback = Method(feedback_calls.feedback)
    verdicts = Method(feedback_calls.verdicts)
    history = Method(feedback_calls.history)
    pairs = Method(feedback_calls.pairs)
    next_to_label = Method(feedback_calls.next_to_label)

    lists = Method(saved_lists.lists)
    saved_list = Method(saved_lists.saved_list)
    save_list = Method(saved_lists.save_list)
    delete_list = Method(saved_lists.delete_list)
    save_shortlist = Method(saved_lists.save_shortlist)
    change_shortlist = Method(saved_lists.change_shortlist)
    shortlist = Method(saved_lists.shortlist)
    compare_shortlist = Method(saved_lists.compare_shortlist)
    list_hits = Method(saved_lists.list_hits)
    looked = Method(saved_lists.looked)


class Client(Methods[httpx2.Client]):
    """A client of the search service at `url`; a context manager that closes its connections.

    `timeout`: seconds that the network may be silent. `retries`: how often and how long a call is tried.
    `http`: your own httpx2 client (proxies, certificates), which you close. Thread-safe.

    Every method raises a `Problem` for an error response, `Unreachable` if there is no response, and
    `UnreadableAnswer` if the response is not of this API.

    Raises:
        InvalidInput: an argument is invalid.
    """

    _new_http = httpx2.Client

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
        attempts = self._attempts()
        while True:
            try:
                return call.read(self._try(call, attempts))
            except (Problem, Unreachable) as error:
                pause = attempts.pause_after(error)
            time.sleep(pause)

    def _try(self, call: Call[Any], attempts: Attempts) -> Reply:
        arguments = self._request(call, attempts)
        request = self._http.build_request(**arguments, extensions={"trace": bound_connection})
        try:
            with (
                deadline(attempts.until),
                closing(self._http.send(request, stream=True, follow_redirects=False)) as response,
            ):
                incoming = Incoming(response, attempts)
                for chunk in response.iter_bytes():
                    incoming.append(chunk)
        except httpx2.RequestError as error:
            raise self._failure(error, attempts) from error
        return incoming.reply()

    def ask_on(self, question: AnyQuestion) -> Iterator[Ranking]:
        """Yield the pages of the ranking of `question`."""
        page: Question | None = as_question(question)
        while page is not None:
            ranking = self.ask(page)
            yield ranking
            page = page.after(ranking)

    def pages(self, *anchors: str | Anchor, **options: Unpack[QuestionOptions]) -> Iterator[Ranking]:
        """Yield the pages of the ranking (`k` hits each) until the last one. Options as in `similar`."""
        return self.ask_on(Question.about(*anchors, **options))

    def hits(self, *anchors: str | Anchor, **options: Unpack[QuestionOptions]) -> Iterator[Hit]:
        """Yield the hits of all pages; the next page (`k` hits) is requested when needed. Options as in `similar`."""
        return (hit for page in self.pages(*anchors, **options) for hit in page.hits)

    def bulk(self, changes: Iterable[Change], *, at_once: int = writes.LINES_PER_REQUEST) -> Iterator[LineResult]:
        """Send many changes, `at_once` per request, and yield the result of each, in order.

        Requests are sent only while you iterate over the results. NaN is sent as null (no value). A change that has no
        JSON form is not sent: its result is `rejected`. The other changes are sent.
        """
        for part in writes.bulk(changes, at_once=at_once):
            yield from part if isinstance(part, tuple) else self.send(part)


class AsyncClient(Methods[httpx2.AsyncClient]):
    """A client of the search service at `url`; an asynchronous context manager that closes its connections.

    It has the methods of `Client`; see there. `http`: your own `httpx2.AsyncClient`.
    """

    _new_http = httpx2.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def send(self, call: Call[Answer]) -> Answer:
        """Send a call, with retries, and return its answer."""
        attempts = self._attempts()
        while True:
            try:
                return call.read(await self._try(call, attempts))
            except (Problem, Unreachable) as error:
                pause = attempts.pause_after(error)
            await anyio.sleep(pause)

    async def _try(self, call: Call[Any], attempts: Attempts) -> Reply:
        request = self._http.build_request(**self._request(call, attempts))
        try:
            with anyio.fail_after(attempts.remaining()):
                async with aclosing(await self._http.send(request, stream=True, follow_redirects=False)) as response:
                    incoming = Incoming(response, attempts)
                    async for chunk in response.aiter_bytes():
                        incoming.append(chunk)
        except (httpx2.RequestError, TimeoutError) as error:
            raise self._failure(error, attempts) from error
        return incoming.reply()

    async def ask_on(self, question: AnyQuestion) -> AsyncIterator[Ranking]:
        """Yield the pages of the ranking of `question`."""
        page: Question | None = as_question(question)
        while page is not None:
            ranking = await self.ask(page)
            yield ranking
            page = page.after(ranking)

    def pages(self, *anchors: str | Anchor, **options: Unpack[QuestionOptions]) -> AsyncIterator[Ranking]:
        """Yield the pages of the ranking (`k` hits each) until the last one. Options as in `similar`."""
        return self.ask_on(Question.about(*anchors, **options))

    def hits(self, *anchors: str | Anchor, **options: Unpack[QuestionOptions]) -> AsyncIterator[Hit]:
        """Yield the hits of all pages; the next page (`k` hits) is requested when needed. Options as in `similar`."""
        return (hit async for page in self.pages(*anchors, **options) for hit in page.hits)

    async def bulk(
        self, changes: Iterable[Change], *, at_once: int = writes.LINES_PER_REQUEST
    ) -> AsyncIterator[LineResult]:
        """Send many changes, `at_once` per request, and yield the result of each, in order; see `Client.bulk`.

        Requests are sent only while you iterate over the results.
        """
        for part in writes.bulk(changes, at_once=at_once):
            for result in part if isinstance(part, tuple) else await self.send(part):
                yield result
