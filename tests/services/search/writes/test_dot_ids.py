"""Companies whose ids are `.` and `..`, which earlier releases stored, over raw sockets to the service as a process."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from similarity.index.bundle_store import keep_bundle, store_folder
from similarity.index.sqlite import SqliteIndex
from tests.contract.steps import add_candidate
from tests.factories import make_embedded
from tests.services.search.raw_http import answer, connected, status
from tests.services.search.serving import Service, running
from tests.tiny_bundle import DIMENSION, write_tiny_bundle

pytestmark = pytest.mark.integration

BODY = json.dumps({"name": "Dot", "description": "Makes dots."}).encode()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    file, bundle = tmp_path / "index.db", write_tiny_bundle(tmp_path / "tiny")
    keep_bundle(bundle, store_folder(str(file), None))
    made: dict[str, Any] = {"encoder_id": bundle.encoder_id, "dimension": DIMENSION}
    with closing(SqliteIndex(file)) as index:
        add_candidate(index, "first", **made)
        dots: dict[str, dict[str, Any]] = {".": {}, "..": {"domain": "dots.com"}, "acme": {}}
        index.upsert("first", [make_embedded(each, **made, **fields) for each, fields in dots.items()])
        index.promote("first")
    with running(tmp_path / "index.db", tmp_path) as started:
        yield started


def asked(service: Service, line: str, body: bytes = b"", media_type: str = "application/json") -> tuple[int, Any]:
    """Status and body; the path goes out as it is, which no client library guarantees."""
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {media_type}\r\n"
    with connected(service.port) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        got = answer(connection)
    text = got.partition(b"\r\n\r\n")[2]
    return status(got), json.loads(text) if text.startswith(b"{") else text


@pytest.mark.parametrize("path", [".", "..", "%2E", "%2e%2e", ".%2E"])
def test_they_are_not_written_any_more(service: Service, path: str) -> None:
    code, problem = asked(service, f"PUT /companies/{path}", BODY)
    assert code == 422, problem
    assert problem["errors"][0]["parameter"] == "id"
    line = json.dumps({"id": "..", "name": "Dot", "description": "Makes dots."}).encode()
    code, results = asked(service, "POST /companies/bulk", line, "application/x-ndjson")
    assert code == 200
    assert b'"outcome":"rejected"' in results
    assert b"cannot be part of a URL" in results


def test_stored_ones_are_read_and_deleted(service: Service) -> None:
    assert asked(service, "GET /companies/%2E")[1]["company"]["id"] == "."
    assert asked(service, "GET /companies/dots.com")[1]["company"]["id"] == ".."
    assert asked(service, "GET /similar/%2E%2E?k=1")[0] == 200
    hits = asked(service, "GET /similar/acme?k=10")[1]["hits"]
    assert {".", ".."} <= {hit["company"]["id"] for hit in hits}
    assert asked(service, "DELETE /companies/%2E")[0] == 200
    # The way that clients and proxies leave alone.
    line = json.dumps({"id": "..", "deleted": True}).encode()
    code, results = asked(service, "POST /companies/bulk", line, "application/x-ndjson")
    assert (code, b'"outcome":"applied"' in results) == (200, True), results
    assert asked(service, "GET /companies/%2E")[0] == asked(service, "GET /companies/dots.com")[0] == 404
