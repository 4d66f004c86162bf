"""The command, from files to tables and report, with a model whose vectors are set by hand."""

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from similarity.bundle import ModelBundle
from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import read_relevance_labels
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex
from similarity.text import embedding_text
from tests.tiny_bundle import write_tiny_bundle
from training.data.labels import GradeOne
from training.data.pairs import read_pairs
from training.data.splits import split_by_anchor
from training.evaluate.__main__ import main
from training.evaluate.judged import read_companies
from training.evaluate.tasks import held_out_judgements

MAKES = {"anvils": 6, "boats": 6, "cars": 6}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """18 companies of three trades: one of a trade has the others as competitors, and some of the rest judged."""
    trade_of = {f"{trade[0]}{number}": trade for trade, count in MAKES.items() for number in range(count)}
    companies = [
        {"id": company, "name": f"Firm {company}", "description": " ".join([trade] * (1 + int(company[1])) + ["boats"])}
        for company, trade in trade_of.items()
    ]
    (tmp_path / "companies.jsonl").write_text("\n".join(json.dumps(company) for company in companies))
    for split, anchors in (("dev", ("a0", "b0")), ("train", ("a1", "b1", "c1", "a2", "b2", "c2"))):
        rows = [
            f"{anchor}\t{other}\t{2 if trade_of[anchor] == trade else 0}"
            for anchor in anchors
            for other, trade in trade_of.items()
            if other != anchor and int(other[1]) % 2 == 1
        ]
        (tmp_path / f"{split}.tsv").write_text("\n".join(["anchor\tcandidate\tgrade", *rows]) + "\n")
    write_tiny_bundle(tmp_path / "bundle")
    return tmp_path


def run(folder: Path, *options: str, output: str = "report.json") -> dict[str, object]:
    main(["--bundle", str(folder / "bundle"), "--output", str(folder / output), *options])
    found: dict[str, object] = json.loads((folder / output).read_text())
    return found


def judged(folder: Path) -> list[str]:
    return ["--judged", str(folder), "--companies", str(folder / "companies.jsonl")]


def selecting(folder: Path) -> list[str]:
    return [*judged(folder), "--selection-anchors", "5"]


def test_judged_tasks_print_tables_and_write_a_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(folder, *selecting(folder), "--seed", "3")
    printed = capsys.readouterr()
    for title in ("\nranking\n", "\npairs\n", "\ncorpus\n"):
        assert title in printed.out
    # Training has seen all candidates of dev.
    assert re.search(r"\nprepared, unseen candidates( +-){4} +0\n", printed.out)
    # Equal texts are encoded once.
    assert "companies encoded" in printed.err
    assert found["seed"] == 3
    # Predicting no competitor: 6 of 18 pairs are competitors, none is found.
    assert re.search(r"\n\(all negative\) +- +0.6667 +- +0.0000 +0.0000 +- +18\n", printed.out)
    assert found["ranking"]["prepared"]["pairs"] == 18  # type: ignore[index]
    # Fewer companies than 50: everything is found.
    assert found["corpus"]["recall50"] == {"mean": 1, "lower": 1, "upper": 1, "anchors": 2}  # type: ignore[index]


def write_index(path: Path, companies: Path, bundle: ModelBundle) -> None:
    encoder = TextEncoder(bundle)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    generation = Generation(
        name="first",
        encoder_id=bundle.encoder_id,
        bundle_id=bundle.bundle_id,
        dimension=encoder.dimension,
        created_at=now,
    )
    documents = [
        EmbeddedCompany(
            company=company,
            version=1,
            text_hash="0" * 32,
            encoder_id=bundle.encoder_id,
            vector=encoder.encode([embedding_text(company)])[0],
            embedded_at=now,
        )
        for company in read_companies(companies)
    ]
    with closing(SqliteIndex(path)) as index:
        index.create_generation(generation)
        index.upsert("first", [*documents, DeletedCompany(id="gone", version=1)])
        index.register_candidate("first")
        index.promote("first")


