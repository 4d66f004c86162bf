"""A ranking says which filters name nothing, and why it is empty."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from similarity.index.attributes import AttributeSchema, AttributeType
from similarity.index.filters import FieldFilter
from similarity.index.sqlite import SqliteIndex
from similarity.model.calibration import Calibration
from similarity.search.queries.filter_texts import parse_filters
from similarity.search.queries.question import Anchor, Question
from similarity.search.reranking.rank import Rank
from similarity.search.searcher import Searcher
from tests.contract.steps import add_live
from tests.factories import make_embedded, unit_vector

EMPTY = "no other company passes the filter on "


@pytest.fixture
def searcher(tmp_path: Path) -> Iterator[Searcher]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first", calibration=Calibration(slope=8, intercept=-4))
    index.declare(AttributeSchema({"size": AttributeType(("small", "large")), "revenue": AttributeType()}))
    companies = [
        make_embedded("a", name="Alpha", country="France", domain="alpha.com", attributes={"size": "small"}),
        make_embedded(
            "b",
            name="Beta",
            country="Germany",
            attributes={"size": "large", "staff": 12, "founded": "1990", "listed": "1995-01-31"},
        ),
        make_embedded("c", name="Gamma", country="France"),
    ]
    index.upsert("first", companies)
    yield Searcher(index)
    index.close()


def test_a_company_may_be_asked_about_by_a_number(searcher: Searcher) -> None:
    searcher.index.upsert("first", [make_embedded("7", name="Seven")])
    [asked] = searcher.search(7).anchors
    assert asked.document is not None
    assert asked.document.id == "7"


def test_a_model_without_weights_for_a_ranking_says_so(searcher: Searcher) -> None:
    answer = searcher.search(Question(anchors=[Anchor(company="a")], k=2, rank=Rank.COMPARABLE))
    assert "no weights for rank=comparable, so these hits are in the order of the cosine" in answer.warnings[0]
    assert searcher.search(Question(anchors=[Anchor(company="a")], k=2)).warnings == ()


FILTERS: dict[str, tuple[list[str], list[str]]] = {
    "used": (["country=france"], []),
    "used by the anchor only": (["attributes.size=small"], [EMPTY + "attributes.size"]),
    "an unused value": (
        ["country=Frnace"],
        ["no company has the value 'Frnace' of country; did you mean 'france'?", EMPTY + "country"],
    ),
    "a part of values": (
        ["country=fran ce"],
        ["value 'fran ce' of country; did you mean 'france'?", EMPTY],
    ),
    "a word of a value": (["country=GERM"], ["value 'GERM' of country; did you mean 'germany'?", EMPTY]),
    "two values in one": (
        ["country=France, Japan"],
        ["value 'France, Japan' of country; give several values one by one", EMPTY],
    ),
    "one unused value of two": (["country=France", "country=Peru"], ["no company has the value 'Peru' of country"]),
    "an unused value to leave out": (["country!=Germny"], ["value 'Germny' of country; did you mean 'germany'?"]),
    "an unknown attribute": (
        ["attributes.siz=large"],
        ["no company has the attribute 'siz'; did you mean 'size'?", EMPTY + "attributes.siz"],
    ),
    "a range of an unknown attribute": (["attributes.staf>=3"], ["attribute 'staf'; did you mean 'staff'?", EMPTY]),
    "a declared attribute that no company has": (
        ["attributes.revenue>=1"],
        ["no company has the attribute 'revenue'; there are 'founded'", EMPTY],
    ),
    "an empty range": (["attributes.staff>=100"], [EMPTY + "attributes.staff"]),
    "a range of texts": (
        ["attributes.founded>=1950"],
        ["attributes.founded has texts, such as '1990', which pass no range: load it with --attribute founded:", EMPTY],
    ),
    "a range of dates": (
        ["attributes.listed>=1950"],
        ["texts, such as '1995-01-31', which pass no range: load it with --attribute listed:number", EMPTY],
    ),
    "a field that no company has": (["tags=x"], ["no company has a value of tags", EMPTY + "tags"]),
    "two that exclude each other": (["country=Germany", "attributes.size=small"], [EMPTY + "country and attributes"]),
}


@pytest.mark.parametrize(("filters", "expected"), FILTERS.values(), ids=FILTERS)
def test_filters_that_name_nothing_are_reported(searcher: Searcher, filters: list[str], expected: list[str]) -> None:
    ranking = searcher.search(Question(anchors=[Anchor(company="a")], filters=parse_filters(filters)))
    assert len(ranking.warnings) == len(expected)
    for warning, part in zip(ranking.warnings, expected, strict=True):
        assert part in warning


EMPTY_RANKINGS: dict[str, tuple[dict[str, Any], str]] = {
    "all excluded": ({"exclude": ["b", "c"]}, "every other company of the index is excluded"),
    "all that pass excluded": (
        {"exclude": ["b"], "filters": [FieldFilter(field="country", any_of=("Germany",))]},
        "every other company that passes the filter on country is excluded",
    ),
    "all improbable": (
        {"min_probability": 0.999},
        "of at least 0.999; the highest is 0.217 (21.7 %): ask for a lower one",
    ),
}


@pytest.mark.parametrize(("options", "expected"), EMPTY_RANKINGS.values(), ids=EMPTY_RANKINGS)
def test_an_empty_ranking_says_why(searcher: Searcher, options: dict[str, Any], expected: str) -> None:
    ranking = searcher.search(Question(anchors=[Anchor(company="a")], **options))
    [warning] = ranking.warnings
    assert not ranking.hits
    assert expected in warning


@pytest.mark.parametrize(("copies", "k", "hits"), [(6, 3, ["c"]), (6, 1, ["c"]), (12, 3, [])])
def test_a_ranking_that_copies_cut_off_says_so(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch, copies: int, k: int, hits: list[str]
) -> None:
    monkeypatch.setattr("similarity.search.ranking_page.MAX_RANK", 4)
    monkeypatch.setattr("similarity.search.ranking_page.CANDIDATES_BEYOND_MAX_RANK", 3)
    alike = make_embedded("a", name="Alpha", domain="alpha.com")
    named = [make_embedded(f"a{number}", name="Alpha", domain="alpha.com") for number in range(copies)]
    searcher.index.upsert(
        "first", [replace(each, vector=alike.vector, version=each.version + 1) for each in (alike, *named)]
    )
    ranking = searcher.search(Question(anchors=[Anchor(company="a")], k=k))
    assert [each.company.id for each in ranking.hits] == hits
    assert ranking.next is None
    assert [each for each in ranking.warnings if each.startswith("only the nearest 7 companies are compared")]


def test_a_ranking_of_one_company_under_several_ids_says_so(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "twins.db")
    add_live(index, "first")
    index.upsert("first", [make_embedded(each, domain="twin.com", vector=unit_vector(1)) for each in "xy"])
    [warning] = Searcher(index).search("x").warnings
    assert "is the same company as an anchor" in warning
    index.close()


def test_a_question_without_other_companies_says_so(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "alone.db")
    add_live(index, "first")
    index.upsert("first", [make_embedded("x")])
    assert Searcher(index).search("x").warnings == ("the index holds no other company that can be ranked",)
    index.close()
