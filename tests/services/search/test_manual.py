import re
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

from services.search import openapi
from services.search.asking.question_schemas import Anchor, Filter, Question
from services.search.manual import manual_page
from services.search.wire.problems import KINDS
from services.search.workspace.feedback_schemas import FeedbackGiven
from services.search.workspace.lists_schemas import ListGiven
from tests.services.search.test_openapi import DOCUMENT


def test_the_manual_describes_every_address_and_every_problem(client: TestClient) -> None:
    page = client.get("/docs").text
    for path, methods in DOCUMENT["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    for kind in KINDS:
        assert f'<dt id="{kind.slug}">' in page


def test_a_problem_links_to_its_place_in_the_manual(client: TestClient) -> None:
    page, anchor = client.get("/similar/nobody").json()["type"].split("#")
    assert f'id="{anchor}"' in client.get(page).text


def test_the_manual_shows_limits_bodies_and_tables(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "1 to 250, default 10" in page
    assert "<strong>Is the process alive?</strong>" in page
    assert '<p>Body: <a href="#Question">Question</a>.</p>' in page
    assert '<td><code>hits</code><td>array of <a href="#Hit">Hit</a>' in page
    assert '<h3 id="Hit">Hit</h3>' in page
    assert "<caption>Body</caption>\n<tr><td><code>id</code><td>string or null" in page
    assert "Answer as <code>text/csv</code>, for example:</p>\n<pre>rank,id,name," in page


@pytest.mark.parametrize("model", [Anchor, Filter, Question, FeedbackGiven, ListGiven])
def test_the_manual_shows_a_valid_example_of_each_body(client: TestClient, model: type[BaseModel]) -> None:
    [shown] = re.findall(rf'<h3 id="{model.__name__}">.*?<pre>(.*?)</pre>', client.get("/docs").text, flags=re.DOTALL)
    model.model_validate_json(unescape(shown))


def test_every_link_leads_to_a_place_of_the_page(client: TestClient) -> None:
    page = client.get("/docs").text
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links
    assert links <= set(re.findall(r'id="([^"]*)"', page))


THING = {"$ref": "#/components/schemas/Thing"}
INLINE = {
    "properties": {
        "kind": {"const": "<a>"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "parts": {"type": "array", "items": THING, "description": "In `cm`."},
        "anything": {},
    },
}


def test_any_operation_can_be_described() -> None:
    operation = {
        "operationId": "thing_put",
        "tags": ["Things"],
        "summary": "Store <it>",
        "description": "All `of` it.",
        "parameters": [{"name": "when", "in": "query", "schema": {"anyOf": [{"type": "string"}, {"type": "null"}]}}],
        "requestBody": {
            "content": {
                "application/x-ndjson": {"schema": {"type": "string"}, "example": '{"id":"<a>"}\n'},
                "application/json": {"schema": INLINE},
            }
        },
        "responses": {
            "200": {"description": "Stored", "content": {"application/json": {"schema": THING}}},
            "202": {"description": "Kafka `holds` it"},
            "404": {"description": "Not <there>", "content": {}},
        },
    }
    document: dict[str, Any] = {
        "info": {"title": "T", "description": "D"},
        "components": {"schemas": {"Thing": {"properties": {"id": {"type": "string"}}}}},
        "paths": {
            "/things/{id}": {
                "put": operation,
                "delete": {"operationId": "thing_delete", "tags": ["Things"], "summary": "Go", "responses": {}},
            }
        },
    }
    page = manual_page(document)
    for part in (
        '<h2>Things</h2>\n<ul>\n<li><a href="#thing_put"><code>PUT /things/{id}</code></a> Store &lt;it&gt;\n',
        '<section id="thing_put"><h2><code>PUT /things/{id}</code></h2>',
        "<strong>Store &lt;it&gt;.</strong> All <code>of</code> it.",
        "<code>when</code><td><td>",
        "Body as <code>application/x-ndjson</code>, for example:</p>\n<pre>{&quot;id&quot;:&quot;&lt;a&gt;&quot;}",
        "<code>kind</code><td>&lt;a&gt;<td>",
        "<code>either</code><td>integer or string<td>",
        '<code>parts</code><td>array of <a href="#Thing">Thing</a><td>In <code>cm</code>.',
        "<code>anything</code><td>any value<td>",
        '<p>Answer: <a href="#Thing">Thing</a>.</p>',
        "<code>id</code><td>string<td>",
        "<p>Answer 202: Kafka <code>holds</code> it.</p>",
        "Problems: 404 Not &lt;there&gt;.",
        "Problems: none.",
    ):
        assert part in page


def test_the_guide_lists_the_same_problems() -> None:
    guide = openapi.GUIDE.read_text(encoding="utf-8")
    assert guide == openapi.with_problems(guide), "a problem changed: python -m services.search.openapi rewrites them"
    assert guide.count("\n| `") == len(KINDS)