def test_vectors_are_taken_from_an_index(folder: Path) -> None:
    target = str(folder / "index.db")
    write_index(folder / "index.db", folder / "companies.jsonl", ModelBundle.load(folder / "bundle"))
    encoded = run(folder, *judged(folder), "--tasks", "corpus")
    read = run(folder, *judged(folder), "--tasks", "corpus", "--index", target)
    assert read["corpus"] == encoded["corpus"]
    write_tiny_bundle(folder / "bundle", max_tokens=7)
    with pytest.raises(SystemExit, match="contains vectors of encoder"):
        run(folder, *judged(folder), "--tasks", "corpus", "--index", target)


def test_missing_files_are_refused(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"^refused: there is no file nowhere"):
        run(folder, "--judged", "nowhere", "--companies", "nothing.jsonl")


def test_a_missing_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is not a folder"):
        main(["--bundle", str(tmp_path / "no"), "--output", "x", "--judged", "y", "--companies", "z"])


def test_selection_anchors_may_not_be_evaluated(folder: Path) -> None:
    (folder / "dev.tsv").write_text((folder / "train.tsv").read_text())
    with pytest.raises(SystemExit, match=r"5 selection anchors of .* are also in dev, such as"):
        run(folder, *selecting(folder), "--tasks", "pairs")


def test_pair_decisions_need_a_training_split(folder: Path) -> None:
    (folder / "train.tsv").unlink()
    with pytest.raises(SystemExit, match=r"there is no file .*train.tsv"):
        run(folder, *judged(folder), "--tasks", "pairs")


@pytest.mark.parametrize("grade_one", get_args(GradeOne))
def test_selection_anchors_are_those_that_training_holds_out(folder: Path, grade_one: GradeOne) -> None:
    path = folder / "train.tsv"
    path.write_text(path.read_text() + "a3\ta4\t1\n")  # an anchor without labels if grade 1 is unlabelled
    pairs = read_pairs(path, companies=folder / "companies.jsonl", grade_one=grade_one)
    train, kept = split_by_anchor(pairs, selection=2, seed=5)
    chosen = held_out_judgements(path, seed=5, anchors=2, grade_one=grade_one)
    assert set(chosen) == {kept.ids[number] for number in kept.left}
    assert not set(chosen) & {train.ids[number] for number in train.left}
    judgements = read_relevance_labels(path)
    assert chosen == {anchor: judgements[anchor] for anchor in chosen}
    others = [held_out_judgements(path, seed=seed, anchors=2) for seed in range(10)]
    assert any(set(other) != set(chosen) for other in others)


def test_selection_anchors_of_a_file_with_unlabelled_pairs(folder: Path) -> None:
    path = folder / "pairs.csv"
    rows = [f"a{number},b{number},positive" for number in range(5)] + ["a0,c1,", "a5,c2,unsure"]
    path.write_text("\n".join(["company_a,company_b,label", *rows]))
    pairs = read_pairs(path, companies=folder / "companies.jsonl", every_class=False)
    _, kept = split_by_anchor(pairs, selection=2, seed=5)
    assert set(held_out_judgements(path, seed=5, anchors=2)) == {kept.ids[number] for number in kept.left}
    path.write_text("text_a,text_b,label,anchor_id,hit_id\nMakes cars.,Makes lorries.,positive,a1,a2\n")
    with pytest.raises(InvalidInput, match="contains texts"):
        held_out_judgements(path, seed=5, anchors=1)


@pytest.mark.parametrize(("grade_one", "anchors"), [("negative", 7), ("unlabelled", 6)])
def test_more_selection_anchors_than_there_are_is_refused(folder: Path, grade_one: str, anchors: int) -> None:
    path = folder / "train.tsv"
    path.write_text(path.read_text() + "a3\ta4\t1\n")
    with pytest.raises(SystemExit, match=f"100 selection anchors cannot be cut from {anchors} anchors"):
        run(folder, *judged(folder), "--tasks", "pairs", "--grade-one", grade_one)
