"""The second stage is fitted from judged pairs, verdicts and lists of peers; vectors stay."""

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from similarity.bundle import ModelBundle, write_manifest
from similarity.company import Company
from similarity.encoder import TextEncoder
from similarity.generations.relevance_labels import read_relevance_labels
from similarity.index.attributes import AttributeSchema, AttributeType
from similarity.index.sqlite import SqliteIndex
from similarity.text import embedding_text
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.tiny_bundle import write_tiny_bundle
from training.data.ranking_pairs import components, read_peers
from training.rank import fit_logistic, main

TRADES = ("anvils", "boats", "clocks")
COMPANIES = 60

pytestmark = pytest.mark.training


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index of companies of three trades, whose competitors are those of the same trade."""
    bundle = ModelBundle.load(write_tiny_bundle(tmp_path / "bundle").folder)
    companies = [
        Company(
            id=f"c{number:02}",
            name=f"Firm {number}",
            description=f"{TRADES[number % 3]} {TRADES[number // 3 % 3]} {TRADES[number % 3]}",
            country=("Sweden", "Chile")[number % 2],
            industry=TRADES[number % 3],
            attributes={"cap": ("small", "large")[number // 3 % 2]},
        )
        for number in range(COMPANIES)
    ]
    vectors = TextEncoder(bundle).encode([embedding_text(each) for each in companies])
    # Facts count where neighbourhoods are dense.
    vectors = vectors + 4 * vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first", encoder_id=bundle.encoder_id, dimension=bundle.manifest.dimension)
        index.declare(AttributeSchema({"cap": AttributeType(("small", "mid", "large"))}, "cap"))
        for company, vector in zip(companies, vectors, strict=True):
            facts = {name: value for name, value in company.content().items() if name not in ("aliases", "tags")}
            document = make_embedded(company.id, vector=vector, encoder_id=bundle.encoder_id, **facts)
            index.upsert("first", [document])
    rows = [
        f"c{anchor:02}\tc{other:02}\t{2 if anchor % 3 == other % 3 and other % 5 else 0}"
        for anchor in range(20)
        for other in range(COMPANIES)
        if other != anchor
    ]
    (tmp_path / "judged.tsv").write_text("\n".join(["anchor\tcandidate\tgrade", *rows]) + "\n")
    peers = [f"c{number:02}\tc{number + 6:02}\t2" for number in range(0, COMPANIES - 6, 7)]
    (tmp_path / "peers.tsv").write_text("\n".join(["anchor\tcandidate\tvotes", *peers, "c00\tc01\t1"]) + "\n")
    return tmp_path


def run(folder: Path, judged: str = "judged.tsv", *options: str) -> None:
    given = ["--bundle", str(folder / "bundle"), "--index", str(folder / "index.db")]
    main([*given, "--judged", str(folder / judged), *options])


def test_the_bundle_gets_a_ranker_and_keeps_its_encoder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = ModelBundle.load(folder / "bundle")
    run(folder, "judged.tsv", "--dev", str(folder / "judged.tsv"), "--peers", str(folder / "peers.tsv"))
    after = ModelBundle.load(folder / "bundle")
    assert (after.encoder_id, after.bundle_id != before.bundle_id) == (before.encoder_id, True)
    ranker = after.manifest.ranker
    assert ranker is not None
    assert ranker.same_industry > 0
    assert ranker.comparable is not None
    assert ranker.comparable.same_country > 0
    metrics = after.manifest.metrics
    assert metrics["ranker_auc"] >= metrics["ranker_auc_cosine"]
    assert 0 <= metrics["ranker_peers_recall10"] <= 1
    assert "comparable.same_country" in capsys.readouterr().out


def test_weights_that_rank_worse_than_the_bundles_are_refused(folder: Path) -> None:
    run(folder, "judged.tsv", "--dev", str(folder / "judged.tsv"))
    before = ModelBundle.load(folder / "bundle")
    rows = (folder / "judged.tsv").read_text().splitlines()
    turned = [row[:-1] + ("0" if row.endswith("2") else "2") for row in rows[1:]]
    (folder / "turned.tsv").write_text("\n".join([rows[0], *turned]) + "\n")
    with pytest.raises(SystemExit, match="the new weights have nDCG@10"):
        run(folder, "turned.tsv", "--dev", str(folder / "judged.tsv"))
    assert ModelBundle.load(folder / "bundle").bundle_id == before.bundle_id
    run(folder, "turned.tsv", "--dev", str(folder / "judged.tsv"), "--without-gate")
    assert ModelBundle.load(folder / "bundle").bundle_id != before.bundle_id


def test_verdicts_are_judged_pairs(folder: Path) -> None:
    verdicts = [
        {"anchor_id": "c00", "hit_id": f"c{other:02}", "label": "positive" if other % 3 == 0 else "negative"}
        for other in range(1, 30)
    ]
    rows = [*verdicts, {"anchor_id": "c00", "hit_id": "c40", "label": ""}]
    (folder / "feedback.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    judged = read_relevance_labels(folder / "feedback.jsonl")
    assert (judged["c00"]["c03"], judged["c00"]["c04"], "c40" in judged["c00"]) == (2, 0, False)
    run(folder, "feedback.jsonl")
    assert ModelBundle.load(folder / "bundle").manifest.ranker is not None


def test_pairs_that_the_index_lacks_are_refused(folder: Path) -> None:
    (folder / "other.tsv").write_text("anchor\tcandidate\tgrade\nx\ty\t2\n")
    with pytest.raises(SystemExit, match="holds no pair"):
        run(folder, "other.tsv")


def test_a_ranker_of_another_encoder_is_refused(folder: Path) -> None:
    run(folder)
    bundle = ModelBundle.load(folder / "bundle")
    assert bundle.manifest.ranker is not None
    manifest = json.loads((folder / "bundle" / "manifest.json").read_text())
    manifest["ranker"]["encoder_id"] = "0" * 16
    (folder / "bundle" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(Exception, match="was fitted for encoder"):
        write_manifest(folder / "bundle", ModelBundle.load(folder / "bundle").manifest)


def test_weights_are_found_again_and_keep_their_signs() -> None:
    random = np.random.default_rng(1)
    matrix = random.normal(size=(20_000, 3))
    positive = random.random(20_000) < expit(matrix @ np.array([2.0, -1.0, 0.5]) - 1.0)
    weights, intercept = fit_logistic(matrix, positive, rising=[True, False, True])
    assert weights == pytest.approx([2.0, -1.0, 0.5], abs=0.1)
    assert intercept == pytest.approx(-1.0, abs=0.1)
    kept, _ = fit_logistic(matrix, positive, rising=[True, True, True])
    assert kept[1] == 0


def test_unlabelled_pairs_lower_the_probability_where_they_are() -> None:
    random = np.random.default_rng(2)
    matrix = random.normal(size=(2_000, 1))
    positive = random.random(2_000) < expit(2 * matrix[:, 0])
    unlabelled = random.normal(loc=2.0, size=(2_000, 1))
    alone, with_unlabelled = (
        fit_logistic(matrix, positive, rising=[True], unlabelled=unlabelled, unlabelled_weight=weight)
        for weight in (0.0, 0.1)
    )
    at = np.array([2.0])
    assert at @ with_unlabelled[0] + with_unlabelled[1] < at @ alone[0] + alone[1]


def test_peers_count_for_both_and_chains_are_one_component(folder: Path) -> None:
    peers = read_peers(folder / "peers.tsv")
    assert peers["c06"] == {"c00"}
    assert "c01" not in peers
    found = components(
        {"a": frozenset("b"), "b": frozenset("ac"), "c": frozenset("b"), "d": frozenset("e"), "e": frozenset("d")}
    )
    assert found == {"a": "a", "b": "a", "c": "a", "d": "d", "e": "d"}
