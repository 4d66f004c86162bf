import asyncio

import pytest
from fastapi.testclient import TestClient
from starlette.types import Receive, Scope, Send

from services.search.guards.envelope import Envelope
from services.search.guards.lifecycle import Lifecycle
from services.search.guards.logs import JsonLines
from tests.services.search.asgi import Answer, ask, asked, http

PATHS = ["/", "/docs", "/assets/page.js", "/similar/acme", "/companies?q=a", "/healthz", "/openapi.json"]


@pytest.mark.parametrize("path", [*PATHS, "/nothing", "/similar/nobody", "/similar/acme?k=0"])
def test_every_answer_keeps_browsers_to_this_host(client: TestClient, path: str) -> None:
    headers = client.get(path, headers={"Origin": "https://elsewhere.example"}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("path", PATHS)
def test_head_answers_like_get_without_a_body(client: TestClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-type"] == get.headers["content-type"]


def test_a_request_that_hangs_at_the_end_is_answered_and_leaves_no_traceback() -> None:
    """The server would log a traceback for an exception, also for CancelledError."""
    lifecycle = Lifecycle()

    async def hang(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async def stopped() -> Answer:
        answering = asyncio.create_task(asked(Envelope(hang, lifecycle=lifecycle), http()))
        await asyncio.sleep(0.01)
        lifecycle.stop()
        answering.cancel()
        return await answering

    answer = asyncio.run(stopped())
    assert (answer.status, answer.problem) == (503, "stopping")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/similar/acme?k=1&k=2", 422),
        ("/similar/acme?rank=cosine&rank=cosine", 422),
        ("/similar/acme?country=Italy&country=France", 200),
        ("/companies?q=a&q=b", 422),
    ],
)
def test_a_parameter_that_is_no_list_is_given_once(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert ("is given more than once" in answer.text) == (status == 422)


@pytest.mark.parametrize("path", ["/", "/assets/page.js"])
@pytest.mark.parametrize("wanted", ["bytes=0-1", "bytes=999999999-", "lines=1", "bytes=x"])
def test_a_range_is_ignored(client: TestClient, path: str, wanted: str) -> None:
    answer = client.get(path, headers={"Range": wanted})
    assert (answer.status_code, answer.content) == (200, client.get(path).content)


@pytest.mark.parametrize("path", [*PATHS, "/nothing", "/similar/acme?k=0"])
def test_every_answer_has_the_id_of_its_request(client: TestClient, path: str) -> None:
    ids = [client.get(path).headers["x-request-id"] for _ in range(2)]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    "given", ["0af7651916cd43dd", "0AF7651916CD43DD8448EB211C80319C", "67e55044-10b1-426f-9247-bb680e5fe0c8"]
)
def test_a_random_id_of_the_caller_is_the_id_of_the_request(client: TestClient, given: str) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Acme-Corporation",
        "jane.doe",
        "deadbeef",
        "4917012345678",
        "0af7651916cd43dd8448eb211c80319c0",
        'a"b',
        "ä",
        "a\tb",
        f"cs_0123456789ab_{'x' * 43}",
    ],
)
def test_an_id_that_could_be_a_name_or_do_harm_in_a_log_is_replaced(client: TestClient, given: str) -> None:
    answered = client.get("/healthz", headers={b"X-Request-Id": given.encode("latin-1")}).headers["x-request-id"]
    assert answered != given
    assert answered.isalnum()


def test_an_unforeseen_error_is_a_problem_with_the_id_of_its_log_line(caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("boom")

    caplog.handler.setFormatter(JsonLines())
    given = "0af7651916cd43dd"
    answer = ask(Envelope(breaks), http("/a\nforged line", x_request_id=given))
    assert (answer.status, answer.problem) == (500, "internal-error")
    assert answer.headers["x-request-id"] == given
    assert b"boom" not in answer.body
    (line,) = caplog.text.splitlines()
    assert f'"request_id": "{given}"' in line
