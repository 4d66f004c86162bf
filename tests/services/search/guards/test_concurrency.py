"""How many are worked on at once, and what the others hear."""

import asyncio
import json
import threading
import time

import pytest
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from services.search.guards.concurrency import SECONDS_SHARED, Admission, Gate, Gates, is_heavy
from services.search.guards.connections import BEYOND_LIMIT
from services.search.guards.envelope import Envelope
from services.search.guards.guards import Guards
from services.search.guards.refusals import secret_in
from services.search.guards.shedding import Shedding
from services.search.settings import ServiceSettings
from tests.services.search.asgi import Answer, Clock, Inner, asked, http


def gates(at_once: int = 2, queue: int = 1, seconds: float = 5.0) -> Gates:
    """Gates with `at_once` quick permits for one key."""
    return Gates(
        quick=Gate(at_once=at_once + 1, queue=queue, seconds=seconds),
        heavy=Gate(at_once=1, queue=1, seconds=seconds),
    )


def full_gates() -> Gates:
    """Gates whose only quick permit is taken."""
    full = gates(at_once=1, queue=0)
    assert asyncio.run(full.quick.enter())
    return full


def answers(app: Admission | Shedding, *scopes: Scope) -> list[Answer]:
    async def all_at_once() -> list[Answer]:
        return await asyncio.gather(*(asked(app, scope) for scope in scopes))

    return asyncio.run(all_at_once())


def test_no_more_are_inside_than_there_are_places() -> None:
    inner, gate = Inner(seconds=0.01), gates(at_once=2, queue=50)
    got = answers(Admission(inner, gates=gate, seconds=5), *[http() for _ in range(20)])
    assert [answer.status for answer in got] == [200] * 20
    assert inner.most_inside == 2
    assert gate.quick.inside == 0
    assert gate.quick.waiting == 0


def test_whoever_finds_the_queue_full_is_told_so_at_once() -> None:
    app = Admission(Inner(seconds=0.05), gates=gates(at_once=2, queue=1), seconds=5)
    got = answers(app, *[http() for _ in range(6)])
    assert [answer.status for answer in got] == [200, 200, 200, 503, 503, 503]
    assert got[-1].problem == "overloaded"
    assert got[-1].headers["retry-after"] == "1"


def test_whoever_waited_long_enough_is_told_so() -> None:
    gate = gates(at_once=1, queue=5, seconds=0.02)
    got = answers(Admission(Inner(seconds=0.1), gates=gate, seconds=5), *[http() for _ in range(3)])
    assert [answer.status for answer in got] == [200, 503, 503]
    assert gate.quick.inside == 0
    assert gate.quick.waiting == 0


def test_those_who_wait_are_served_in_the_order_they_came() -> None:
    async def order() -> list[int]:
        gate, served = Gate(at_once=1, queue=10, seconds=5), []

        async def one(number: int) -> None:
            assert await gate.enter()
            await asyncio.sleep(0)
            served.append(number)
            gate.leave()

        await asyncio.gather(*map(one, range(6)))
        return served

    assert asyncio.run(order()) == [0, 1, 2, 3, 4, 5]


def test_one_key_cannot_keep_the_others_out_of_the_queue() -> None:
    async def served() -> list[list[bool]]:
        gate = Gate(at_once=2, queue=4, seconds=5)

        async def one(key: bytes | None) -> bool:
            entered = await gate.enter(key)
            if entered:
                await asyncio.sleep(0.01)
                gate.leave(key)
            return entered

        asked = {name: [asyncio.create_task(one(key)) for _ in range(number)] for name, key, number in floods}
        await asyncio.sleep(0)
        # Ann's last waiting requests gave their slots up, and she may not take them back.
        assert gate.waiting == gate.queue
        assert [gate.refuses(key) for key in (b"ann", b"bob", None)] == [True, False, False]
        return [await asyncio.gather(*tasks) for tasks in asked.values()]

    floods = [("ann", b"ann", 9), ("bob", b"bob", 1), ("again", b"ann", 3)]
    assert asyncio.run(served()) == [[True] * 5 + [False] * 4, [True], [False] * 3]


def test_a_key_leaves_a_permit_to_others() -> None:
    async def entered() -> list[bool]:
        gate = Gate(at_once=3, queue=2, seconds=0.01)
        return [await gate.enter(key) for key in (b"ann", b"ann", b"ann", b"bob", b"eve")]

    assert asyncio.run(entered()) == [True, True, False, True, False]


