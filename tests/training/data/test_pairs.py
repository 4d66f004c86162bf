"""Pair files of every format give the same pairs; bad rows are refused with file and row."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from similarity.errors import InvalidInput
from tests.training.data.pair_data import TEXTS, made_pairs, said, written
from training.data.pairs import Pairs, read_pairs

ROWS = (("a", "b", "positive"), ("a", "c", "negative"), ("b", "d", ""))
SAID = [("a", "b", "competitor"), ("a", "c", "other"), ("b", "d", "")]


def table(separator: str, header: tuple[str, ...] = ("company_a", "company_b", "label")) -> str:
    return "\n".join(separator.join(row) for row in (header, *ROWS)) + "\n"


def records(*values: object) -> list[dict[str, object]]:
    return [
        {"company_a": left, "company_b": right, "label": value}
        for (left, right, _), value in zip(ROWS, values, strict=True)
    ]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.csv", table(",")),
        ("pairs.csv", table(";")),
        ("pairs.tsv", table("\t", ("anchor", "candidate", "label"))),
        ("pairs.jsonl", "\n".join(map(json.dumps, records("positive", "negative", None)))),
        ("pairs.jsonl", "\n".join(map(json.dumps, records(1, 0, None)))),
        ("pairs.jsonl", "\n".join(map(json.dumps, records(True, False, "unlabelled")))),
    ],
)
def test_every_text_format_is_read_plain_or_gzipped(tmp_path: Path, name: str, content: str, suffix: str) -> None:
    pairs = read_pairs(written(tmp_path, name + suffix, content), companies=TEXTS)
    assert said(pairs) == SAID
    assert pairs.texts == tuple(TEXTS[company] for company in "abcd")
    assert not pairs.directed


def test_parquet_is_read_with_labels_as_numbers_with_gaps(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.Table.from_pylist(records(1.0, 0.0, float("nan"))), path)
    assert said(read_pairs(path, companies=TEXTS)) == SAID


def test_labels_without_grades_have_gains(tmp_path: Path) -> None:
    pairs = read_pairs(written(tmp_path, "pairs.csv", table(",")), companies=TEXTS)
    assert pairs.gains[:2].tolist() == [3, 0]
    assert np.isnan(pairs.gains[2])


def test_judgements_are_read_as_graded_pairs(tmp_path: Path) -> None:
    path = written(tmp_path, "train.tsv.gz", "anchor\tcandidate\tgrade\na\tb\t2\na\tc\t1\na\td\t0\n")
    pairs = read_pairs(path, companies=TEXTS)
    assert pairs.gains.tolist() == [3, 1, 0]
    assert [label for *_, label in said(pairs)] == ["competitor", "other", "other"]
    related = read_pairs(path, companies=TEXTS, grade_one="unlabelled")
    assert related.labelled.tolist() == [True, False, True]


def test_inference_pairs_are_directed_texts_and_need_no_companies(tmp_path: Path) -> None:
    content = "label\tpremise\thypothesis\nentailment\tIt rains.\tIt is wet.\n-\tIt rains.\tIt snows.\n"
    pairs = read_pairs(written(tmp_path, "nli.tsv", content))
    assert pairs.directed
    assert pairs.texts == ("It rains.", "It is wet.", "It snows.")
    assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 0], [1, 2])
    assert all(re.fullmatch("[0-9a-f]{16}", text_id) for text_id in pairs.ids)
    assert pairs.labelled.tolist() == [True, False]


def test_a_tab_separated_file_whose_quotes_do_not_pair_has_none(tmp_path: Path) -> None:
    content = 'label\tpremise\thypothesis\nneutral\t"Yes" he said.\tHe spoke.\nneutral\t"Open\tIt is 5" wide.\n'
    pairs = read_pairs(written(tmp_path, "nli.tsv.gz", content))
    assert pairs.texts == ('"Yes" he said.', "He spoke.", '"Open', 'It is 5" wide.')


def test_several_files_are_read_as_one(tmp_path: Path) -> None:
    labelled = written(tmp_path, "labelled.csv", table(","))
    generated = {"anchor": "a", "candidate": "e", "label": "unlabelled", "source": "random"}
    unlabelled = written(tmp_path, "unlabelled.jsonl", json.dumps(generated))
    assert said(read_pairs([labelled, unlabelled], companies=TEXTS)) == [*SAID, ("a", "e", "")]


def test_an_object_may_leave_out_its_label(tmp_path: Path) -> None:
    rows = [{"company_a": "b", "company_b": "d"}, {"company_a": "a", "company_b": "b", "label": "positive"}]
    path = written(tmp_path, "pairs.jsonl", "\n".join(map(json.dumps, rows)))
    assert said(read_pairs(path, companies=TEXTS)) == [("b", "d", ""), ("a", "b", "competitor")]


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(b"text_a,text_b,label\nx,y,positive\nx,Lehr\xdcbung \x81,negative\n")
    with pytest.raises(InvalidInput, match=r"row 2: contains bytes that are not UTF-8"):
        read_pairs(path)


def test_company_texts_are_prepared(tmp_path: Path) -> None:
    companies = [
        {"id": "x", "name": "Able Inc.", "description": "Able Inc. makes anvils."},
        {"id": "y", "name": "Bold", "description": "Bold makes boats."},
    ]
    file = written(tmp_path, "companies.jsonl", "\n".join(map(json.dumps, companies)))
    path = written(tmp_path, "pairs.csv", "company_a,company_b,label\nx,y,positive\n")
    assert read_pairs(path, companies=file).texts == ("The company makes anvils.", "The company makes boats.")


def test_repeated_rows_are_left_out(tmp_path: Path) -> None:
    content = "company_a,company_b,label\na,b,\na,b,positive\na,b,positive\na,b,\nb,a,positive\n"
    pairs = read_pairs(written(tmp_path, "pairs.csv", content), companies=TEXTS)
    assert said(pairs) == [("a", "b", "competitor"), ("b", "a", "competitor")]


def test_the_two_orders_of_a_graded_pair_may_differ(tmp_path: Path) -> None:
    path = written(tmp_path, "train.tsv", "anchor\tcandidate\tgrade\na\tb\t2\nb\ta\t1\n")
    assert read_pairs(path, companies=TEXTS).gains.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("company_a,company_b,label\na,b,positive\na,b,negative\n", "row 2: 'a' and 'b' have another label in .*row 1"),
        ("company_a,company_b,label\na,b,positive\nb,a,negative\n", "row 2: 'b' and 'a' have another label in .*row 1"),
        ("company_a,company_b,label\na,b,positive\na,a,negative\n", "row 2: a is paired with itself"),
        ("company_a,company_b,label\na,b,positive\na,,negative\n", "row 2: company_b is empty"),
        ("company_a,company_b,label\na,b,positive\na,b\n", "row 2: has 2 values for 3 columns"),
        ("company_a,company_b,label\na,b,positive\na,c,mabye\n", "pairs.csv, row 2: label 'mabye'"),
        ("company_a,company_b,label\na,b,\n", "no row is labelled"),
        ("company_a,company_b,label\na,b,negative\n", "no row has the label 'competitor'"),
        ("company_a,company_b,label\n", "pairs.csv has no rows"),
        (
            "one,two,label\na,b,positive\n",
            "no two columns contain a pair; rename them.* The file has the columns: one, two, label",
        ),
        ("company_a,company_b,label,grade\na,b,positive,2\n", r"several label columns \(label, grade\)"),
        ("company_a,company_b,label\na,zz,positive\n", "1 of 2 companies of the pairs are not in .*: zz"),
    ],
)
def test_bad_data_are_refused_with_their_place(tmp_path: Path, content: str, message: str) -> None:
    path = written(tmp_path, "pairs.csv", content)
    with pytest.raises(InvalidInput, match=message):
        read_pairs(path, companies=TEXTS)


def test_at_most_five_unknown_companies_are_named(tmp_path: Path) -> None:
    rows = "\n".join(f"a,x{number},positive" for number in range(7))
    path = written(tmp_path, "pairs.csv", f"company_a,company_b,label\n{rows}\n")
    with pytest.raises(InvalidInput, match=r"7 of 8 companies .*: x0, x1, x2, x3, x4, \.\.\.$"):
        read_pairs(path, companies=TEXTS)


def test_company_ids_need_their_companies(tmp_path: Path) -> None:
    path = written(tmp_path, "pairs.csv", table(","))
    with pytest.raises(InvalidInput, match=r"contains company ids .* give the file of these companies"):
        read_pairs(path)
    with pytest.raises(InvalidInput, match="there is no file"):
        read_pairs(path, companies=tmp_path / "companies.jsonl")


def test_ids_and_texts_are_not_mixed(tmp_path: Path) -> None:
    ids = written(tmp_path, "ids.csv", table(","))
    texts = written(tmp_path, "texts.csv", table(",", ("text_a", "text_b", "label")))
    with pytest.raises(InvalidInput, match=r"some of .* contain company ids, some texts"):
        read_pairs([ids, texts], companies=TEXTS)


def test_unlabelled_files_are_read_where_no_class_is_needed(tmp_path: Path) -> None:
    path = written(tmp_path, "pairs.csv", "company_a,company_b\na,b\n")
    pairs = read_pairs(path, companies=TEXTS, every_class=False)
    assert said(pairs) == [("a", "b", "")]
    assert pairs.classes == ("competitor", "other")


@pytest.fixture
def pairs() -> Pairs:
    return made_pairs([("a", "b"), ("c", "b"), ("a", "d")], ["competitor", "other", ""])


def test_a_subset_keeps_texts_and_their_numbers(pairs: Pairs) -> None:
    part = pairs.subset(np.array([2, 0]))
    assert said(part) == [("a", "d", ""), ("a", "b", "competitor")]
    assert part.texts is pairs.texts
    assert said(pairs.subset(pairs.labelled)) == said(pairs)[:2]


def test_hidden_pairs_stay_without_label_and_gain(pairs: Pairs) -> None:
    hidden = pairs.with_hidden(np.array([0]))
    assert said(hidden) == [("a", "b", ""), ("c", "b", "other"), ("a", "d", "")]
    np.testing.assert_array_equal(hidden.gains, np.array([np.nan, 0, np.nan], dtype=np.float32))
    assert pairs.labelled.tolist() == [True, True, False]


def test_anchors_are_the_left_sides_and_strata_the_labels(pairs: Pairs) -> None:
    assert pairs.anchors == ("a", "c")
    strata = pairs.strata.tolist()
    assert strata[2] == -1
    assert sorted(strata[:2]) == [0, 1]


def test_arrays_that_do_not_fit_are_refused(pairs: Pairs) -> None:
    with pytest.raises(ValueError, match="of 3 pairs, 1 classes"):
        Pairs(
            texts=pairs.texts,
            ids=pairs.ids,
            left=pairs.left,
            right=pairs.right,
            classes=("competitor",),
            targets=pairs.targets,
            known=pairs.known,
            gains=pairs.gains,
            directed=False,
        )
