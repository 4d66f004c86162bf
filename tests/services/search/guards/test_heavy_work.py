"""What a request costs follows what it does, also where only its body or the state of a memory tells."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from numpy.typing import NDArray
from starlette.types import Message, Receive, Scope, Send

from services.search.app import create_app
from services.search.asking import service
from services.search.asking.schemas import MAX_HITS
from services.search.asking.service import QUICKLY_FILTERED, QUICKLY_NAMED, QUICKLY_RANKED
from services.search.guards.concurrency import Admission, Gate, Gates, begin_heavy_work
from services.search.guards.guards import Guards
from services.search.settings import ServiceSettings
from services.search.wire.failures import answer_failures
from similarity.errors import InvalidInput
from similarity.index.sqlite import SqliteIndex
from similarity.search.explanations.explainer import SMALL_BATCH
from similarity.search.searcher import Searcher
from tests.services.search.asgi import Answer, asked, http
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import company

BURST = 100
WORDS = {"anchors": [{"text": "makes leather shoes"}], "reasons": 0}


class Encoder(AxisEncoder):
    """Encodes everything as the first axis; `before` is called first."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.before = before

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        self.before()
        return super().encode(texts, progress)


def client_of(index: SqliteIndex, encoder: AxisEncoder, burst: int = BURST) -> TestClient:
    guards = Guards(settings=ServiceSettings(rate=0.001, burst=burst), limited=True)
    return TestClient(create_app(index=index, encoder=encoder, guards=guards), base_url="http://localhost:8080")


def cost(client: TestClient, method: str, path: str, **request: Any) -> int:
    """How many requests one counts as."""

    def left() -> int:
        told = client.get("/companies?q=a").headers["ratelimit"]
        return int(told.removeprefix('"caller";r=').partition(";")[0])

    before = left()
    answer = client.request(method, path, **request)
    assert answer.status_code == 200, answer.text
    return before - left() - 1


@pytest.fixture
def crowded(index: SqliteIndex) -> SqliteIndex:
    """More companies than are explained quickly."""
    index.upsert("first", [company(f"more-{number}", 0.3 + number / 1000, 5) for number in range(20)])
    return index


def test_free_words_in_a_body_count_as_free_words_in_an_address(crowded: SqliteIndex) -> None:
    client = client_of(crowded, Encoder())
    assert cost(client, "GET", "/similar?text=sews leather shoes&reasons=0") == 10
    assert cost(client, "POST", "/similar", json=WORDS) == 10
    # It is remembered now, so that nothing is encoded.
    assert cost(client, "POST", "/similar", json=WORDS) == 1
    assert cost(client, "POST", "/map", json={"anchors": [{"text": "rents out boats"}]}) == 10
    assert cost(client, "POST", "/similar", json={"anchors": [{"company": "acme"}], "reasons": 0}) == 1


def test_many_reasons_are_heavy_until_they_are_remembered(crowded: SqliteIndex) -> None:
    client = client_of(crowded, Encoder())
    assert SMALL_BATCH == 4
    assert cost(client, "GET", "/similar/acme?k=20") == 1  # an anchor and three hits
    assert cost(client, "GET", "/similar/acme?k=20&reasons=20") == 10
    assert cost(client, "GET", "/similar/acme?k=20&reasons=20") == 1
    assert cost(client, "GET", "/similar/acme?k=20&reasons=0") == 1


def test_a_saved_list_in_free_words_costs_what_its_question_does(crowded: SqliteIndex) -> None:
    client = client_of(crowded, Encoder())
    assert client.put("/lists/shoes", json={"question": WORDS}).status_code == 201
    assert cost(client, "GET", "/lists/shoes/hits") == 10


def test_looking_up_many_companies_is_heavy(crowded: SqliteIndex) -> None:
    client = client_of(crowded, Encoder(), burst=200)
    few, many = ([f"unknown-{number}" for number in range(count)] for count in (QUICKLY_NAMED, QUICKLY_NAMED + 1))
    about = {"anchors": [{"company": "acme"}], "reasons": 0}
    assert cost(client, "POST", "/similar", json={**about, "exclude": few}) == 1
    assert cost(client, "POST", "/similar", json={**about, "exclude": many}) == 10
    assert cost(client, "POST", "/map", json={**about, "exclude": many}) == 10
    assert client.put("/lists/known", json={"companies": ["acme"]}).status_code == 201
    known = {"companies": ["acme", *["boots"] * QUICKLY_NAMED]}
    assert cost(client, "PUT", "/lists/known", json=known) == 10
    assert cost(client, "POST", "/lists/known/companies", json={"add": known["companies"]}) == 10
    assert cost(client, "POST", "/similar", json={**about, "exclude": few, "exclude_lists": ["known"]}) == 10


