"""The OpenAPI document: complete, bounded, and true of what is answered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from services.search import openapi
from services.search.app import create_app
from services.search.wire.problems import KINDS
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import CALIBRATION, filled_index

DOCUMENT = json.loads(openapi.document_text())
GUIDE = Path(__file__).parents[3] / "docs" / "api.md"


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_the_committed_document_is_the_one_the_code_describes() -> None:
    committed = openapi.DOCUMENT.read_text(encoding="utf-8")
    assert committed == openapi.document_text(), "the API changed: python -m services.search.openapi rewrites it"


def test_every_problem_is_declared_as_one() -> None:
    for _, operation in operations():
        for status, response in operation["responses"].items():
            if status >= "400":
                assert list(response["content"]) == ["application/problem+json"]


def test_every_operation_and_parameter_is_explained() -> None:
    for name, operation in operations():
        assert operation["summary"], name
        assert operation["description"], name
        assert all(parameter["description"] for parameter in operation.get("parameters", [])), name


def test_whatever_can_be_sent_is_bounded() -> None:
    for name, operation in operations():
        for parameter in operation.get("parameters", []):
            assert unbounded(parameter["schema"]) == [], f"{name} {parameter['name']}"
        body = operation.get("requestBody", {}).get("content", {})
        if "application/json" in body:
            assert unbounded(body["application/json"]["schema"]) == [], name


def unbounded(schema: dict[str, Any], name: str = "") -> list[str]:
    """The texts, lists and objects in it that may be of any size."""
    if "$ref" in schema:
        inner = schema["$ref"].rsplit("/", 1)[-1]
        return unbounded(DOCUMENT["components"]["schemas"][inner], inner)
    found = (
        [name] if schema.get("type") == "string" and not {"maxLength", "enum", "const", "pattern"} & set(schema) else []
    )
    found += [name] if schema.get("type") == "array" and "maxItems" not in schema else []
    found += [name] if schema.get("type") == "object" and schema.get("additionalProperties") is True else []
    for option in schema.get("anyOf", []):
        found += unbounded(option, name)
    found += unbounded(schema["items"], name) if "items" in schema else []
    for member, described in schema.get("properties", {}).items():
        found += unbounded(described, f"{name}.{member}")
    return found


def test_every_kind_of_problem_has_a_name_of_its_own() -> None:
    assert len({kind.slug for kind in KINDS}) == len(KINDS)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    index = filled_index(tmp_path_factory.mktemp("openapi") / "index.db", calibration=CALIBRATION)
    with TestClient(create_app(index=index, encoder=AxisEncoder())) as client:
        yield client
    index.close()


NAMES = st.sampled_from(["acme", "boots.de", "Zapatos SA", "Delta", "nobody"])
SOMEBODY = NAMES.map(lambda name: {"company": name}) | st.sampled_from([{"text": "makes leather shoes"}, {}])
QUESTIONS = st.fixed_dictionaries(
    {"anchors": st.lists(SOMEBODY, max_size=3)},
    optional={
        "negatives": st.lists(SOMEBODY, max_size=2),
        "exclude": st.lists(NAMES, max_size=3),
        "filters": st.lists(
            st.fixed_dictionaries(
                {"field": st.sampled_from(["country", "attributes.employees", "colour"])},
                optional={"any_of": st.just(["Germany"]), "at_least": st.sampled_from([1, 2.5, "x"])},
            ),
            max_size=2,
        ),
        "rank": st.sampled_from(["business", "cosine", "words"]),
        "min_probability": st.sampled_from([None, 0, 0.5, 1, 2]),
        "k": st.integers(-1, 4),
        "fields": st.lists(st.sampled_from(["name", "country", "age"]), max_size=2),
    },
)


def check(operation: str, answer: Any) -> None:
    """The answer is one that the operation declares."""
    response = dict(operations())[operation]["responses"][str(answer.status_code)]
    content = response["content"][answer.headers["content-type"].partition(";")[0]]
    Draft202012Validator({**content["schema"], "components": DOCUMENT["components"]}).validate(answer.json())


@settings(deadline=None, max_examples=50)
@given(QUESTIONS)
def test_every_answer_to_a_question_is_as_described(asking: TestClient, question: dict[str, Any]) -> None:
    answer = asking.post("/similar", json=question)
    check("POST /similar", answer)
    described = {"$ref": "#/components/schemas/Question", "components": DOCUMENT["components"]}
    fits = Draft202012Validator(described).is_valid(question)
    # What the document allows can still ask for what does not go together, and only that is refused.
    assert fits or answer.status_code == 422
    if fits and answer.status_code == 422:
        reasons = (
            "no values",
            "give either",
            "has no range",
            "is not a number",
            "both an anchor and a negative",
            "has a probability only for one anchor",
        )
        assert any(reason in answer.text for reason in reasons)


@settings(deadline=None, max_examples=50)
@given(st.lists(QUESTIONS, min_size=1, max_size=3))
def test_every_answer_to_a_batch_is_as_described(asking: TestClient, questions: list[dict[str, Any]]) -> None:
    check("POST /similar/batch", asking.post("/similar/batch", json={"questions": questions}))


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("GET /similar/{company_id}", "/similar/acme?also=zapatos&unlike=nobody&fields=name"),
        ("GET /similar/{company_id}", "/similar/nobody"),
        ("GET /similar/{company_id}", "/similar/Delta"),
        ("GET /similar/{company_id}", "/similar/acme?cursor=abc"),
        ("GET /similar/{company_id}", "/similar/acme?k=0"),
        ("GET /similar", "/similar?text=shoes&also=boots"),
        ("GET /companies", "/companies?q=a"),
        ("GET /companies/{company_id}", "/companies/acme"),
        ("GET /readyz", "/readyz"),
        ("GET /healthz", "/healthz"),
    ],
)
def test_the_other_answers_are_as_described(asking: TestClient, operation: str, path: str) -> None:
    check(operation, asking.get(path))


def test_the_document_is_where_the_guide_says_it_is() -> None:
    assert "../services/search/openapi.json" in GUIDE.read_text(encoding="utf-8")


def test_the_guide_says_so_where_nothing_is_deprecated() -> None:
    says_nothing_is = "Nothing is deprecated today." in GUIDE.read_text(encoding="utf-8")
    assert says_nothing_is is not ('"deprecated": true' in openapi.document_text())
