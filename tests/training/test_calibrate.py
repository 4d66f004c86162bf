"""A calibration changes a bundle's probabilities, never its vectors."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from similarity.bundle import ModelBundle, trained_on_path
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from tests.tiny_bundle import write_tiny_bundle
from tests.training.evaluate.test_main import write_index
from training.calibrate import fit_calibration, main
from training.evaluate.corpus import Corpus

TRADES = ("anvils", "boats", "cars")
COMPANIES = 45

pytestmark = pytest.mark.training


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """45 companies of three trades, some with a word of another; an anchor knows all others: its trade competes,
    except every fifth company."""
    companies = [
        {
            "id": f"c{n:02}",
            "name": f"Firm {n}",
            "description": " ".join([TRADES[n % 3]] * (1 + n % 4) + [TRADES[n // 3 % 3]]),
        }
        for n in range(COMPANIES)
    ]
    (tmp_path / "companies.jsonl").write_text("\n".join(json.dumps(company) for company in companies))
    for name, anchors in (("judged", range(24)), ("dev", range(24, 30))):
        rows = [
            f"c{anchor:02}\tc{other:02}\t{2 if anchor % 3 == other % 3 and other % 5 else 0}"
            for anchor in anchors
            for other in range(COMPANIES)
            if other != anchor
        ]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["anchor\tcandidate\tgrade", *rows]) + "\n")
    write_tiny_bundle(tmp_path / "bundle", metrics={"dev_ndcg10_plain": 0.5, "calibration_old": 1.0})
    return tmp_path


def run(folder: Path, *options: str) -> None:
    given = ["--bundle", str(folder / "bundle"), "--judged", str(folder / "judged.tsv")]
    main([*given, "--companies", str(folder / "companies.jsonl"), "--served", "20", *options])


def test_the_encoder_stays_and_the_bundle_is_a_new_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = ModelBundle.load(folder / "bundle")
    vectors = TextEncoder(before).encode(["anvils", "boats cars"])
    run(folder, "--dev", str(folder / "dev.tsv"), "--plots", str(folder / "plots"))
    after = ModelBundle.load(folder / "bundle")
    assert after.encoder_id == before.encoder_id
    assert after.bundle_id != before.bundle_id
    np.testing.assert_array_equal(TextEncoder(after).encode(["anvils", "boats cars"]), vectors)
    assert after.manifest.calibration is not None
    assert after.manifest.calibration.slope > 0
    metrics = after.manifest.metrics
    # Everything was judged: 24 anchors are served 20 companies each, 6 of dev too.
    assert (metrics["calibration_pairs"], metrics["calibration_served"]) == (480, 480)
    assert (metrics["dev_calibration_pairs"], metrics["corpus_companies"]) == (120, COMPANIES)
    assert metrics["dev_ndcg10_plain"] == 0.5
    assert "calibration_old" not in metrics
    assert metrics["dev_recall100"] == 1
    card = (folder / "bundle" / "README.md").read_text()
    assert card.startswith("A tiny model.\n\n## Search of the whole corpus\n")
    assert (folder / "plots" / f"reliability-{after.encoder_id}.png").exists()
    printed = capsys.readouterr()
    assert "45 of 45 companies encoded, about 0:00 left" in printed.err
    assert f"bundle {after.bundle_id}" in printed.out
    assert [entry.name for entry in folder.iterdir() if entry.name.startswith(".")] == []


def test_the_same_judgements_make_the_same_bundle(folder: Path) -> None:
    run(folder)
    once = ModelBundle.load(folder / "bundle").bundle_id
    run(folder)
    assert ModelBundle.load(folder / "bundle").bundle_id == once


def test_another_store_leaves_the_bundle_alone(folder: Path) -> None:
    before = ModelBundle.load(folder / "bundle")
    run(folder, "--output", str(folder / "store"))
    assert ModelBundle.load(folder / "bundle").bundle_id == before.bundle_id
    assert ModelBundle.load(folder / "store" / before.encoder_id).manifest.calibration is not None


def test_only_the_held_out_anchors_of_a_training_file_count(folder: Path) -> None:
    run(folder, "--selection-anchors", "8", "--seed", "5")
    assert ModelBundle.load(folder / "bundle").manifest.metrics["calibration_anchors"] == 8


def test_no_probability_is_fitted_on_anchors_that_the_bundle_was_trained_on(folder: Path) -> None:
    trained_on_path(folder / "bundle").write_text("c03\nelsewhere\n")
    with pytest.raises(SystemExit, match=r"trained on 1 of the 24 anchors of .*, such as c03"):
        run(folder)


def test_anchors_may_not_be_fitted_and_measured_on(folder: Path) -> None:
    before = ModelBundle.load(folder / "bundle").bundle_id
    with pytest.raises(SystemExit, match="24 anchors, such as c00, are in both the judgements to fit on"):
        run(folder, "--dev", str(folder / "judged.tsv"))
    assert ModelBundle.load(folder / "bundle").bundle_id == before


def test_without_companies_or_an_index_there_is_nothing_to_search(folder: Path) -> None:
    with pytest.raises(SystemExit, match="pass --companies or --index"):
        main(["--bundle", str(folder / "bundle"), "--judged", str(folder / "judged.tsv")])


def served_corpus(cosines: Sequence[float]) -> Corpus:
    """Ten anchors on the first axis, and companies with these cosines to it."""
    rows = [[1.0, 0.0]] * 10 + [[cosine, float(np.sqrt(1 - cosine**2))] for cosine in cosines]
    ids = [f"a{n}" for n in range(10)] + [f"c{n}" for n in range(len(cosines))]
    return Corpus(ids=tuple(ids), vectors=np.array(rows, dtype=np.float32))


def test_lower_cosines_of_competitors_give_no_calibration() -> None:
    corpus = served_corpus([0.9, 0.8, 0.2, 0.1])
    wrong = {f"a{n}": {"c0": 0, "c1": 0, "c2": 2, "c3": 2} for n in range(10)}
    with pytest.raises(InvalidInput, match=r"among the top 13 hits, competitors do not have higher cosines"):
        fit_calibration(corpus, wrong, k=13)
    right = {f"a{n}": {"c0": 2, "c1": 2, "c2": 0, "c3": 0} for n in range(10)}
    assert fit_calibration(corpus, right, k=13).report.calibration.slope > 0


def test_vectors_of_an_index_need_no_encoding(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "--output", str(folder / "encoded"))
    bundle = ModelBundle.load(folder / "bundle")
    write_index(folder / "index.db", folder / "companies.jsonl", bundle)
    capsys.readouterr()
    run(folder, "--output", str(folder / "indexed"), "--index", str(folder / "index.db"))
    assert "encoded," not in capsys.readouterr().err
    encoded, indexed = (
        ModelBundle.load(folder / store / bundle.encoder_id).manifest.calibration for store in ("encoded", "indexed")
    )
    assert encoded is not None
    assert indexed is not None
    assert (indexed.slope, indexed.intercept) == pytest.approx((encoded.slope, encoded.intercept), rel=1e-3)
