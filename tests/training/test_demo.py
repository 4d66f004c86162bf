"""The demonstration trains on nothing that is held out, and prints what it measured."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.training.data.pair_data import made_pairs, said
from tests.training.tiny_model import TOPICS
from training.config import TrainSettings
from training.demo import DEFAULTS, Sample, demonstrate, main, prepared, read_sample, retrieval

pytestmark = pytest.mark.training

GROUPS, MEMBERS = 10, 4


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Companies in groups, each with words of its own; all pairs within a group, some across."""
    folder = tmp_path_factory.mktemp("sample")
    random = np.random.default_rng(0)
    words = [word for topic in TOPICS.values() for word in topic]
    lines, pairs = [], ["company_a,company_b,label"]
    for group in range(GROUPS):
        own = random.choice(words, 4, replace=False)
        for member in range(MEMBERS):
            text = f"The company makes {' '.join(random.permutation(own)[:3])}. It has {member} docks, {group} saws."
            company = {"id": f"g{group}-{member}", "name": f"Firm {group} {member}", "description": text}
            lines.append(json.dumps({**company, "group": f"group-{group}", "aliases": []}))
            pairs += [f"g{group}-{other},g{group}-{member},positive" for other in range(member)]
            pairs.append(f"g{group}-{member},g{(group + 3) % GROUPS}-{member},negative")
    (folder / "companies.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "pairs.csv").write_text("\n".join(pairs) + "\n")
    return folder


def test_groups_are_in_one_part_each(sample: Path) -> None:
    companies = replace(read_sample(sample), group_of={f"c{number}": f"group-{number}" for number in range(50)})
    parts = companies.split(seed=0)
    assert sorted(group for part in parts for group in part) == sorted(companies.group_of.values())
    assert [len(part) for part in parts] == [35, 5, 10]
    assert companies.split(seed=0) == parts
    assert companies.split(seed=1) != parts


def test_no_company_of_a_held_out_group_is_trained_on(sample: Path, model: Path) -> None:
    companies = read_sample(sample)
    training, selection, _ = companies.split(seed=0)
    settings = TrainSettings(**{**DEFAULTS, "model": str(model), "frozen_layers": 1})
    data, _ = prepared(companies, training, selection, settings, log=lambda line: None)
    used = {data.pairs.ids[number] for number in np.concatenate([data.pairs.left, data.pairs.right])}
    assert {companies.group_of[company] for company in used} <= set(training)
    assert 0 < data.pairs.labelled.sum() < len(data.pairs)  # half of the labels are hidden


def test_every_pair_is_there_in_both_orders() -> None:
    pairs = made_pairs([("a", "b"), ("a", "c"), ("a", "z")], ["competitor", "", "competitor"])
    names = {company: company for company in pairs.ids}
    sample = Sample(pairs=pairs, group_of={**dict.fromkeys(pairs.ids, "in"), "z": "out"}, name_of=names)
    twice = [("a", "b", "competitor"), ("a", "c", ""), ("b", "a", "competitor"), ("c", "a", "")]
    assert said(sample.pairs_within({"in"})) == twice


def test_figures_are_those_worked_by_hand() -> None:
    ids = ("a1", "a2", "b1", "b2", "b3", "b4", "b5")
    pairs = replace(made_pairs([("a1", "a2")], ["competitor"]), ids=ids, texts=ids)
    angles = np.array([0.0, 0.42, 0.1, 0.5, 0.6, 0.7, 0.8])  # of a1 the nearest is b1, then a2
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    groups = {company: company[0] for company in ids}
    found = retrieval(lambda texts: vectors, Sample(pairs=pairs, group_of=groups, name_of={}), {"a"})
    assert found.nearest["a1"] == ("b1", "a2", "b2", "b3", "b4")
    assert found.nearest["a2"] == ("b2", "b3", "b4", "b1", "b5")  # a1 is the sixth
    assert found.precision == pytest.approx((1 / 5 + 0) / 2)
    assert found.ndcg == pytest.approx((1 / np.log2(3) + 1 / np.log2(7)) / 2)


def test_the_demonstration_trains_and_prints_what_it_measured(sample: Path, model: Path, tmp_path: Path) -> None:
    changed = {"model": str(model), "frozen_layers": 1, "steps": 6, "batch_pairs": 16, "evaluate_every": 3}
    settings = TrainSettings(**{**DEFAULTS, **changed})
    lines: list[str] = []
    before, after = demonstrate(settings, sample=sample, output=tmp_path / "run", log=lines.append)
    shown = "\n".join(lines)
    assert shown.count("  before  ") == shown.count("  after   ") == 4
    for name, old, new in (("P@5", before.precision, after.precision), ("nDCG@10", before.ndcg, after.ndcg)):
        assert f"{name} {old:.3f} and {new:.3f} ({new - old:+.3f})" in shown
    assert len(before.nearest) == 2 * MEMBERS
    assert f"python -m training.export --model {tmp_path / 'run' / 'best'}" in shown
    assert (tmp_path / "run" / "best" / "model.safetensors").exists()


def test_a_missing_model_is_refused_in_one_line(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(SystemExit, match=r"^refused: "):
        main(["--sample", str(sample), "--model", str(tmp_path / "model"), "--output", str(tmp_path / "run")])
