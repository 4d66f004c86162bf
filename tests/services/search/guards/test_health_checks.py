"""A flood of health checks."""

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from services.search.guards import health_checks
from services.search.guards.heads import ANY
from services.search.guards.health_checks import ALLOWANCE, HealthChecks
from services.search.guards.refusals import WAITS, refuse
from services.search.wire import problems
from services.search.wire.problem_documents import Problem
from tests.services.search.asgi import Answer, Clock, ask, asked, http

AT_ONCE = int(ALLOWANCE.burst)


class Service:
    """Answers with its `state`; refuses requests with a body, and all while it stops."""

    def __init__(self) -> None:
        self.asked = 0
        self.state = b"well"
        self.stops = self.silent = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await asyncio.sleep(0)  # so that a flood arrives before the first answer
        if self.silent:
            return
        if self.stops:
            await refuse(Problem(problems.STOPPING, "it stops"), scope, receive, send)
        elif any(name == b"content-length" for name, _ in scope["headers"]):
            await refuse(Problem(problems.BODY_TOO_LARGE, "send none"), scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": self.state})


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_checks, "MILLISECONDS_TO_WAIT", range(10, 20))


def flood(app: HealthChecks, path: str, number: int = AT_ONCE + 1, **headers: str) -> list[Answer]:
    async def ask_all() -> list[Answer]:
        return await asyncio.gather(*(asked(app, http(path, **headers)) for _ in range(number)))

    return asyncio.run(ask_all())


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_of_a_flood_a_few_reach_the_service_and_all_get_its_answer(path: str) -> None:
    service = Service()
    answers = flood(HealthChecks(service, names=[ANY], clock=Clock()), path, 1000)
    assert service.asked == AT_ONCE
    assert {(each.status, each.body, each.headers["content-type"]) for each in answers} == {
        (200, b"well", "text/plain")
    }


def test_a_check_whose_connection_others_need_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app = HealthChecks(Service(), names=[ANY], clock=Clock())
    flood(app, "/readyz")
    monkeypatch.setattr(health_checks, "MILLISECONDS_TO_WAIT", range(3_600_000, 3_600_001))
    scope = http("/readyz")

    async def wait_and_end() -> Answer:
        answer = asyncio.create_task(asked(app, scope))
        while WAITS not in scope.get("state", {}):
            await asyncio.sleep(0)
        scope["state"][WAITS].set()
        return await answer

    answer = asyncio.run(wait_and_end())
    assert (answer.body, answer.headers["connection"]) == (b"well", "close")
    assert WAITS not in scope["state"]


def test_within_a_twentieth_of_a_second_a_flood_gets_the_new_answer() -> None:
    clock, service = Clock(), Service()
    app = HealthChecks(service, names=[ANY], clock=clock)
    flood(app, "/readyz")
    service.state = b"ill"
    assert ask(app, http("/readyz")).body == b"well"
    clock.now += 0.06
    assert [each.body for each in flood(app, "/readyz", 2)] == [b"ill", b"ill"]
    service.stops = True
    clock.now += 0.06
    assert [each.status for each in flood(app, "/readyz", 2)] == [503, 503]


def test_an_answer_is_forgotten_where_the_service_no_longer_gives_one() -> None:
    clock, service = Clock(), Service()
    app = HealthChecks(service, names=[ANY], clock=clock)
    flood(app, "/readyz")
    service.silent = True
    clock.now += 1.1
    flood(app, "/readyz")
    assert service.asked == 2 * AT_ONCE + 1


def test_the_refusal_of_one_check_is_not_the_answer_to_others() -> None:
    clock, service = Clock(), Service()
    app = HealthChecks(service, names=[ANY], clock=clock)
    flood(app, "/readyz")
    clock.now += 0.06
    assert ask(app, http("/readyz", content_length="1")).status == 413
    assert ask(app, http("/readyz")).body == b"well"


def test_other_requests_and_other_names_of_the_service_are_left_to_the_guards_behind() -> None:
    service = Service()
    app = HealthChecks(service, names=["localhost"], clock=Clock())
    flood(app, "/readyz", host="localhost")
    before = service.asked
    for scope in (http("/readyz", host="attacker.example"), http("/readyz", "POST"), http("/similar/acme")):
        ask(app, scope)
    assert service.asked == before + 3
