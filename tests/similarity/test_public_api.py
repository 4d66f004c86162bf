"""The names that `import similarity` offers, as a notebook uses them."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import similarity
from similarity import Anchor, Company, Question, Searcher, TextEncoder, add_companies, open_index
from similarity.bundle import ModelBundle, seed_folder
from similarity.errors import InvalidInput
from similarity.index.attributes import parse_schema
from similarity.ingest.records import Columns

SHOES = "Designs and sells running shoes and sports apparel to athletes around the world."
BEER = "Brews lager beer and sells it to pubs, bars and supermarkets all over Europe."
RECORDS = [
    {"id": "nike", "name": "Nike", "description": SHOES, "country": "United States"},
    {
        "id": "adidas",
        "name": "Adidas",
        "description": "Makes sports shoes, football boots and sportswear.",
    },
    {"id": "heineken", "name": "Heineken", "description": BEER},
]


def test_five_lines_lead_from_records_to_neighbours(tmp_path: Path) -> None:
    index = open_index(tmp_path / "companies.db", create=True)
    results = add_companies(index, RECORDS)
    ranking = Searcher(index).search("nike")
    assert [result.outcome for result in results] == ["applied"] * 3
    assert [hit.company.id for hit in ranking.hits] == ["adidas", "heineken"]
    assert ranking.hits[0].probability is not None
    index.close()
    # The encoder that the index was made with stays beside it.
    assert [each.name for each in (tmp_path / "companies.db.bundles").iterdir()] == [
        ModelBundle.load(seed_folder()).encoder_id
    ]


def test_companies_and_records_with_other_names_are_taken_alike(tmp_path: Path) -> None:
    index = open_index(tmp_path / "companies.db", create=True)
    encoder = TextEncoder(ModelBundle.load(seed_folder()))
    add_companies(index, [Company(id="nike", name="Nike", description=SHOES)], encoder=encoder)
    columns = Columns(fields={"id": "ticker", "description": "about"})
    add_companies(index, [{"ticker": "HEIA", "name": "Heineken", "about": BEER}], encoder=encoder, columns=columns)
    searcher = Searcher(index, {encoder.encoder_id: encoder})
    ranking = searcher.search(Question(anchors=[Anchor(text="a brewery of lager beer")], k=1, explain=1))
    assert [hit.company.id for hit in ranking.hits] == ["HEIA"]
    assert ranking.hits[0].phrases
    index.close()


def test_a_record_that_breaks_a_rule_is_named_and_the_others_are_written(tmp_path: Path) -> None:
    index = open_index(tmp_path / "companies.db", create=True)
    bad = {"ticker": "A", "name": "A", "description": ""}
    assert (add_companies(index, []), index.generations()) == ([], [])
    records = [{**RECORDS[0], "ticker": "N"}, bad, {**RECORDS[1], "ticker": "M"}]
    with pytest.warns(
        UserWarning, match=r"1 of 3 companies were not written, the first because of description: is empty"
    ):
        results = add_companies(index, records, columns=Columns(fields={"id": "ticker"}))
    assert [(result.id, result.outcome) for result in results] == [
        ("N", "applied"),
        ("A", "rejected"),
        ("M", "applied"),
    ]
    assert results[1].reason == "description: is empty, in companies[1] (id 'A')"
    assert index.get(index.live().name, ["N", "A", "M"]).keys() == {"N", "M"}
    index.close()


def test_records_keep_the_attributes_that_the_index_declares(tmp_path: Path) -> None:
    index = open_index(tmp_path / "companies.db", create=True)
    index.declare(parse_schema(["staff:number"]))
    results = add_companies(index, [{**RECORDS[0], "staff": "12,500"}, {**RECORDS[1], "staff": "many"}])
    assert index.get(index.live().name, ["nike"])["nike"].company.attributes == {"staff": 12_500}
    assert [result.reason.partition(":")[0] for result in results] == ["", "attributes.staff"]
    index.close()


def test_keys_are_recognised_as_columns_and_those_ignored_are_named(tmp_path: Path) -> None:
    index = open_index(tmp_path / "companies.db", create=True)
    record = {"ID": "nike", "Company Name": "Nike", "Description": SHOES, "Country": "United States", "Staff": "12,500"}
    odd: dict[Any, str] = {7: "x"}  # as a data frame can have it
    hint = "; keep one as an attribute with columns=Columns(attributes={'NAME': KEY})"
    results = add_companies(index, [{**record, **odd}, RECORDS[1]])
    assert [result.reason for result in results] == [f"ignored: Staff, 7{hint}", ""]
    assert index.get(index.live().name, ["nike"])["nike"].company.country == "United States"
    add_companies(index, [{**record, "sector": "sport"}], columns=Columns.from_pairs([], ["staff:number", "sector"]))
    with pytest.warns(UserWarning, match="the type of the attribute 'staff' changes from number to ordinal=a,b"):
        add_companies(index, [record], columns=Columns.from_pairs([], ["staff:ordinal=a,b"]))
    with pytest.warns(UserWarning, match="from ordinal=a,b to number"):
        add_companies(index, [{**record, "sector": "x"}], columns=Columns.from_pairs([], ["staff:number", "sector"]))
    results = add_companies(index, [{**record, "Staff": 7, "SECTOR": "shoes"}])
    assert [result.reason for result in results] == [""]
    assert index.get(index.live().name, ["nike"])["nike"].company.attributes == {"staff": 7, "sector": "shoes"}
    with pytest.raises(InvalidInput, match=r"companies\[0\]: more than one .* choose with columns=Columns\(fields="):
        add_companies(index, [{**record, "COUNTRY": "Spain"}])
    index.close()


def test_records_of_one_id_and_unchanged_ones_are_said_to_be_so(tmp_path: Path) -> None:
    index = open_index(tmp_path / "companies.db", create=True)
    add_companies(index, RECORDS)
    assert [result.outcome for result in add_companies(index, RECORDS)] == ["unchanged"] * 3
    results = add_companies(index, [{**RECORDS[0], "country": "Spain"}, RECORDS[1], RECORDS[0]])
    assert [result.reason for result in results] == ["replaced by companies[2]", "", ""]
    assert index.get(index.live().name, ["nike"])["nike"].company.country == "United States"
    index.close()


def test_values_that_a_record_removes_are_named(tmp_path: Path) -> None:
    index = open_index(tmp_path / "companies.db", create=True)
    columns = Columns.from_pairs([], ["staff:number"])
    add_companies(index, [{**RECORDS[0], "staff": 5, "country": "Chile"}], columns=columns)
    bare = {name: RECORDS[0][name] for name in ("id", "name", "description")}
    [result] = add_companies(index, [bare])
    assert result.reason == "removed, because the record lacks them: country, attributes.staff"
    index.close()


@pytest.mark.parametrize("given", ["nike", RECORDS[0], [RECORDS[0], None], [("nike", "Nike")]])
def test_what_is_no_list_of_companies_is_refused_with_what_to_pass(tmp_path: Path, given: Any) -> None:
    with (
        closing(open_index(tmp_path / "companies.db", create=True)) as index,
        pytest.raises(InvalidInput, match=r"pass add_companies a list of Company or of dicts"),
    ):
        add_companies(index, given)


def test_what_is_offered_is_there_and_nothing_else() -> None:
    for name in similarity.__all__:
        assert getattr(similarity, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Manager'"):
        similarity.Manager  # noqa: B018  # the look-up is what is tested


def test_importing_the_package_loads_no_library() -> None:
    script = "import sys, similarity; sys.exit(', '.join(sorted({'numpy', 'onnxruntime'} & set(sys.modules))) or 0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_index_that_does_not_exist_is_made_with_create(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"in Python: open_index\(\.\.\., create=True\)"):
        open_index(tmp_path / "nope.db")
