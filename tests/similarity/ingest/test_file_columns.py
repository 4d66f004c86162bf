"""Columns are found by their names; those that a user names always win."""

import json
from datetime import UTC, datetime
from pathlib import Path

import openpyxl
import pytest

from similarity.company import DeletedCompany
from similarity.errors import InvalidInput
from similarity.index.attributes import parse_schema
from similarity.ingest.file_columns import KnownAttributes, file_columns
from similarity.ingest.files import read_rows
from similarity.ingest.records import Columns, VersionedCompany, parse_record

NAMES = Columns()


def summary(path: Path, header: str, columns: Columns = NAMES, known: KnownAttributes | None = None) -> str:
    path.write_text(f"{header}\n")
    return file_columns(path, columns, known=known).summary


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("id,name,description", "columns: id, name, description"),
        ("ID,NAME,About,Description", "columns: id <- ID, name <- NAME, description <- Description; ignored: About"),
        ("Company_ID,company name,DESCRIPTION,Event Time", "columns: id <- Company_ID, name <- company name, "
         "description <- DESCRIPTION, event_time <- Event Time"),
        ("id,name,Name,Company Name,description", "columns: id, name, description; ignored: Name, Company Name"),
        ("id,name,description,Website", "columns: id, name, description, domain <- Website"),
        ("id,name,description,Domain,website", "columns: id, name, description, domain <- Domain, domain <- website"),
    ],
)  # fmt: skip
def test_columns_may_differ_in_case_blanks_and_underscores(tmp_path: Path, header: str, text: str) -> None:
    assert summary(tmp_path / "a.csv", header) == text


@pytest.mark.parametrize("website", ["Website", "website", "WEB SITE"])
def test_a_missing_domain_is_taken_from_the_website_however_they_are_written(tmp_path: Path, website: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"ID,Name,Description,Domain,{website}\na,A,A.,,a.com\nb,B,B.,b.com,x.com\n")
    columns = file_columns(path, Columns()).columns
    assert [columns.value(row.record, "domain") for row in read_rows(path)] == ["a.com", "b.com"]
    columns = file_columns(path, Columns(fields={"domain": "domain"})).columns
    assert [columns.value(row.record, "domain") for row in read_rows(path)] == ["", "b.com"]


def test_a_column_that_is_called_like_an_attribute_is_told_from_it(tmp_path: Path) -> None:
    columns = Columns(attributes={"staff": "staff"})
    text = summary(tmp_path / "a.csv", "id,name,description,staff,attributes.staff", columns)
    assert text == "columns: id, name, description, attributes.staff <- staff; ignored: attributes.staff"


def test_columns_that_a_user_names_win(tmp_path: Path) -> None:
    columns = Columns(fields={"name": "Title", "domain": "Url"}, attributes={"size": "staff"})
    text = summary(tmp_path / "a.csv", "id,name,title,description,domain,website,url,Staff", columns).partition(", ")[2]
    assert text == (
        "name <- title, description, domain <- url, attributes.size <- Staff; ignored: name, domain, website"
    )


def test_attributes_that_the_index_knows_are_found(tmp_path: Path) -> None:
    known = KnownAttributes(schema=parse_schema(["employees:number", "cap:number"]), stored=["sector", "name"])
    path = tmp_path / "a.csv"
    text = summary(path, "id,name,description,Employees,SECTOR,note", known=known)
    assert text.endswith("description, attributes.employees <- Employees, attributes.sector <- SECTOR; ignored: note")
    found = file_columns(path, Columns(attributes={"employees": "note"}), known=known).columns
    assert found.attributes == {"employees": "note", "sector": "SECTOR"}
    assert set(found.schema.types) == {"employees", "cap"}


