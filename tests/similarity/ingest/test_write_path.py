from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany, version_of
from similarity.errors import InvalidCompany, InvalidInput
from similarity.index.name_hashes import hashes_of
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import Columns, VersionedCompany, parse_record
from similarity.ingest.write_path import embed_changes, write_changes
from similarity.ingest.writer_leases import WriterLease
from similarity.text import NO_TEXT
from tests.contract.steps import add_live
from tests.factories import DIMENSION, ENCODER_ID, make_company, unit_vector
from tests.fakes import CountingEncoder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
RECORD = {"id": " acme ", "name": "Acme", "description": "Acme makes iron anvils."}


def parse(record: dict[str, Any], columns: Columns | None = None) -> Any:
    return parse_record({**RECORD, **record}, columns=columns or Columns(), now=NOW).change


def change(
    description: str = "Acme makes iron anvils.", *, company_id: str = "acme", version: int = 2
) -> VersionedCompany:
    return VersionedCompany(company=make_company(company_id, name="Acme", description=description), version=version)


def as_stored(documents: Sequence[EmbeddedCompany | DeletedCompany]) -> dict[str, EmbeddedCompany]:
    return {document.id: document for document in documents if isinstance(document, EmbeddedCompany)}


def test_a_record_is_trimmed_and_normalised() -> None:
    parsed = parse({"name": " Cafe\u0301 ", "website": "https://www.Acme.com/x", "tags": "a; b|a;", "country": None})
    assert parsed.company == make_company(
        "acme", name="Café", description="Acme makes iron anvils.", domain="acme.com", tags=("a", "b")
    )


def test_lists_may_be_lists() -> None:
    assert parse({"aliases": ["A, Inc.", "B; C"]}).company.aliases == ("A, Inc.", "B; C")


def test_a_column_mapping_decides_where_a_field_is_read() -> None:
    columns = Columns(fields={"name": "title", "domain": "url"}, attributes={"size": "employees"})
    parsed = parse({"title": "Other", "url": "acme.org", "employees": 12}, columns)
    assert (parsed.company.name, parsed.company.domain, dict(parsed.company.attributes)) == (
        "Other",
        "acme.org",
        {"size": 12},
    )


def test_without_an_event_time_the_run_decides_the_version() -> None:
    assert parse({}).version == version_of(NOW, now=NOW)


def test_an_event_time_decides_the_version() -> None:
    event_time = NOW - timedelta(days=3)
    assert parse({"event_time": event_time.isoformat()}).version == version_of(event_time, now=NOW)
    assert parse({"event_time": event_time}).version == version_of(event_time, now=NOW)


def test_what_r_writes_for_missing_values_is_missing() -> None:
    of_r = parse({"country": "NA", "industry": "NA", "tags": "NA", "aliases": ["NA", "Acme"], "domain": "NA"})
    assert (of_r.company.country, of_r.company.industry, of_r.company.tags) == ("", "", ())
    assert (of_r.company.aliases, of_r.company.domain) == (("Acme",), "")
    assert parse({"country": "NA"}).company.country == "NA"  # Namibia
    assert parse({"name": "NA"}).company.name == "NA"


@pytest.mark.parametrize("deleted", [True, "true", "YES", "y", "1"])
def test_a_delete_needs_only_an_id(deleted: object) -> None:
    parsed = parse_record({"id": "acme", "deleted": deleted}, columns=Columns(), now=NOW)
    assert parsed.change == DeletedCompany(id="acme", version=version_of(NOW, now=NOW, deleted=True))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": ""}, "id: "),
        ({"id": None}, "id: "),
        ({"id": ""}, "id: is empty$"),
        ({"name": ""}, "name: is empty$"),
        ({"name": " - "}, "name: is empty: ' - ' is a missing value, or only markup$"),
        ({"name": "<p>&nbsp;</p>"}, "name: is empty: '<p>&nbsp;</p>' is a missing value, or only markup$"),
        ({"description": None}, "description: is empty$"),
        ({"description": ["a"]}, "description: must be text, not a list"),
        ({"name": True}, "name: must be text, not true or false"),
        ({"deleted": "perhaps"}, "deleted: 'perhaps' is neither true nor false"),
        ({"event_time": "yesterday"}, "event_time: 'yesterday' is not ISO 8601"),
        ({"event_time": "2025-01-01T00:00:00"}, "event_time: .* no time zone"),
        ({"tags": [{"a": 1}]}, "tags: must be text, not an object"),
    ],
)
def test_a_bad_record_says_which_field(record: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidCompany, match=message):
        parse(record)


