from typing import Any

from fastapi.testclient import TestClient

from services.search import openapi
from services.search.manual import manual_page
from services.search.wire.problems import KINDS
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


def test_the_manual_names_limits_and_inner_members(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "1 to 250, default 10" in page
    assert "<code>hits[].score</code><td>number" in page
    assert "The same members as <code>company</code>." in page


def test_the_manual_shows_bodies_and_tables(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "<caption>Body</caption>\n<tr><td><code>anchors[].company</code><td>string or null" in page
    assert "<code>questions[].anchors[].weight</code><td>number" in page
    assert "Answer as <code>text/csv</code>, for example:</p>\n<pre>rank,id,name," in page


def described(**operation: Any) -> str:
    """The manual of one operation, as text."""
    schemas = {"Thing": {"properties": {"id": {"type": "string"}, "parts": {"type": "array", "items": THING}}}}
    document = {
        "info": {"title": "T", "description": "D"},
        "components": {"schemas": schemas},
        "paths": {"/things/{id}": {"put": {"summary": "Store <it>", "description": "All `of` it.", **operation}}},
    }
    return " ".join(manual_page(document).partition("<h2><code>PUT")[2].partition("</section>")[0].split())


THING = {"$ref": "#/components/schemas/Thing"}
JSON_THING = {"content": {"application/json": {"schema": THING}}}


def test_any_operation_can_be_described() -> None:
    page = described(
        parameters=[{"name": "when", "in": "query", "schema": {"anyOf": [{"type": "string"}, {"type": "null"}]}}],
        requestBody={"content": {"application/x-ndjson": {"schema": {"type": "string"}, "example": '{"id":"<a>"}\n'}}},
        responses={
            "200": {"description": "Stored", **JSON_THING},
            "202": {"description": "Kafka `holds` it"},
            "404": {"description": "Not <there>", "content": {}},
        },
    )
    assert page.startswith(" /things/{id}</code></h2>".strip())
    assert "<strong>Store &lt;it&gt;.</strong> All <code>of</code> it." in page
    assert "<code>when</code><td><td>" in page
    assert (
        "Body as <code>application/x-ndjson</code>, for example:</p> <pre>{&quot;id&quot;:&quot;&lt;a&gt;&quot;}"
        in page
    )
    assert "<code>id</code><td>string" in page
    assert "<code>parts[]" in page
    assert "<p>Answer 202: Kafka <code>holds</code> it.</p>" in page
    assert "Problems: 404 Not &lt;there&gt;." in page


def test_an_operation_without_answers_of_its_own_can_be_described() -> None:
    page = described(responses={"204": {"description": "Gone"}})
    assert "<p>Answer 204: Gone.</p>" in page
    assert "Problems: none." in page


def test_a_body_with_its_schema_inside_is_described() -> None:
    inline = {
        "properties": {
            "kind": {"const": "a"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "part": {"$ref": "#/$defs/Part"},
            "anything": {},
            "free": {"type": "object"},
        },
        "$defs": {"Part": {"properties": {"size": {"type": "number", "description": "In `cm`."}}}},
    }
    page = described(requestBody={"content": {"application/json": {"schema": inline}}}, responses={})
    for row in (
        "<code>kind</code><td>a<td>",
        "<code>either</code><td>integer or string<td>",
        "<code>part.size</code><td>number<td>In <code>cm</code>.",
        "<code>anything</code><td>any value<td>",
        "<code>free</code><td>object<td>",
    ):
        assert row in page


def test_the_guide_lists_the_same_problems() -> None:
    guide = openapi.GUIDE.read_text(encoding="utf-8")
    assert guide == openapi.with_problems(guide), "a problem changed: python -m services.search.openapi rewrites them"
    assert guide.count("\n| `") == len(KINDS)