def test_while_several_keys_send_requests_none_has_more_than_a_third_of_the_permits() -> None:
    async def most() -> list[int]:
        clock = Clock()
        gate = Gate(at_once=6, queue=0, seconds=5, clock=clock)

        async def taken(key: bytes) -> int:
            number = 0
            while await gate.enter(key):
                number += 1
            for _ in range(number):
                gate.leave(key)
            return number

        counts = [await taken(b"a"), await taken(b"b"), await taken(b"a")]
        clock.now += SECONDS_SHARED
        return [*counts, await taken(b"a")]

    assert asyncio.run(most()) == [5, 2, 2, 5]


def test_a_key_that_is_alone_never_takes_the_last_heavy_permit() -> None:
    async def entered() -> list[bool]:
        heavy = Guards(settings=ServiceSettings(heavy_at_once=1, queue=1, queue_seconds=0.05)).gates.heavy
        return [await heavy.enter(key) for key in (b"ann", b"ann", b"bob")]

    assert asyncio.run(entered()) == [True, False, True]


def test_a_key_has_as_many_quick_permits_as_the_setting_says() -> None:
    async def entered() -> list[bool]:
        quick = Guards(settings=ServiceSettings(at_once=2, queue=1, queue_seconds=0.05)).gates.quick
        return [await quick.enter(b"ann") for _ in range(3)]

    assert asyncio.run(entered()) == [True, True, False]


def test_a_request_that_waits_for_a_permit_of_its_own_key_lets_others_pass() -> None:
    async def order() -> list[str]:
        gate, served = Gate(at_once=2, queue=5, seconds=5), list[str]()
        await gate.enter(b"bob")
        gate.leave(b"bob")
        await gate.enter(b"ann")

        async def one(key: bytes) -> None:
            assert await gate.enter(key)
            served.append(key.decode())

        waiting = [asyncio.create_task(one(key)) for key in (b"ann", b"bob", b"bob")]
        await asyncio.sleep(0)
        assert gate.waiting == 2
        gate.leave(b"ann")
        await waiting[0]
        gate.leave(b"ann")
        gate.leave(b"bob")
        await asyncio.gather(*waiting)
        return served

    assert asyncio.run(order()) == ["bob", "ann", "bob"]


@pytest.mark.parametrize("header", [b"Bearer secret", b"bEaReR  secret", b"bearer\tsecret", b" Bearer secret "])
def test_a_key_is_one_key_however_its_header_is_written(header: bytes) -> None:
    assert secret_in(header) == b"secret"


@pytest.mark.parametrize("header", [None, b"", b"Bearer", b"secret", b"Basic secret", b"Bearer of secret"])
def test_what_authentication_does_not_accept_is_no_key(header: bytes | None) -> None:
    assert secret_in(header) is None


def test_a_place_is_not_lost_when_its_request_fails_or_is_cancelled_while_it_waits_or_works() -> None:
    async def places_left() -> tuple[int, int]:
        gate = Gate(at_once=1, queue=10, seconds=5)

        async def work(seconds: float) -> None:
            assert await gate.enter()
            try:
                await asyncio.sleep(seconds)
            finally:
                gate.leave()

        tasks = [asyncio.create_task(work(0.01)) for _ in range(4)]
        await asyncio.sleep(0.005)
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # The place is handed over and its new owner cancelled in the same moment.
        first, second = asyncio.create_task(work(0)), asyncio.create_task(work(0))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        return gate.inside, gate.waiting

    assert asyncio.run(places_left()) == (0, 0)


@pytest.mark.parametrize(
    ("path", "method", "heavy"),
    [
        ("/similar/batch", "POST", True),
        ("/companies/bulk", "POST", True),
        ("/match", "POST", True),
        ("/similar", "GET", True),
        ("/similar", "POST", False),
        ("/similar/nike", "GET", False),
        ("/companies", "GET", False),
    ],
)
def test_batches_uploads_and_free_text_are_heavy(path: str, method: str, heavy: bool) -> None:
    assert is_heavy(http(path, method)) is heavy


def test_heavy_requests_leave_the_quick_ones_their_places() -> None:
    app = Admission(Inner(seconds=0.05), gates=gates(at_once=2, queue=0), seconds=5)
    got = answers(app, *[http("/similar/batch", "POST") for _ in range(4)], http(), http())
    assert [answer.status for answer in got] == [200, 200, 503, 503, 200, 200]


def test_health_checks_and_the_page_pass_when_everything_is_full() -> None:
    gate = gates(at_once=1, queue=0)
    app = Shedding(Admission(Inner(seconds=0.05), gates=gate, seconds=5), gates=gate, shed=lambda: None)
    free = ["/healthz", "/readyz", "/", "/assets/page.js"]
    got = answers(app, http(), http(), *map(http, free))
    assert [answer.status for answer in got] == [200, 503, 200, 200, 200, 200]