def test_an_object_of_attributes_needs_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first = {"id": "a", "name": "A", "description": "x", "attributes": {"Head Count": "1,200", "stage": "seed"}}
    second = {"id": "b", "name": "B", "description": "y", "attributes": {"Head Count": 7, "late": True}}
    path.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    known = KnownAttributes(schema=parse_schema(["head_count:number"]))
    found = file_columns(path, NAMES, known=known)
    assert found.summary.endswith(", attributes.head_count <- attributes.Head Count, attributes.stage, attributes.late")
    parsed = [parse_record(row.record, columns=found.columns, now=datetime.now(UTC)).change for row in read_rows(path)]
    assert [each.company.attributes for each in parsed if not isinstance(each, DeletedCompany)] == [
        {"head_count": 1200, "stage": "seed"}, {"head_count": 7, "late": True},
    ]  # fmt: skip


def test_a_column_named_as_in_an_export_is_an_attribute(tmp_path: Path) -> None:
    assert summary(tmp_path / "a.csv", "id,name,description,attributes.stage,attributes.") == (
        "columns: id, name, description, attributes.stage; ignored: attributes."
    )


def test_a_declared_attribute_may_appear_late_in_a_jsonl_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a", "name": "A", "description": "A."}\n')
    found = file_columns(path, Columns(), known=KnownAttributes(schema=parse_schema(["cap:number"]), stored=["note"]))
    assert found.columns.attributes == {"cap": "cap"}
    assert found.summary == "columns: id, name, description"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("id,Name,NAME,description", "more than one column could be name: 'Name', 'NAME'; choose with --column name="),
        ("id,Name,Company Name,description", "'Name', 'Company Name'; choose with --column name=COLUMN"),
        ("id,name,description,Website,Web Site", "choose with --column domain=COLUMN"),
        ("id,name,description,Staff,STAFF", "could be staff: 'Staff', 'STAFF'; choose with --attribute staff=COLUMN"),
    ],
)
def test_columns_that_could_be_the_same_are_not_guessed(tmp_path: Path, header: str, message: str) -> None:
    known = KnownAttributes(stored=["staff"])
    with pytest.raises(InvalidInput, match=message):
        summary(tmp_path / "a.csv", header, known=known)


