"""What a request may send."""

import asyncio
import gzip
import time
from typing import Any

import pytest

from services.search.guards.callers import CALLER, Caller
from services.search.guards.limits import BUFFER_BYTES, Bodies
from services.search.settings import ServiceSettings
from tests.services.search.asgi import Answer, Inner, ask, asked, http

SETTINGS = ServiceSettings(body_bytes=100, upload_bytes=1000, body_seconds=0.1, held_bytes=150)


def post(*parts: bytes | float, path: str = "/similar", inner: Any = None, **headers: Any) -> Answer:
    headers = headers or {"transfer_encoding": "chunked"}
    return ask(Bodies(inner or Inner(), settings=SETTINGS), http(path, "POST", **headers), parts)


def test_a_body_reaches_the_application_whole() -> None:
    assert post(b'{"a"', b": 1", b"}").body == b'{"a": 1}'
    assert post(b"12345", content_length="5").body == b"12345"


def test_a_body_of_just_the_limit_is_taken_and_one_byte_more_is_413() -> None:
    assert post(b"x" * 60, b"x" * 40).status == 200
    refusal = post(b"x" * 60, b"x" * 41)
    assert refusal.status == 413
    assert refusal.problem == "body-too-large"
    assert b"more than 100 bytes" in refusal.body
    assert refusal.headers["connection"] == "close"


def test_a_declared_body_too_large_is_413_too() -> None:
    assert post(b"x" * 101, content_length="101").status == 413


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/", "/assets/page.js"])
def test_an_address_that_anybody_may_ask_takes_no_body(path: str) -> None:
    refusal = post(b"x", path=path)
    assert (refusal.status, refusal.problem) == (413, "body-too-large")


def test_a_client_that_waits_for_our_word_hears_no_before_it_sends() -> None:
    parts: list[bytes | float] = [5.0, b"never read"]
    started = time.perf_counter()
    assert post(*parts, content_length="101", expect="100-continue").status == 413
    assert time.perf_counter() - started < 1


def test_uploads_may_be_larger_but_all_held_bodies_together_are_limited() -> None:
    upload = {"content_type": "text/csv", "transfer_encoding": "chunked"}
    assert post(b"x" * 101, path="/match", **upload).status == 200
    refusal = post(b"x" * 151, path="/match", **upload)
    assert refusal.status == 503
    assert refusal.problem == "overloaded"


def test_bodies_are_let_go_when_their_requests_end() -> None:
    app = Bodies(Inner(), settings=SETTINGS)
    scope = http("/similar", "POST", transfer_encoding="chunked")
    assert {ask(app, dict(scope), [b"x" * 90]).status for _ in range(5)} == {200}
    assert {ask(app, dict(scope), [b"x" * 90, b"x" * 90]).status for _ in range(3)} == {413}
    assert ask(app, dict(scope), [b"x" * 90]).status == 200


def test_the_application_is_not_asked_about_what_is_refused() -> None:
    inner = Inner()
    post(b"x" * 101, inner=inner)
    assert inner.scopes == []


def test_a_body_that_dribbles_in_is_408() -> None:
    started = time.perf_counter()
    refusal = post(b"a", 0.06, b"b", 0.06, b"c", 0.06, b"d")
    assert refusal.status == 408
    assert refusal.problem == "slow-body"
    assert refusal.headers["connection"] == "close"
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "GZIP", "identity, gzip"])
def test_compressed_bodies_are_415_and_never_unpacked(encoding: str) -> None:
    refusal = post(gzip.compress(b"0" * 100_000)[:90], content_encoding=encoding, transfer_encoding="chunked")
    assert refusal.status == 415
    assert refusal.problem == "compressed-body"
    assert post(b"1", content_encoding="identity", content_length="1").status == 200


def test_a_client_that_hangs_up_gets_no_answer_and_is_not_worked_for() -> None:
    inner = Inner()
    assert post(inner=inner, content_length="5").messages == []
    assert inner.scopes == []


def test_a_request_without_a_body_is_not_read() -> None:
    inner = Inner()
    app = Bodies(inner, settings=SETTINGS)
    assert ask(app, http()).status == 200
    assert ask(app, http("/x", "DELETE", content_length="0")).status == 200
    assert len(inner.scopes) == 2


def test_unfinished_bodies_are_limited_for_each_caller() -> None:
    most = 4 * BUFFER_BYTES
    app = Bodies(Inner(seconds=0.3), settings=ServiceSettings(body_seconds=5.0, unfinished_bytes=most))
    upload = http("/match", "POST", content_type="text/csv", transfer_encoding="chunked")
    ann, bob = ({**upload, CALLER: Caller(name, frozenset())} for name in ("ann", "bob"))

    async def two_and_one_more() -> list[Answer]:
        # The third is too much: two buffers and two halves are there already.
        half = b"x" * (BUFFER_BYTES // 2 + 1)
        waiting = [asyncio.create_task(asked(app, dict(ann), [half, 0.2, b"x"])) for _ in range(2)]
        await asyncio.sleep(0.05)
        refused = await asked(app, dict(ann), [b"x"])
        of_another = await asked(app, dict(bob), [half, b"x"])
        return [refused, of_another, *await asyncio.gather(*waiting), await asked(app, dict(ann), [half, b"x"])]

    refused, *others = asyncio.run(two_and_one_more())
    assert (refused.status, refused.problem, refused.headers["retry-after"]) == (429, "rate-limited", "1")
    assert [each.status for each in others] == [200] * 4


def test_a_body_that_has_arrived_no_longer_counts_as_unfinished() -> None:
    app = Bodies(Inner(seconds=0.2), settings=ServiceSettings(unfinished_bytes=BUFFER_BYTES + 10))

    async def two_at_once() -> list[Answer]:
        scopes = [http("/match", "POST", content_type="text/csv", content_length="9") for _ in range(2)]
        first = asyncio.create_task(asked(app, scopes[0], [b"x" * 9]))
        await asyncio.sleep(0.05)
        return [await asked(app, scopes[1], [b"x" * 9]), await first]

    assert [each.status for each in asyncio.run(two_at_once())] == [200, 200]