def test_beyond_the_limit_of_connections_only_health_checks_are_answered() -> None:
    app = Shedding(Inner(), gates=gates(at_once=9, queue=0), shed=lambda: None)
    paths = ["/healthz", "/readyz", "/", "/assets/page.js", "/similar/acme"]
    got = answers(app, *[{**http(path), "state": {BEYOND_LIMIT: True}} for path in paths])
    assert [answer.status for answer in got] == [200, 200, 503, 503, 503]


def test_shedding_answers_before_anything_behind_it_is_asked_and_counts() -> None:
    inner, gate, shed = Inner(), full_gates(), []
    app = Shedding(inner, gates=gate, shed=lambda: shed.append(1))
    (answer,) = answers(app, http('/similar/"quoted"'))
    assert answer.status == 503
    document = json.loads(answer.body)
    assert document["type"] == "/docs#overloaded"
    assert document["instance"] == '/similar/"quoted"'
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert answer.headers["retry-after"] == "1"
    assert inner.scopes == []
    assert shed == [1]


def test_a_shed_answer_has_the_same_members_and_security_headers_as_any_other() -> None:
    gate = full_gates()
    (shed,) = answers(Shedding(Inner(), gates=gate, shed=lambda: None), http())
    refused = asyncio.run(asked(Envelope(Admission(Inner(), gates=gate, seconds=1)), http()))
    assert json.loads(shed.body) == json.loads(refused.body)
    assert set(refused.headers) - set(shed.headers) == {"x-request-id"}
    assert set(shed.headers) <= set(refused.headers)


def test_a_request_that_takes_too_long_is_answered_while_its_thread_goes_on() -> None:
    release, done = threading.Event(), threading.Event()
    app, gate = FastAPI(), gates(at_once=1, queue=0)

    @app.get("/stuck")
    def stuck() -> str:
        release.wait(10)
        done.set()
        return "too late"

    app.add_middleware(Admission, gates=gate, seconds=0.05)

    async def two_requests() -> tuple[Answer, Answer, int]:
        first, second = Answer(), Answer()

        async def ask(answer: Answer) -> None:
            got = await asked(Recorded(app, answer), {**http("/stuck"), "query_string": b""})
            assert got is not None

        asking = asyncio.create_task(ask(first))
        while not first.messages:
            await asyncio.sleep(0.01)
        # The client has its answer; the thread still has its place.
        await ask(second)
        inside = gate.quick.inside
        release.set()
        await asking
        return first, second, inside

    first, second, inside = asyncio.run(two_requests())
    assert first.status == 503
    assert first.problem == "took-too-long"
    assert len(first.messages) == 2
    assert second.problem == "overloaded"
    assert inside == 1
    assert gate.quick.inside == 0
    assert done.is_set()


class Recorded:
    """Shows what was answered before the application has returned."""

    def __init__(self, app: FastAPI, answer: Answer) -> None:
        self.app, self.answer = app, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def recording(message: Message) -> None:
            self.answer.messages.append(message)
            await send(message)

        await self.app(scope, receive, recording)


def test_an_error_after_the_time_was_up_is_logged_and_answers_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    async def fails_late(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.05)
        raise ValueError("late")

    answer = asyncio.run(asked(Admission(fails_late, gates=gates(), seconds=0.01), http()))
    assert [message["type"] for message in answer.messages] == ["http.response.start", "http.response.body"]
    assert "failed after its time limit" in caplog.text


def test_an_error_in_time_is_left_to_others() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("soon")

    gate = gates()
    with pytest.raises(ValueError, match="soon"):
        asyncio.run(asked(Admission(fails, gates=gate, seconds=1), http()))
    assert gate.quick.inside == 0


def test_an_answer_that_has_begun_is_not_interrupted() -> None:
    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.05)
        await send({"type": "http.response.body", "body": b"all of it"})

    answer = asyncio.run(asked(Admission(streams, gates=gates(), seconds=0.01), http()))
    assert (answer.status, answer.body) == (200, b"all of it")


def test_saying_no_costs_a_small_part_of_the_cheapest_answer() -> None:
    app, gate = FastAPI(), full_gates()

    @app.get("/hello")
    async def hello() -> dict[str, str]:
        return {"hello": "world"}

    scope = {**http("/hello"), "query_string": b""}
    refusing = Shedding(app, gates=gate, shed=lambda: None)
    assert seconds_each(refusing, scope) < seconds_each(app, scope) / 3


def seconds_each(app: Shedding | FastAPI, scope: Scope) -> float:
    async def best() -> float:
        times = []
        for _ in range(5):
            started = time.perf_counter()
            for _ in range(100):
                await asked(app, dict(scope))
            times.append((time.perf_counter() - started) / 100)
        return min(times)

    return asyncio.run(best())
