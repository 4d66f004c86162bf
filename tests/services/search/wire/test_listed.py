"""A list of wrong items costs one of them: bodies are validated on the event loop, which serves everybody."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from services.search.asking.question_schemas import Batch, Question, SimilarQuery
from services.search.matches.match_schemas import MatchRequest
from services.search.workspace.lists_schemas import ListGiven, LookGiven
from services.search.writes.write_schemas import CompanyBody

ACME = {"anchors": [{"company": "acme"}]}
WRONG = [1, 2, 3]
COMPANY = {"name": "Acme", "description": "Makes shoes."}


@pytest.mark.parametrize(
    ("model", "body", "where"),
    [
        (Batch, {"questions": WRONG}, ("questions", 0)),
        (Batch, {"questions": [ACME | {"exclude": WRONG}] * 3}, ("questions", 0, "exclude", 0)),
        (Question, {"anchors": WRONG}, ("anchors", 0)),
        (Question, ACME | {"negatives": WRONG}, ("negatives", 0)),
        (Question, ACME | {"filters": WRONG}, ("filters", 0)),
        (Question, ACME | {"filters": [{"field": "tags", "any_of": WRONG}] * 3}, ("filters", 0, "any_of", 0)),
        (Question, ACME | {"filters": [{"field": "tags", "none_of": WRONG}] * 3}, ("filters", 0, "none_of", 0)),
        (Question, ACME | {"exclude": ["boots", *WRONG]}, ("exclude", 1)),
        (Question, ACME | {"fields": ["name", *WRONG]}, ("fields", 1)),
        (SimilarQuery, {"also": ["", ""]}, ("also", 0)),
        (ListGiven, {"question": ACME | {"exclude": WRONG}}, ("question", "exclude", 0)),
        (LookGiven, {"ids": WRONG}, ("ids", 0)),
        (MatchRequest, {"rows": WRONG}, ("rows", 0)),
        (CompanyBody, COMPANY | {"aliases": WRONG}, ("aliases", 0)),
        (CompanyBody, COMPANY | {"tags": WRONG}, ("tags", 0)),
    ],
)
def test_of_a_list_of_wrong_items_the_first_is_noted(
    model: type[BaseModel], body: dict[str, Any], where: tuple[str | int, ...]
) -> None:
    with pytest.raises(ValidationError) as error:
        model.model_validate(body)
    assert [each["loc"] for each in error.value.errors()] == [where]
