"""The command for the papers' benchmarks, from files to tables and report."""

import json
from pathlib import Path

import pytest

from tests.tiny_bundle import write_tiny_bundle
from training.papers.evaluate import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_bundle(tmp_path / "bundle")
    return tmp_path


def run(folder: Path, *options: str) -> dict[str, object]:
    main(["--bundle", str(folder / "bundle"), "--output", str(folder / "report.json"), *options])
    found: dict[str, object] = json.loads((folder / "report.json").read_text())
    return found


def test_sts_needs_no_judgements(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("STS12", "STS13", "STS14", "STS15", "STS16", "STSb-test", "SICK-R-test"):
        (folder / f"{name}.tsv").write_text(
            "score\tsentence1\tsentence2\tsubset\n5\tanvils\tanvils\tx\n3\tanvils\tanvils boats\tx\n1\tcars\tboats\tx\n"
        )
    found = run(folder, "--sts", str(folder))
    assert set(found) == {"encoder_id", "bundle_id", "seed", "sts"}
    assert "average" in capsys.readouterr().out
    assert found["sts"]["average"] == pytest.approx(100)  # type: ignore[index]


@pytest.mark.training
def test_transfer_tasks_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"{number % 2}\t{'boats' if number % 2 else 'cars'}\t{split}"
        for number in range(12)
        for split in ("train", "test")
    ]
    (folder / "TREC.tsv").write_text("\n".join(["label\ttext\tsplit", *rows]) + "\n")
    found = run(folder, "--senteval", str(folder), "--transfer-tasks", "TREC")
    assert found["senteval"]["average"] == 100  # type: ignore[index]
    assert "TREC" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "there is nothing to evaluate on"),
        (["--sts", "nowhere"], "there is no STS12.tsv.gz in nowhere"),
    ],
)
def test_missing_data_are_refused(folder: Path, options: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=f"^refused: {message}"):
        run(folder, *options)
