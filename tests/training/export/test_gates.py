"""A model that ranks worse than the one it would replace is not exported, unless it is allowed."""

import json
from pathlib import Path

import numpy as np
import pytest

from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from tests import tiny_bundle
from training.export.gates import ExportRefused, JudgedData, Reference, check_ranking

pytestmark = pytest.mark.training

# DCG of gains 3 and 0 in doubt: 1.5 · (1 + 1/log2 3), of the ideal 3.
IN_DOUBT = 0.5 * (1 + 1 / np.log2(3))


@pytest.fixture
def judged_folder(tmp_path: Path) -> Path:
    """Each of 50 makers of anvils has one competitor and one maker of boats to tell apart."""
    companies = [{"id": f"a{n}", "name": f"Firm a{n}", "description": "anvils"} for n in range(51)]
    companies.append({"id": "b", "name": "Firm b", "description": "boats"})
    (tmp_path / "companies.jsonl").write_text("\n".join(json.dumps(company) for company in companies))
    rows = [f"a{n}\ta50\t2\na{n}\tb\t0\n" for n in range(50)]
    (tmp_path / "dev.tsv").write_text("anchor\tcandidate\tgrade\n" + "".join(rows))
    return tmp_path


@pytest.fixture
def good(tmp_path: Path) -> TextEncoder:
    return TextEncoder(tiny_bundle.write_tiny_bundle(tmp_path / "good"))


@pytest.fixture
def blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TextEncoder:
    """To it all words are the same."""
    monkeypatch.setattr(tiny_bundle, "TABLE", np.ones_like(tiny_bundle.TABLE))
    return TextEncoder(tiny_bundle.write_tiny_bundle(tmp_path / "blind"))


def test_the_difference_is_over_usable_anchors_only(judged_folder: Path, good: TextEncoder, blind: TextEncoder) -> None:
    """An anchor whose candidates are all competitors has the same order with every model."""
    with (judged_folder / "dev.tsv").open("a") as file:
        file.write("a50\ta1\t2\na50\ta2\t2\n")
    judged = JudgedData(folder=judged_folder, companies=judged_folder / "companies.jsonl")
    said: list[str] = []
    found = check_ranking(good, judged, said.append, reference=Reference(encoder=blind))
    assert found["dev_ndcg10_over_reference"] == pytest.approx(1 - IN_DOUBT)
    assert said[-1].endswith("50 anchors")


def test_a_better_model_passes_and_both_figures_are_kept(
    judged_folder: Path, good: TextEncoder, blind: TextEncoder
) -> None:
    judged = JudgedData(folder=judged_folder, companies=judged_folder / "companies.jsonl")
    said: list[str] = []
    found = check_ranking(good, judged, said.append, float32=good, reference=Reference(encoder=blind))
    assert found["dev_ndcg10_prepared"] == found["dev_ndcg10_prepared_float32"] == 1
    assert found["reference_dev_ndcg10_prepared"] == pytest.approx(IN_DOUBT)
    assert found["reference_dev_auc_prepared"] == 0.5
    assert found["dev_ndcg10_over_reference"] == pytest.approx(1 - IN_DOUBT)
    assert found["dev_ndcg10_over_reference_lower"] == pytest.approx(1 - IN_DOUBT)
    assert "+0.1845" in said[-1]


def test_a_worse_model_is_refused_unless_allowed(judged_folder: Path, good: TextEncoder, blind: TextEncoder) -> None:
    judged = JudgedData(folder=judged_folder, companies=judged_folder / "companies.jsonl")
    said: list[str] = []
    with pytest.raises(ExportRefused, match=r"nDCG@10 -0\.1845 .* against .*, 50 anchors: the lower bound is under"):
        check_ranking(blind, judged, said.append, reference=Reference(encoder=good))
    found = check_ranking(blind, judged, said.append, reference=Reference(encoder=good, allow_worse=True))
    assert found["dev_ndcg10_over_reference"] == pytest.approx(IN_DOUBT - 1)
    assert "exported because of --allow-worse" in said[-1]


def test_too_few_anchors_refuse_even_an_equal_model(judged_folder: Path, good: TextEncoder) -> None:
    lines = (judged_folder / "dev.tsv").read_text().splitlines()
    (judged_folder / "dev.tsv").write_text("\n".join(lines[:-2]) + "\n")
    judged = JudgedData(folder=judged_folder, companies=judged_folder / "companies.jsonl")
    with pytest.raises(ExportRefused, match="49 anchors: fewer than 50 anchors can be used"):
        check_ranking(good, judged, lambda line: None, reference=Reference(encoder=good))


def test_candidates_that_training_saw_are_left_out_of_the_strict_figures(
    judged_folder: Path, good: TextEncoder
) -> None:
    judged = JudgedData(folder=judged_folder, companies=judged_folder / "companies.jsonl", seen=frozenset({"b"}))
    found = check_ranking(good, judged, lambda line: None)
    assert (found["dev_pairs_prepared"], found["dev_pairs_strict"]) == (100, 50)
    # Only competitors are left: an AUC of them is no number, and is not kept.
    assert "dev_auc_strict" not in found


def test_anchors_that_training_saw_are_refused(judged_folder: Path, good: TextEncoder) -> None:
    judged = JudgedData(folder=judged_folder, companies=judged_folder / "companies.jsonl", seen=frozenset({"a7", "x"}))
    with pytest.raises(ExportRefused, match="training has seen 1 of the 50 anchors of dev, such as a7"):
        check_ranking(good, judged, lambda line: None)


def test_a_judged_company_without_a_text_is_an_error(judged_folder: Path, good: TextEncoder) -> None:
    (judged_folder / "few.jsonl").write_text('{"id": "a0", "name": "Firm", "description": "anvils"}')
    judged = JudgedData(folder=judged_folder, companies=judged_folder / "few.jsonl")
    with pytest.raises(InvalidInput, match="51 judged companies have no text"):
        check_ranking(good, judged, lambda line: None)
