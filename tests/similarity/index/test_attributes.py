import pytest

from similarity.errors import InvalidInput
from similarity.index.attributes import AttributeSchema, AttributeType, parse_schema, parse_type
from tests.factories import make_company

CAPS = "market_cap:ordinal=nano,small,large,mega"


@pytest.mark.parametrize(
    ("value", "step"),
    [
        ("nano", 0), ("Large Cap", 2), ("  MEGA ", 3), ("huge", None), ("", None), (None, None), (4, None),
        ("Large-Cap", 2), ("large_cap", 2), ("LARGE\u2011cap", 2), ("small  Cap", 1), ("un-small", None),
    ],
)  # fmt: skip
def test_an_ordinal_is_the_number_of_its_level(value: str | int | None, step: float | None) -> None:
    assert parse_type("market_cap", "ordinal=nano,small,large,mega").step(value) == step


@pytest.mark.parametrize(
    ("value", "step"), [("10-49", 1), ("10-49 people", 1), ("10", None), ("-5", None), ("Upper Mid", 2), ("mid", None)]
)
def test_a_level_may_be_a_range_or_have_two_words(value: str, step: float | None) -> None:
    assert parse_type("staff", "ordinal=1-9,10-49,upper-mid,5").step(value) == step


@pytest.mark.parametrize(
    ("value", "step"),
    [(1, 0), (3, 1), ("9", 2), (0, None), (-3, None), (True, None), ("many", None), (float("inf"), None), (None, None)],
)
def test_a_number_counts_threefold_as_a_step(value: float | str | None, step: float | None) -> None:
    assert AttributeType().step(value) == (None if step is None else pytest.approx(step))


@pytest.mark.parametrize("text", ["text", "number=1", "ordinal", "ordinal=one", "ordinal=a,,b", "ordinal=a,A", ""])
def test_other_types_are_refused_with_the_form(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"must be number, text, or ordinal=LOW,\.\.\.,HIGH"):
        parse_type("size", text)


def test_a_type_is_written_as_it_is_read() -> None:
    for text in ("number", "ordinal=low,high"):
        assert parse_type("size", text).text == text


def test_what_a_declaration_changes_for_stored_companies_is_said() -> None:
    stored = [make_company(attributes={"staff": value, "cap": "mega"}) for value in (3, "1,200", "90")]
    [warning] = AttributeSchema().retyped_by(parse_schema(["staff:number", CAPS, "new:number"]), stored)
    assert "'staff' that are not of its new type number, such as '1,200', and match no range" in warning
    before = parse_schema(["staff:number", CAPS], size="staff")
    assert before.retyped_by(parse_schema([CAPS], size="market_cap"), stored) == [
        "the size of a company is now the attribute 'market_cap', not 'staff', for all companies"
    ]
    assert not before.retyped_by(before, stored)


def test_the_size_of_a_company_is_its_declared_attribute() -> None:
    schema = parse_schema([CAPS, " employees:number"], size="market_cap")
    assert parse_schema(["staff:text"]).withdrawn == {"staff"}
    large, nano = (make_company(attributes={"market_cap": cap, "employees": 9}) for cap in ("Large Cap", "Nano Cap"))
    assert (schema.size_of(large), schema.size_of(nano), schema.size_of(make_company())) == (2, 0, None)
    assert schema.is_prominent(make_company(attributes={"market_cap": "Mega Cap"}))
    assert not schema.is_prominent(large)
    assert AttributeSchema().size_of(large) is None
    assert not parse_schema(["employees:number"], size="employees").is_prominent(large)


def test_a_size_without_a_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--attribute market_cap:number"):
        AttributeSchema().updated(parse_schema(["employees:number"], size="market_cap"))
    known = parse_schema(["market_cap:number"])
    assert known.updated(parse_schema([], size="market_cap")).size == "market_cap"


def test_later_declarations_replace_earlier_ones() -> None:
    first = parse_schema([CAPS, "employees:number"], size="market_cap")
    second = parse_schema(["employees:ordinal=few,many"])
    both = first.updated(second)
    assert both.types["employees"].levels == ("few", "many")
    assert (both.size, both.updated(parse_schema(["revenue:number"], size="revenue")).size) == ("market_cap", "revenue")
