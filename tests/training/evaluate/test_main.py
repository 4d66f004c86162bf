"""The command, from files to tables and report, with a model whose vectors are set by hand."""

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from similarity.bundle import ModelBundle
from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.encoder import TextEncoder
from similarity.generations.judgements import read_judgements
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex
from similarity.text import embedding_text
from tests.tiny_bundle import write_tiny_bundle
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
    found = run(folder, *selecting(folder), "--tasks", "ranking", "pairs", "corpus", "--seed", "3")
    printed = capsys.readouterr()
    for title in ("\nranking\n", "\npairs\n", "\ncorpus\n"):
        assert title in printed.out
    # Equal texts are encoded once.
    assert "companies encoded" in printed.err
    assert found["seed"] == 3
    values = found["anchor_values"]
    assert isinstance(values, dict)
    assert set(values) == {"ndcg10", "p10", "mrr", "anchor_auc", "recall10", "recall50", "recall100"}
    assert list(values["ndcg10"]) == ["a0", "b0"]
    # Fewer companies than 50: everything is found.
    assert values["recall50"] == {"a0": 1, "b0": 1}


def test_two_reports_are_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, *judged(folder), "--tasks", "corpus", output="old.json")
    found = run(folder, *judged(folder), "--tasks", "corpus", "--against", str(folder / "old.json"))
    differences = found["differences"]
    assert isinstance(differences, dict)
    assert differences["recall10"]["mean"] == 0
    assert differences["recall10"]["above"] == 0.5
    assert "new - old" in capsys.readouterr().out


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
    assert read["anchor_values"] == encoded["anchor_values"]
    write_tiny_bundle(folder / "bundle", max_tokens=7)
    with pytest.raises(SystemExit, match="holds vectors of encoder"):
        run(folder, *judged(folder), "--tasks", "corpus", "--index", target)


@pytest.mark.training
def test_all_tasks_are_the_default(folder: Path) -> None:
    found = run(folder, *selecting(folder), "--served", "17", "--plots", str(folder / "plots"))
    assert {"ranking", "pairs", "corpus", "calibration"} <= set(found)
    assert found["calibration"]["fit"]["calibration"]["slope"] > 0  # type: ignore[index]
    assert (folder / "plots" / "reliability.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--against", "nothing.json"], "^refused: nothing.json is not a report"),
        ([], "^refused: there is no file nowhere"),
    ],
)
def test_missing_files_are_refused(folder: Path, options: Sequence[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        run(folder, "--judged", "nowhere", "--companies", "nothing.jsonl", *options)


def test_a_missing_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is not a folder"):
        main(["--bundle", str(tmp_path / "no"), "--output", "x", "--judged", "y", "--companies", "z"])


def test_selection_anchors_may_not_be_evaluated(folder: Path) -> None:
    with pytest.raises(SystemExit, match="2 selection anchors are among those evaluated, such as a0"):
        run(folder, *judged(folder), "--tasks", "pairs", "--selection", str(folder / "dev.tsv"))


def test_without_a_training_split_a_selection_is_asked_for(folder: Path) -> None:
    (folder / "train.tsv").rename(folder / "selection.tsv")
    with pytest.raises(SystemExit, match="--selection"):
        run(folder, *judged(folder), "--tasks", "pairs")
    assert "pairs" in run(folder, *judged(folder), "--tasks", "pairs", "--selection", str(folder / "selection.tsv"))


def test_selection_anchors_are_those_that_training_holds_out(folder: Path) -> None:
    path = folder / "train.tsv"
    train, kept = split_by_anchor(read_pairs(path, companies=folder / "companies.jsonl"), selection=2, seed=5)
    chosen = held_out_judgements(path, seed=5, anchors=2)
    assert set(chosen) == {kept.ids[number] for number in kept.left}
    assert not set(chosen) & {train.ids[number] for number in train.left}
    judgements = read_judgements(path)
    assert chosen == {anchor: judgements[anchor] for anchor in chosen}
    others = [held_out_judgements(path, seed=seed, anchors=2) for seed in range(10)]
    assert any(set(other) != set(chosen) for other in others)


def test_more_selection_anchors_than_there_are_is_refused(folder: Path) -> None:
    with pytest.raises(SystemExit, match="100 selection anchors cannot be cut from 6 anchors"):
        run(folder, *judged(folder), "--tasks", "pairs")
