import json

import pytest

from similarity.client.call import as_json, json_reader
from similarity.client.question import Anchor, Question
from similarity.client.ranking import Ranking
from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter
from tests.similarity.client.replies import ranking, reply


def test_only_what_is_said_is_sent() -> None:
    assert json.loads(as_json(Question.about("nike").body())) == {"anchors": [{"company": "nike"}]}


def test_everything_that_can_be_said_is_sent() -> None:
    question = Question.about(
        "nike",
        Anchor(text="rents out e-scooters", weight=2),
        negatives="zalando",
        country="Germany",
        tag=["shoes", "sport"],
        filters=[FieldFilter(field="attributes.employees", at_least=10, at_most=1000)],
        exclude=["adidas", "puma.com"],
        rank="cosine",
        min_probability=0.5,
        k=20,
        reasons=0,
        fields=["name"],
        cursor="c",
    )
    assert json.loads(as_json(question.body())) == {
        "anchors": [{"company": "nike"}, {"text": "rents out e-scooters", "weight": 2}],
        "negatives": [{"company": "zalando"}],
        "filters": [
            {"field": "country", "any_of": ["Germany"]},
            {"field": "tags", "any_of": ["shoes", "sport"]},
            {"field": "attributes.employees", "at_least": 10, "at_most": 1000},
        ],
        "exclude": ["adidas", "puma.com"],
        "rank": "cosine",
        "min_probability": 0.5,
        "k": 20,
        "reasons": 0,
        "fields": ["name"],
        "cursor": "c",
    }


def test_a_text_where_several_are_taken_is_one_and_not_its_letters() -> None:
    question = Question.about("nike", negatives="puma", exclude="adidas", fields="name", industry="Shoes")
    assert question.negatives == (Anchor(company="puma"),)
    assert question.exclude == ("adidas",)
    assert question.fields == ("name",)
    assert question.filters == (FieldFilter(field="industry", any_of=("Shoes",)),)


def test_a_question_without_an_anchor_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no anchor; give a company or a text"):
        Question.about()


@pytest.mark.parametrize("said", [{}, {"company": "nike", "text": "shoes"}])
def test_an_anchor_is_a_company_or_a_text(said: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="either a company or a text"):
        Anchor(**said)  # type: ignore[arg-type]  # mypy cannot see which members there are


def test_the_next_page_is_the_same_question_with_the_cursor() -> None:
    question = Question.about("nike", k=5, country="Japan")
    following = question.after(json_reader(Ranking)(reply(200, ranking("a", next_cursor="c2"))))
    assert following is not None
    assert following.body() == question.body() | {"cursor": "c2"}
    assert question.after(json_reader(Ranking)(reply(200, ranking("a", next_cursor=None)))) is None
