"""Whatever is sent to whichever operation: the answer is a problem document, never a 5xx, and says what to do."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from tests.services.search.corpus import filled_index

DOCUMENT = json.loads((Path(__file__).parents[3] / "services" / "search" / "openapi.json").read_text(encoding="utf-8"))
OPERATIONS = [
    (method.upper(), path)
    for path, operations in DOCUMENT["paths"].items()
    for method in operations
    if method != "head"
]
WITH_BODY = [
    (method.upper(), path)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    if "requestBody" in operation
]
BODIES = {
    "nothing": b"",
    "not JSON": b"{",
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"k": 1}'.encode("utf-16"),
    "null": b"null",
    "a list": b"[]",
    "a number": b"1",
    "not a number": b'{"k": NaN, "score": NaN, "weight": NaN}',
    "infinity": b'{"k": 1e999, "min_probability": -Infinity}',
    "a lone surrogate": b'{"name": "\\ud800", "text": "\\ud800", "anchor": "\\ud800", "description": "\\udfff"}',
    "a zero byte": b'{"name": "a\\u0000b", "description": "\\u0000", "anchor": "\\u0000"}',
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "a deep member": b'{"anchors": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "as deep as is read": b'{"anchors": ' + b"[" * 99 + b"]" * 99 + b"}",
    "a number of 10,000 digits": b'{"k": ' + b"9" * 10_000 + b"}",
    "the same member twice": b'{"k": 1, "k": 2}',
    "a hundred thousand members": json.dumps({f"m{number}": number for number in range(100_000)}).encode(),
    "ten megabytes of text": b'{"text": "' + b"a" * 10_000_000 + b'"}',
    "wrong types": b'{"anchors": {"company": 1}, "k": "ten", "filters": "country", "rows": 7, "questions": {}}',
    "a prototype": b'{"__proto__": {"k": 1}, "constructor": 1}',
}
KINDS = ("application/json", "application/x-ndjson", "text/csv")
LARGE = 1_000_000
ADDRESSES = {
    "a zero byte": "%00",
    "not UTF-8": "%ff%fe",
    "a lone surrogate": "%ed%a0%80",
    "up and away": "..%2f..%2fetc%2fpasswd",
    "slashes": "%2F%2F%2F",
    "five thousand characters": "a" * 5_000,
    "a line break": "a%0d%0aSet-Cookie:%20a=b",
    "a template": "%7B%7B7*7%7D%7D",
    "SQL": "%27%3B%20DROP%20TABLE%20documents%3B--",
    "words of a query language": "%22%20OR%20*%20NEAR(",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    index = filled_index(tmp_path_factory.mktemp("hostile") / "index.db")
    # Raises what the application raises: a 500 that a handler hides would show as one, a crash as itself.
    with TestClient(create_app(index=index)) as client:
        yield client
    index.close()


def filled(path: str, value: str) -> str:
    while "{" in path:
        before, _, rest = path.partition("{")
        path = before + value + rest.partition("}")[2]
    return path


def assert_handled(answer: Any) -> None:
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"].startswith("application/problem+json"), answer.text[:300]
        assert answer.json()["detail"]


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize(("method", "path"), WITH_BODY, ids=str)
def test_a_hostile_body_is_answered_in_words(hostile: TestClient, method: str, path: str, what: str) -> None:
    # A large one is read or refused in the same way, whatever it is said to be.
    for kind in KINDS if len(BODIES[what]) < LARGE else KINDS[:1]:
        answer = hostile.request(method, filled(path, "acme"), content=BODIES[what], headers={"Content-Type": kind})
        assert_handled(answer)


@pytest.mark.parametrize(("method", "path"), WITH_BODY, ids=str)
def test_a_compressed_bomb_is_not_opened(hostile: TestClient, method: str, path: str) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    answer = hostile.request(method, filled(path, "acme"), content=bomb, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 415
    assert_handled(answer)


@pytest.mark.parametrize("what", ADDRESSES)
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=str)
def test_a_hostile_address_is_answered_in_words(hostile: TestClient, method: str, path: str, what: str) -> None:
    value = ADDRESSES[what]
    assert_handled(hostile.request(method, filled(path, value)))
    assert_handled(hostile.request(method, f"{filled(path, 'acme')}?k={value}&q={value}&text={value}&filter={value}"))


def test_there_are_operations_to_try() -> None:
    assert len(OPERATIONS) > 15
    assert len(WITH_BODY) > 5
