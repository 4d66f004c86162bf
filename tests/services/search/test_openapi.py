import json

from services.search import openapi
from services.search.problems import KINDS

OPERATIONS = {
    "/similar/{company_id}": {"200", "404", "409", "422", "500", "503"},
    "/similar": {"200", "422", "500", "503"},
    "/companies": {"200", "422", "500", "503"},
    "/companies/{company_id}": {"200", "404", "409", "422", "500", "503"},
    "/healthz": {"200"},
    "/readyz": {"200", "500", "503"},
}


def test_the_committed_document_is_the_one_the_code_describes() -> None:
    committed = openapi.DOCUMENT.read_text(encoding="utf-8")
    assert committed == openapi.document_text(), "the API changed: python -m services.search.openapi rewrites it"


def test_every_operation_declares_its_errors_as_problems() -> None:
    paths = json.loads(openapi.document_text())["paths"]
    assert {path: set(operations["get"]["responses"]) for path, operations in paths.items()} == OPERATIONS
    for operations in paths.values():
        for status, response in operations["get"]["responses"].items():
            expected = "application/json" if status == "200" else "application/problem+json"
            assert list(response["content"]) == [expected]


def test_every_operation_and_parameter_is_explained() -> None:
    for operations in json.loads(openapi.document_text())["paths"].values():
        operation = operations["get"]
        assert operation["summary"]
        assert operation["description"]
        assert all(parameter["description"] for parameter in operation.get("parameters", []))


def test_every_kind_of_problem_has_a_name_of_its_own() -> None:
    assert len({kind.slug for kind in KINDS}) == len(KINDS)
