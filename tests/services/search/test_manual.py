from pathlib import Path

from fastapi.testclient import TestClient

from services.search.problems import KINDS
from tests.services.search.test_openapi import OPERATIONS


def test_the_manual_describes_every_address_and_every_problem(client: TestClient) -> None:
    page = client.get("/docs").text
    for path in OPERATIONS:
        assert f"<code>GET {path}</code>" in page
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


def test_the_guide_lists_the_same_problems() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
    assert [line for line in guide.splitlines() if line.startswith("| `")] == [
        f"| `{kind.slug}` | {kind.status} | {kind.meaning} |" for kind in KINDS
    ]