def test_many_filters_are_heavy(crowded: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(crowded, Encoder())
    for count, tokens in ((QUICKLY_FILTERED, 1), (QUICKLY_FILTERED + 1, 10)):
        fields = [f"attributes.x{number}" for number in range(count)]
        in_address = "".join(f"&filter={field}!=y" for field in fields)
        assert cost(client, "GET", f"/similar/acme?reasons=0{in_address}") == tokens
        asked = {"anchors": [{"company": "acme"}], "filters": [{"field": each, "none_of": ["y"]} for each in fields]}
        assert cost(client, "POST", "/similar/locate", json={**asked, "company": "boots"}) == tokens


def test_many_hits_are_heavy(crowded: SqliteIndex) -> None:
    client = client_of(crowded, Encoder())
    assert cost(client, "GET", f"/similar/acme?reasons=0&k={QUICKLY_RANKED}") == 1
    assert cost(client, "GET", f"/similar/acme?reasons=0&k={QUICKLY_RANKED + 1}") == 10


def test_reading_many_verdicts_is_heavy(crowded: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "QUICKLY_JUDGED", 2)
    monkeypatch.setattr(service, "QUICKLY_RANKED", MAX_HITS)
    client = client_of(crowded, Encoder())
    assert client.put("/lists/known", json={"companies": ["boots"]}).status_code == 201
    for number, tokens in enumerate((1, 1, 10)):
        verdict = {"anchor": "acme", "hit": f"more-{number}", "verdict": "competitor"}
        assert client.post("/feedback", json=verdict).status_code == 201
        assert cost(client, "GET", "/feedback?anchor=acme") == tokens
        assert cost(client, "GET", "/similar/acme?reasons=0&format=xlsx") == tokens
        assert cost(client, "GET", "/lists/known/companies?company=acme") == tokens


def test_a_caller_who_has_too_little_left_hears_so_before_anything_is_encoded(crowded: SqliteIndex) -> None:
    encoder = Encoder()
    client = client_of(crowded, encoder)
    for _ in range(BURST - 5):
        client.get("/companies?q=a")
    refusal = client.post("/similar", json=WORDS)
    assert (refusal.status_code, refusal.json()["type"]) == (429, "/docs#rate-limited")
    # Ten are needed, one of the five left went at the door.
    assert 5_900 <= int(refusal.headers["retry-after"]) <= 6_000
    assert refusal.headers["ratelimit"].startswith('"caller";r=4;')
    assert encoder.texts == []
    assert client.get("/similar/acme?reasons=0").status_code == 200


def test_a_bucket_smaller_than_ten_gives_all_it_holds(crowded: SqliteIndex) -> None:
    client = client_of(crowded, Encoder(), burst=3)
    assert client.post("/similar", json=WORDS).status_code == 200
    assert client.get("/companies?q=a").status_code == 429


def test_free_words_in_a_body_take_no_place_from_quick_requests(crowded: SqliteIndex) -> None:
    begun, may_go_on = threading.Semaphore(0), threading.Event()

    def wait() -> None:
        begun.release()
        assert may_go_on.wait(timeout=20)

    encoder = Encoder(wait)
    guards = Guards(settings=ServiceSettings(at_once=1, heavy_at_once=1, queue=1, queue_seconds=0.2))
    client = TestClient(create_app(index=crowded, encoder=encoder, guards=guards), base_url="http://localhost:8080")
    answers: list[int] = []

    def ask(number: int) -> None:
        body = {"anchors": [{"text": f"several words {number}"}], "reasons": 0}
        answers.append(client.post("/similar", json=body).status_code)

    with client:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        threads[0].start()
        assert begun.acquire(timeout=20)
        # One is inside and encodes. The next waits in vain for the only heavy place; neither keeps the quick one.
        threads[1].start()
        threads[1].join(timeout=20)
        assert answers == [503]
        assert client.get("/similar/acme?reasons=0").status_code == 200
        assert (guards.gates.quick.inside, guards.gates.heavy.inside) == (0, 1)
        may_go_on.set()
        threads[0].join(timeout=20)
    assert answers == [503, 200]
    assert (guards.gates.quick.inside, guards.gates.heavy.inside) == (0, 0)


def test_a_batch_ends_when_its_time_is_over(crowded: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    run = 0

    def slowly(*_: object) -> InvalidInput:
        nonlocal run
        run += 1
        time.sleep(0.05)
        return InvalidInput("slow")

    monkeypatch.setattr(Searcher, "_ranking_or_error", slowly)
    guards = Guards(settings=ServiceSettings(request_seconds=1))
    client = TestClient(create_app(index=crowded, guards=guards), base_url="http://localhost:8080")
    answer = client.post("/similar/batch", json={"questions": [{"anchors": [{"company": "acme"}]}] * 100})
    assert (answer.status_code, answer.json()["type"]) == (503, "/docs#took-too-long")
    assert 0 < run < 100
    assert guards.gates.heavy.inside == 0


def heavy_app(gates: Gates) -> FastAPI:
    """A route whose work turns out to be heavy, at two places, and one without work."""
    app = FastAPI()
    answer_failures(app)

    @app.get("/rest")
    def rest() -> None: ...

    @app.get("/work")
    def work() -> str:
        begin_heavy_work()
        begin_heavy_work()
        return f"{gates.quick.inside} quick, {gates.heavy.inside} heavy"

    app.add_middleware(Admission, gates=gates, seconds=5)
    return app


def work(gates: Gates, times: int) -> list[Answer]:
    async def all_at_once() -> list[Answer]:
        app = heavy_app(gates)
        scope = {**http("/work"), "query_string": b""}
        return await asyncio.gather(*(asked(app, dict(scope)) for _ in range(times)))

    return asyncio.run(all_at_once())


def test_a_request_changes_its_place_once_and_gives_it_back() -> None:
    gates = Gates(quick=Gate(at_once=1, queue=10, seconds=5), heavy=Gate(at_once=1, queue=10, seconds=5))
    answers = work(gates, 5)
    assert [answer.status for answer in answers] == [200] * 5
    # While it works it is among the heavy ones; another may have taken the quick place meanwhile.
    assert all(answer.body.endswith(b'1 heavy"') for answer in answers)
    assert (gates.quick.inside, gates.heavy.inside) == (0, 0)


def test_where_no_heavy_place_is_left_it_is_503_and_no_place_is_lost() -> None:
    gates = Gates(quick=Gate(at_once=2, queue=10, seconds=5), heavy=Gate(at_once=1, queue=0, seconds=5))
    assert asyncio.run(gates.heavy.enter())
    answers = work(gates, 4)
    assert {answer.problem for answer in answers} == {"overloaded"}
    assert {answer.headers["retry-after"] for answer in answers} == {"1"}
    assert (gates.quick.inside, gates.heavy.inside) == (0, 1)


def test_what_is_refused_inside_is_counted_like_what_is_refused_at_the_door(crowded: SqliteIndex) -> None:
    guards = Guards(settings=ServiceSettings(rate=0.001, burst=9), limited=True)
    app = create_app(index=crowded, encoder=Encoder(), guards=guards)
    client = TestClient(app, base_url="http://localhost:8080")
    assert client.get("/companies?q=a").status_code == 200
    assert client.post("/similar", json=WORDS).status_code == 429
    assert guards.metrics.registry.get_sample_value("search_rejected_total", {"reason": "rate-limited"}) == 1


def test_outside_of_a_request_nothing_is_asked_first() -> None:
    begin_heavy_work()


def test_a_request_begun_in_the_context_of_another_asks_for_its_own_place_only() -> None:
    """A server begins a kept-alive connection's next request where the last one ended: in that one's context."""
    gates = Gates(quick=Gate(at_once=2, queue=0, seconds=5), heavy=Gate(at_once=2, queue=0, seconds=5))
    app = heavy_app(gates)
    following: list[asyncio.Task[Answer]] = []

    def request(path: str) -> Scope:
        return {**http(path), "query_string": b""}

    async def begins_the_next(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_begin(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not following:
                following.append(asyncio.create_task(asked(app, request("/work"))))

        await app(scope, receive, send_and_begin)

    async def both() -> list[Answer]:
        return [await asked(begins_the_next, request("/rest")), await following[0]]

    answers = asyncio.run(both())
    assert [answer.status for answer in answers] == [200, 200]
    assert (gates.quick.inside, gates.heavy.inside) == (0, 0)