@pytest.mark.parametrize(("field", "column"), [("id", "Id"), ("name", "title"), ("description", "description")])
def test_a_record_without_a_column_says_which(field: str, column: str) -> None:
    columns = Columns(fields={"id": "Id", "name": "title"})
    record = {"Id": "acme", "title": "Acme", "description": "Makes anvils."}
    del record[column]
    with pytest.raises(InvalidCompany, match=f"^{field}: is empty: the record has no '{column}'$"):
        parse_record(record, columns=columns, now=NOW)


def test_a_bad_website_costs_the_website_not_the_company() -> None:
    parsed = parse_record({**RECORD, "website": "http://"}, columns=Columns(), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.domain == ""
    assert "left empty" in parsed.warnings[0]


def test_equal_texts_are_encoded_once() -> None:
    encoder = CountingEncoder()
    documents = embed_changes([change(), change(company_id="twin")], {}, encoder, now=NOW)
    assert encoder.texts == ["The company makes iron anvils."]
    assert [document.id for document in documents] == ["acme", "twin"]


def test_an_unchanged_company_keeps_its_vector_and_gets_its_new_version() -> None:
    encoder = CountingEncoder()
    stored = as_stored(embed_changes([change()], {}, encoder, now=NOW))
    (document,) = embed_changes([change(version=4)], stored, encoder, now=LATER)
    assert isinstance(document, EmbeddedCompany)
    assert len(encoder.texts) == 1
    assert (document.version, document.embedded_at) == (4, NOW)
    assert np.array_equal(document.vector, stored["acme"].vector)


def test_a_change_that_leaves_the_text_alone_keeps_the_vector() -> None:
    encoder = CountingEncoder()
    stored = as_stored(embed_changes([change()], {}, encoder, now=NOW))
    embed_changes([change("Acme  makes iron anvils.")], stored, encoder, now=LATER)
    assert len(encoder.texts) == 1


def test_a_changed_text_is_encoded() -> None:
    encoder = CountingEncoder()
    stored = as_stored(embed_changes([change()], {}, encoder, now=NOW))
    (document,) = embed_changes([change("Acme makes iron hammers.", version=4)], stored, encoder, now=LATER)
    assert encoder.texts[-1] == "The company makes iron hammers."
    assert isinstance(document, EmbeddedCompany)
    assert document.embedded_at == LATER


def test_two_changes_of_one_company_in_a_batch_each_get_their_own_vector() -> None:
    encoder = CountingEncoder()
    first, second = embed_changes(
        [change("Makes iron anvils."), change("Makes iron hammers.", version=4)], {}, encoder, now=NOW
    )
    assert isinstance(first, EmbeddedCompany)
    assert isinstance(second, EmbeddedCompany)
    assert first.text_hash != second.text_hash
    assert not np.array_equal(first.vector, second.vector)


def test_the_language_of_a_description_is_flagged() -> None:
    german = change("Das Unternehmen stellt Züge und Signaltechnik für Eisenbahnen in ganz Europa her.")
    (document,) = embed_changes([german], {}, CountingEncoder(), now=NOW)
    assert isinstance(document, EmbeddedCompany)
    assert document.language == "de"


def test_deletes_pass_through_in_order() -> None:
    delete = DeletedCompany(id="gone", version=3)
    documents = embed_changes([change(), delete, change(company_id="b")], {}, CountingEncoder(), now=NOW)
    assert [document.id for document in documents] == ["acme", "gone", "b"]
    assert documents[1] is delete


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("485", 485), ("-2.5", -2.5), ("1e6", 1e6), (9007199254740993, 9007199254740993), (" 7 ", 7), (2.5, 2.5),
        ("12,500", 12_500), ("12 500", 12_500), ("12'500", 12_500), ("12\u2019500", 12_500), ("12\u202f500", 12_500),
        ("-1,234,567.5", -1_234_567.5), ("1\u00a0234\u00a0567", 1_234_567), ("1.234.567,5", 1_234_567.5),
        ("1.234.567", 1_234_567), ("0.500", 0.5), ("1234.500", 1234.5), ("1.20", 1.2), (1.234, 1.234),
        ("94.785,64", 94_785.64), ("1.234,50", 1234.5), ("1 234,50", 1234.5), ("-1'234,5", -1234.5),
        ("1\u202f234\u202f567,89", 1_234_567.89), ("12 500.5", 12_500.5),
    ],
)  # fmt: skip
def test_a_column_of_numbers_is_read_as_numbers(cell: object, number: float) -> None:
    columns = Columns.from_pairs([], ["employees:number=staff"])
    parsed = parse_record(RECORD | {"staff": cell}, columns=columns, now=NOW)
    assert parsed.warnings == ()
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.attributes == {"employees": number}


