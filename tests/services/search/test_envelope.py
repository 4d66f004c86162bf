import pytest
from fastapi.testclient import TestClient

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
