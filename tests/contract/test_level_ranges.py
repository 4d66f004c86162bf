"""Ranges of the levels of an ordinal attribute, in the library, over HTTP and on the command line, on each store."""

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.errors import InvalidFilter
from similarity.index.attributes import AttributeSchema, AttributeType
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex
from similarity.search.queries.filter_texts import parse_filters
from similarity.search.queries.question import Anchor, Question
from similarity.search.searcher import Searcher
from tests.factories import make_embedded

SIZES = {"a": "Nano", "b": "small", "c": "Large Cap", "d": "MEGA", "e": "unknown", "f": 3}
LEVELS = AttributeType(("nano", "small", "large", "mega"))


@pytest.fixture
def sized(index: CompanyIndex, live: str) -> CompanyIndex:
    index.declare(AttributeSchema({"size": LEVELS, "staff": AttributeType()}))
    companies = [make_embedded(name, attributes={"size": size, "staff": 5}) for name, size in SIZES.items()]
    index.upsert(live, [*companies, make_embedded("anchor", country="France")])
    index.stats(live)
    return index


def test_a_declared_attribute_may_become_the_size_later(sized: CompanyIndex) -> None:
    sized.declare(AttributeSchema(size="staff"))
    assert sized.attributes().size == "staff"


RANGES = {
    "at least": (["attributes.size>=large"], "cd"),
    "at most": (["attributes.size<=small"], "ab"),
    "above": (["attributes.size>small"], "cd"),
    "below, in any case": (["attributes.size<LARGE"], "ab"),
    "between": (["attributes.size>=small", "attributes.size<mega"], "bc"),
    "with values to leave out": (["attributes.size>=small", "attributes.size!=small"], "cd"),
    "one level, however it is written": (["attributes.size=large"], "c"),
    "two levels": (["attributes.size=LARGE", "attributes.size=nano"], "ac"),
    "a value of a level": (["attributes.size=large cap"], "c"),
    "without the values of a level": (["attributes.size>=small", "attributes.size!=large"], "bd"),
}


@pytest.mark.parametrize(("texts", "expected"), RANGES.values(), ids=RANGES)
def test_levels_are_compared_in_their_declared_order(sized: CompanyIndex, texts: list[str], expected: str) -> None:
    searcher = Searcher(sized)
    ranking = searcher.search(Question(anchors=[Anchor(company="anchor")], filters=parse_filters(texts)))
    assert sorted(hit.company.id for hit in ranking.hits) == list(expected)
    assert not ranking.warnings
    with TestClient(create_app(index=sized)) as client:
        answer = client.get("/similar/anchor", params={"filter": texts, "reasons": 0}).json()
        assert sorted(hit["company"]["id"] for hit in answer["hits"]) == list(expected)


def test_a_body_takes_levels_as_limits(sized: CompanyIndex) -> None:
    limits = {"field": "attributes.size", "above": "nano", "at_most": "Large"}
    with TestClient(create_app(index=sized)) as client:
        question = {"anchors": [{"company": "anchor"}], "filters": [limits], "reasons": 0}
        answer = client.post("/similar", json=question).json()
        assert sorted(hit["company"]["id"] for hit in answer["hits"]) == ["b", "c"]
        place = client.post(
            "/similar/locate", json={k: v for k, v in question.items() if k != "reasons"} | {"company": "d"}
        )
        assert [each["field"] for each in place.json()["removed_by"]] == ["attributes.size"]
        limits["above"] = "tiny"
        refused = client.post("/similar", json=question)
        assert refused.status_code == 422
        assert "'tiny' is not a level of attributes.size; its levels, from the lowest, are nano, small" in refused.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("attributes.size>=tiny", "'tiny' is not a level of attributes.size; .* are nano, small, large, mega"),
        ("attributes.size>=3", "'3' is not a level of attributes.size"),
        ("attributes.size>mega", "no level of attributes.size is in this range"),
        (
            "attributes.other<few",
            "'few' is not a number, and attributes.other is not declared as an ordinal .declared: size",
        ),
        (
            "attributes.staff>=12,500",
            "'12,500' is not a number, and attributes.staff is declared as one; write a number",
        ),
        ("attributes.staff>=2026-01-01", r"'2026-01-01' is not a number, .* \(of a date, its year\)$"),
        ("attributes.other>=2026-01-01", r"'2026-01-01' is not a number, .* \(of a date, its year\), .*:number"),
    ],
)
def test_other_limits_are_refused(sized: CompanyIndex, text: str, message: str) -> None:
    with pytest.raises(InvalidFilter, match=message):
        Searcher(sized).search(Question(anchors=[Anchor(company="anchor")], filters=parse_filters([text])))


def test_levels_that_no_company_has_leave_no_hits(sized: CompanyIndex, live: str) -> None:
    sized.declare(AttributeSchema({"grade": LEVELS}))
    only = [FieldFilter(field="attributes.grade", at_least="large")]
    ranking = Searcher(sized).search(Question(anchors=[Anchor(company="anchor")], filters=only))
    assert not ranking.hits
    assert "no company has the attribute 'grade'" in ranking.warnings[0]


def test_levels_may_be_numbers(sized: CompanyIndex, live: str) -> None:
    sized.declare(AttributeSchema({"stars": AttributeType(("1", "2", "3"))}))
    sized.upsert(live, [make_embedded(f"r{stars}", attributes={"stars": stars}) for stars in (1, 2, 3)])
    sized.stats(live)
    only = [FieldFilter(field="attributes.stars", above=1)]
    ranking = Searcher(sized).search(Question(anchors=[Anchor(company="anchor")], filters=only))
    assert sorted(hit.company.id for hit in ranking.hits) == ["r2", "r3"]