def test_the_sheets_of_a_workbook_that_are_not_read_are_named(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for number, header in enumerate((["id", "name", "description"], ["id", "title"])):
        book.create_sheet(f"Sheet {number}").append(header)
    del book["Sheet"]
    path = tmp_path / "a.xlsx"
    book.save(path)
    assert file_columns(path, NAMES).summary == (
        "columns: id, name, description; the sheet 'Sheet 0' is read, not 'Sheet 1'"
    )
    book.move_sheet("Sheet 1", -1)
    book.save(path)
    hint = "; the sheet 'Sheet 1' is read, not 'Sheet 0': if another one has the companies, make it the first"
    with pytest.raises(InvalidInput, match=f"no column 'name' or 'description'; .* id, title{hint}"):
        file_columns(path, NAMES)
    book.move_sheet("Sheet 0", -1)
    book["Sheet 0"]["C1"] = "name"
    book.save(path)
    with pytest.raises(InvalidInput, match=r"occurs twice .*; the sheet 'Sheet 0' is read, not 'Sheet 1'"):
        file_columns(path, NAMES)


@pytest.mark.parametrize("header", ["id,deleted", "ID,Deleted"])
def test_a_file_of_deletions_needs_only_ids(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\na,true\n")
    columns = file_columns(path, NAMES).columns
    [parsed] = [parse_record(row.record, columns=columns, now=datetime.now(UTC)) for row in read_rows(path)]
    assert isinstance(parsed.change, DeletedCompany)


def test_a_title_above_the_column_names_is_suspected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="My export; if this is a title, remove the lines above the column names"):
        summary(tmp_path / "a.csv", "My export")


def test_many_ignored_columns_are_cut_short(tmp_path: Path) -> None:
    header = ",".join(["id", "name", "description", *(f"x{number}" for number in range(30))])
    assert summary(tmp_path / "a.csv", header).endswith("x18, x19 and 10 more")


def test_a_csv_file_without_rows_is_a_load_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "delta.csv"
    path.write_text("id,name,description\n")
    file_columns(path, Columns())


def test_an_attribute_may_appear_late_in_a_jsonl_file_but_it_must_appear(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record: dict[str, object] = dict.fromkeys(("id", "name", "description"), "x")
    path.write_text("".join(json.dumps(row) + "\n" for row in [*[record] * 120, record | {"employees": 7}]))
    file_columns(path, Columns(attributes={"employees": "employees"}))
    with pytest.raises(InvalidInput, match="no column 'employes'"):
        file_columns(path, Columns(attributes={"employees": "employes"}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            Columns(),
            r"--column name=COLUMN \(a row is a whole company; .*; the file has the columns: id, title, descri",
        ),
        (Columns(fields={"name": "nam"}), "no column 'nam' for name"),
        (Columns(fields={"name": "title"}, attributes={"size": "employees"}), "no column 'employees' for size"),
    ],
)
def test_columns_are_checked_before_the_first_row(tmp_path: Path, columns: Columns, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,title,description\n1,a,b\n")
    with pytest.raises(InvalidInput, match=message):
        file_columns(path, columns)


def test_a_named_member_of_an_object_of_attributes_is_that_attribute(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows: list[dict[str, object]] = [
        {"id": "a", "name": "A", "description": "x", "attributes": {"Staff": "50", "offices": ["Bonn"]}},
        {"id": "b", "name": "B", "description": "y", "attributes": ["odd"], "stage": ""},
        {
            "id": "c",
            "name": "C",
            "description": "z",
            "attributes": {"stage": "seed", "digits": 10**5_000},
            "stage": None,
        },
    ]
    with path.open("w") as file:
        for row in rows[:2]:
            file.write(f"{json.dumps(row)}\n")
    columns = Columns.from_pairs([], ["employees:number=Staff", "stage"])
    found = file_columns(path, columns).columns
    parsed = [parse_record(row, columns=found, now=datetime.now(UTC)) for row in rows]
    changes = [each.change for each in parsed]
    assert [each.company.attributes for each in changes if not isinstance(each, DeletedCompany)] == [
        {"employees": 50}, {}, {"stage": "seed"},
    ]  # fmt: skip
    assert [[warning.partition(":")[0] for warning in each.warnings] for each in parsed] == [
        ["attributes.offices"], ["attributes"], ["attributes.digits"],
    ]  # fmt: skip
    names = [name for each in parsed for name in each.warned_fields]
    assert [found.column_of({}, name) for name in names] == names


def late_jsonl(path: Path, first: dict[str, object], last: dict[str, object]) -> Path:
    """A file whose last row, after 110 others, has other columns."""
    path.write_text("".join(json.dumps(row) + "\n" for row in [*[first] * 110, last]))
    return path


def test_a_column_of_another_spelling_is_found_in_any_row(tmp_path: Path) -> None:
    record: dict[str, object] = {"id": "a", "name": "A", "description": "Makes anvils."}
    path = late_jsonl(tmp_path / "a.jsonl", record, {"id": "b", "Deleted": True, "attributes": {"late": 1}})
    found = file_columns(path, Columns())
    assert found.summary == "columns: id, name, description, deleted <- Deleted"
    *_, last = read_rows(path)
    change = parse_record(last.record, columns=found.columns, now=datetime.now(UTC)).change
    assert isinstance(change, DeletedCompany)


@pytest.mark.parametrize("options", [[], ["employees:number"], ["employees:number=attributes.employees"]])
def test_an_attribute_column_that_appears_late_is_an_attribute(tmp_path: Path, options: list[str]) -> None:
    record: dict[str, object] = {"id": "a", "name": "A", "description": "Makes anvils."}
    path = late_jsonl(tmp_path / "a.jsonl", record, record | {"attributes.employees": 5})
    found = file_columns(path, Columns.from_pairs([], options))
    assert found.summary == "columns: id, name, description, attributes.employees"
    *_, last = read_rows(path)
    change = parse_record(last.record, columns=found.columns, now=datetime.now(UTC)).change
    assert isinstance(change, VersionedCompany)
    assert change.company.attributes == {"employees": 5}


@pytest.mark.parametrize("options", [["employees:number"], ["employees:number=Staff"]])
def test_a_late_member_of_an_object_can_be_named(tmp_path: Path, options: list[str]) -> None:
    record: dict[str, object] = {"id": "a", "name": "A", "description": "Makes anvils."}
    member = options[0].partition("=")[2] or "employees"
    path = late_jsonl(tmp_path / "a.jsonl", record, record | {"attributes": {member: "5"}})
    columns = file_columns(path, Columns.from_pairs([], options)).columns
    *_, last = read_rows(path)
    change = parse_record(last.record, columns=columns, now=datetime.now(UTC)).change
    assert isinstance(change, VersionedCompany)
    assert change.company.attributes == {"employees": 5}
    with pytest.raises(InvalidInput, match=f"no column '{member}' for industry"):
        file_columns(path, Columns(fields={"industry": member}))


@pytest.mark.parametrize(
    ("first", "last", "pair"),
    [
        ("Industry", "industry", "'industry' and 'Industry'"),
        ("industry", "Industry", "'industry' and 'Industry'"),
        ("industry", "Company Industry", "'industry' and 'Company Industry'"),
    ],
)
def test_rows_that_spell_a_column_in_two_ways_are_not_guessed(tmp_path: Path, first: str, last: str, pair: str) -> None:
    record: dict[str, object] = {"id": "a", "name": "A", "description": "Makes anvils."}
    path = late_jsonl(tmp_path / "a.jsonl", record | {first: "steel"}, record | {last: "iron"})
    with pytest.raises(InvalidInput, match=f"rows have different columns for industry: {pair}; .* --column industry="):
        file_columns(path, Columns())
    assert file_columns(path, Columns(fields={"industry": first})).ignored == [last]


def test_all_missing_columns_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("about,website\na,b\n")
    options = "--column id=COLUMN --column name=COLUMN --column description=COLUMN"
    with pytest.raises(
        InvalidInput, match=f"no column 'id' or 'name' or 'description'; give their names with {options}"
    ):
        file_columns(path, Columns())


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("a.json", '{"companies": [{"id": 1}]}', r"write only them into the file \(jq -c '.companies\[\]'\)"),
        ("a.json", '{"count": {"x": [{}]}, "a b": [{"id": 1}]}', r"""\(jq -c '."a b"\[\]'\)"""),
        ("a.json", '{\n "count": 20,\n "data": [\n  {\n   "id": 1', r"\(jq -c '.data\[\]'\)"),
        (
            "a.jsonl",
            '{"id": 1, "profile": {"name": "Acme"}}',
            r"take members out of objects first: jq -c '. \+ .\"profile\"'",
        ),
        ("a.json", '[{"id": 1, "profile": {"name": "Acme"}}]', r"jq -c '\.\[\] \| \. \+ \.\"profile\"'"),
        ("a.json", '{"acme": {"name": "Acme"}}', r"jq -c 'to_entries\[\] \| {id: \.key} \+ \.value'"),
        ("a.json", '{"name": {"0": "Acme"}, "text": {"0": "Steel"}}', r'df\.to_json\(FILE, orient="records"\)'),
        ("a.csv", "CRM export;;\n", "remove lines above the column names, such as a title"),
        ("a.csv", "CRM export;\n", "if this is a title, remove the lines above the column names"),
    ],
)
def test_a_file_that_is_no_table_says_what_to_do(tmp_path: Path, name: str, text: str, hint: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidInput, match=hint):
        file_columns(path, Columns())