@pytest.mark.parametrize(
    "cell",
    [
        "many",
        "12,5",
        "0,500",
        "1,00,000",
        "1 000,000",
        "1'000 000",
        "12.5.1",
        "1_000",
        True,
        "inf",
        "1e999",
        "12 people",
        "9" * 309,
        "9" * 20,
    ],
)
def test_what_is_no_number_is_left_out_with_a_warning(cell: str | bool) -> None:
    columns = Columns.from_pairs([], ["employees:number=staff"])
    parsed = parse_record(RECORD | {"staff": cell}, columns=columns, now=NOW)
    hint = f" (write {str(cell).replace(',', '.')} if the comma is a decimal sign)" if cell in {"12,5", "0,500"} else ""
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.attributes == {}
    assert parsed.warnings == (
        f"attributes.employees: {str(cell)!r:.40} is not a number like 12500, 12,500 or 12.5{hint}; ignored",
    )
    assert parsed.warned_fields == ("attributes.employees",)
    assert not parsed.ambiguous


@pytest.mark.parametrize(
    ("cell", "number", "thousands"),
    [("1.200", "1.2", 1200), (" 33.963 ", "33.963", 33963), ("-1.000", "-1.0", -1000), ("+999.999", "999.999", 999999)],
)
def test_a_number_that_may_mean_thousands_is_read_as_a_decimal_with_a_warning(
    cell: str, number: str, thousands: int
) -> None:
    parsed = parse_record(RECORD | {"staff": cell}, columns=Columns.from_pairs([], ["staff:number"]), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.attributes == {"staff": float(number)}
    assert parsed.ambiguous == {"attributes.staff"}
    assert parsed.warnings == (
        f"attributes.staff: {cell.strip()!r} is read as {number}; write {thousands} if a thousand is meant",
    )


def test_a_number_with_a_leading_zero_may_be_a_code() -> None:
    parsed = parse_record(RECORD | {"code": "01001"}, columns=Columns.from_pairs([], ["code:number"]), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.attributes == {"code": 1001}
    assert parsed.ambiguous == {"attributes.code"}
    assert "'01001' is read as 1001, without its leading zero" in parsed.warnings[0]


@pytest.mark.parametrize("cell", ["2019-05-04", "2019-05-04T10:00:00Z", datetime(2019, 5, 4, tzinfo=UTC)])
def test_the_number_of_a_date_is_its_year_with_a_warning(cell: object) -> None:
    columns = Columns.from_pairs([], ["founded:number"])
    parsed = parse_record(RECORD | {"founded": cell}, columns=columns, now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.attributes == {"founded": 2019}
    assert parsed.ambiguous == {"attributes.founded"}
    assert "is read as its year, 2019" in parsed.warnings[0]
    other = parse_record(RECORD | {"founded": "2019-12"}, columns=columns, now=NOW)  # perhaps two years
    assert "is not a number" in other.warnings[0]
    assert "write a date as 2010-01-31" in other.warnings[0]


def test_a_date_without_hyphens_is_a_number_with_a_warning() -> None:
    parsed = parse_record(RECORD | {"founded": "20150301"}, columns=Columns.from_pairs([], ["founded:number"]), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.attributes == {"founded": 20150301}
    assert "write 2015-03-01" in parsed.warnings[0]


@pytest.mark.parametrize(
    ("cell", "tags", "warned"),
    [
        ("coffee, tea, milk", ("coffee, tea, milk",), True),
        ("coffee; tea, milk", ("coffee", "tea, milk"), False),
        ('["coffee","tea"]', ("coffee", "tea"), False),
        ("coffee\ntea\r\n\r\nmilk, rum", ("coffee", "tea", "milk, rum"), False),
        (""" ['coffee', "o'tea"] """, ("coffee", "o'tea"), False),
        (r"['coffee\'s; x'\n 'tea']".replace(r"\n", "\n"), ("coffee's; x", "tea"), False),  # an array of NumPy
        (r"['\xg', 'tea']", (r"['\xg', 'tea']",), True),
        ("['coffee', tea]", ("['coffee', tea]",), True),
        ("['coffee'.x()]", ("['coffee'.x()]",), False),
        ("[a]", ("[a]",), False),
        ("[1]", ("[1]",), False),
        (["coffee, tea"], ("coffee, tea",), False),
    ],
)
def test_tags_in_one_text_need_separators_or_are_a_list(cell: object, tags: tuple[str, ...], *, warned: bool) -> None:
    parsed = parse_record(RECORD | {"tags": cell, "aliases": "Acme, Inc."}, columns=Columns(), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.tags == tags
    assert parsed.ambiguous == ({"tags"} if warned else set())
    assert all("write ; or | between several" in warning for warning in parsed.warnings)
    assert len(parsed.warnings) == warned


@pytest.mark.parametrize("option", ["code:", "code:=", "code:=column", "code=", "=column", ""])
def test_an_attribute_without_a_name_a_type_or_a_column_is_refused(option: str) -> None:
    with pytest.raises(InvalidInput, match=r"must read NAME\[:TYPE\]\[=COLUMN\]|must be number, text, or ordinal"):
        Columns.from_pairs([], [option])


@pytest.mark.parametrize("cell", [50.0, "50", "50.0"])
def test_a_whole_number_has_one_form(cell: str | float) -> None:
    parsed = parse_record(RECORD | {"staff": cell}, columns=Columns.from_pairs([], ["staff:number"]), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert str(parsed.change.company.attributes["staff"]) == "50"


@pytest.mark.parametrize("company_id", ["nan", "NULL", "-"])
def test_an_id_that_is_usually_a_missing_value_is_warned_of(company_id: str) -> None:
    parsed = parse_record(RECORD | {"id": company_id}, columns=Columns(), now=NOW)
    assert parsed.change.id == company_id
    assert [warning.partition(";")[0] for warning in parsed.warnings] == [
        f"id: {company_id!r} is usually a missing value"
    ]
    assert parsed.ambiguous == {"id"}


@pytest.mark.parametrize("company_id", [7.0, "7.0"])
def test_an_id_that_a_table_made_a_float_is_warned_of(company_id: str | float) -> None:
    """One number of the column is missing, so a data frame makes "7.0" of 7: a second company beside "7"."""
    parsed = parse_record(RECORD | {"id": company_id}, columns=Columns(), now=NOW)
    assert (parsed.change.id, parsed.ambiguous) == ("7.0", frozenset({"id"}))
    assert parsed.warnings == ("id: '7.0' is a number with a decimal point; '7' is another id",)
    assert parse_record(RECORD | {"id": 7}, columns=Columns(), now=NOW).warnings == ()
    dated = parse_record(RECORD | {"id": "2026-03-01"}, columns=Columns(), now=NOW)
    assert dated.warnings == ("id: '2026-03-01' is a date, which Excel makes of texts such as MAR1",)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("MÃ¼ller BrÃ¤u", "Müller Bräu"), ("MÃ¼ller", "Müller"), ("Müller", ""), ("Ãgua", ""), ("日本", "")],
)
def test_a_text_that_was_read_in_a_wrong_encoding_is_warned_of(given: str, meant: str) -> None:
    parsed = parse_record(RECORD | {"name": given}, columns=Columns(), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.name == given
    words = f"name: {given!r} looks like {meant!r} in a wrong encoding; save as UTF-8"
    assert parsed.warnings == ((words,) if meant else ())


def test_a_column_without_a_name_stands_for_no_field() -> None:
    # As pandas writes a table with its index; 1 would be a delete.
    parsed = parse_record({"": "1", "id": "acme", "name": "Acme", "description": "Anvils."}, columns=Columns(), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert (parsed.change.company.country, parsed.change.company.tags) == ("", ())


def test_nan_is_a_missing_value_and_infinity_is_refused() -> None:
    columns = Columns.from_pairs([], ["employees:number", "segment"])
    missing = float("nan")
    record = RECORD | {"country": missing, "tags": missing, "employees": missing, "segment": missing}
    parsed = parse_record(record, columns=columns, now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert (parsed.change.company.country, parsed.change.company.attributes) == ("", {})
    assert parsed.warnings == ()
    with pytest.raises(InvalidCompany, match="name: is empty"):
        parse_record(RECORD | {"name": missing}, columns=columns, now=NOW)
    with pytest.raises(InvalidCompany, match="country: is an infinite number"):
        parse_record(RECORD | {"country": float("inf")}, columns=columns, now=NOW)


@pytest.mark.parametrize("option", ["employees:integer", "size:ordinal=one", "size:ordinal"])
def test_an_unknown_type_of_attribute_is_refused(option: str) -> None:
    with pytest.raises(InvalidInput, match="it must be number, text, or ordinal=LOW"):
        Columns.from_pairs([], [option])


def test_an_ordinal_is_one_of_its_levels() -> None:
    columns = Columns.from_pairs([], ["cap:ordinal=small,large,1=market_cap"], size="cap")
    assert columns.attributes == {"cap": "market_cap"}
    large, huge, seven, one = (
        parse_record(RECORD | {"market_cap": cap}, columns=columns, now=NOW) for cap in ("Large Cap", "Huge", 7, 1)
    )
    assert isinstance(large.change, VersionedCompany)
    assert (large.change.company.attributes, large.warnings) == ({"cap": "Large Cap"}, ())
    assert huge.warnings == ("attributes.cap: 'Huge' is none of small, large, 1; ignored",)
    assert seven.warnings == ("attributes.cap: '7' is none of small, large, 1; ignored",)
    assert isinstance(one.change, VersionedCompany)
    assert one.change.company.attributes == {"cap": 1}


@pytest.mark.parametrize(
    "missing", ["NULL", "null", "N/A", "None", "nan", "TBD", "-", "--", "\\N", "<NA>", "(null)", "NaT", "#SPILL!"]
)
def test_a_word_for_a_missing_value_is_no_value(missing: str) -> None:
    parsed = parse_record(RECORD | {"country": missing, "tags": f"{missing};steel"}, columns=Columns(), now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert (parsed.change.company.country, parsed.change.company.tags) == ("", ("steel",))
    with pytest.raises(InvalidCompany, match="name"):
        parse_record(RECORD | {"name": missing}, columns=Columns(), now=NOW)


def test_a_website_may_be_in_a_column_of_any_name() -> None:
    columns = Columns.from_pairs(["website=url"], [])
    parsed = parse_record(RECORD | {"url": "https://www.acme.com/about"}, columns=columns, now=NOW)
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.company.domain == "acme.com"


def test_a_column_of_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no field 'sector'; the fields are id, name"):
        Columns.from_pairs(["sector=industry_group"], [])


def test_a_text_with_too_few_words_is_not_encoded_and_has_no_vector() -> None:
    encoder = CountingEncoder()
    short, long = change("Acme sells."), change("Acme sells iron anvils.", version=4)
    for changes in ([short], [short, change("Acme sells iron anvils.", company_id="other")]):
        document = as_stored(embed_changes(changes, {}, encoder, now=NOW))["acme"]
        assert not document.has_vector
        assert (document.text_hash, document.vector.shape) == (NO_TEXT, (DIMENSION,))
    assert encoder.texts == ["The company sells iron anvils."]
    (longer,) = embed_changes([long], {"acme": document}, encoder, now=LATER)
    assert isinstance(longer, EmbeddedCompany)
    assert longer.has_vector
    (shorter,) = embed_changes([replace(short, version=6)], {"acme": longer}, encoder, now=LATER)
    assert isinstance(shorter, EmbeddedCompany)
    assert not shorter.has_vector


def test_a_vector_that_is_kept_is_that_of_the_live_generation(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    with closing(SqliteIndex(tmp_path / "index.db")) as index, WriterLease(index) as writer:
        for name, vector in (("imported", unit_vector(999)), ("live", unit_vector(1))):
            add_live(index, name)
            (document,) = embed_changes([change()], {}, encoder, now=NOW)
            assert isinstance(document, EmbeddedCompany)
            index.upsert(name, [replace(document, vector=vector)])
        write_changes(writer, {ENCODER_ID: encoder}, [change(version=4)], now=LATER)
        assert np.allclose(index.get("live", ["acme"])["acme"].vector, unit_vector(1))


def test_names_of_one_company_that_is_written_repeatedly_are_hashed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []

    def recorded(key: bytes, names: Iterable[str]) -> frozenset[str]:
        hashed.extend(names := list(names))
        return hashes_of(key, names)

    monkeypatch.setattr("similarity.ingest.former_names.hashes_of", recorded)
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        changes = [
            VersionedCompany(company=make_company("acme", name=f"Acme {number}"), version=2 * number)
            for number in range(1, 4)
        ]
        with WriterLease(index) as writer:
            write_changes(writer, {ENCODER_ID: CountingEncoder()}, changes, now=NOW)
    assert sorted(hashed) == ["Acme 1", "Acme 2", "Acme 3"]
