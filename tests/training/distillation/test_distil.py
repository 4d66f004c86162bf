"""Distillation from bundles, weak labels and lexical overlap, through the trainer."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from similarity.bundle import trained_on_path
from similarity.errors import InvalidInput
from similarity.text import TextSettings
from tests.training.distillation.near_texts import sparse, unit_rows
from tests.training.tiny_model import TOPICS, fit_pairs, killed_after, losses, topic_pairs, write_tiny_model
from training import distil
from training.config import DISTILLATION, TrainSettings, settings_values
from training.data.batches import TextBatch
from training.data.selection import prepare
from training.distil import main
from training.distillation import targets as words
from training.distillation import task
from training.distillation import teachers as teaching
from training.distillation.neighbour_batches import Source
from training.distillation.targets import TeacherTargets, shared_values
from training.distillation.task import DistillationTask
from training.distillation.teachers import joint_vectors, load_teachers
from training.export.bundle_export import FLOAT32, ExportSettings, export
from training.run.processes import joined_processes
from training.run.trained_run import read_run

pytestmark = pytest.mark.training


def test_settings_of_distillation_are_stored_for_distillation_only() -> None:
    assert "batch_texts" not in settings_values(TrainSettings())
    own = TrainSettings(method=DISTILLATION, batch_texts=64, scale_weight=0.5)
    assert TrainSettings.from_values(settings_values(own)) == own


@pytest.fixture(scope="module")
def teachers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two bundles: of a tiny model that learnt the topics, and of one that did not."""
    folder = tmp_path_factory.mktemp("teachers")
    untrained = write_tiny_model(folder / "tiny")
    usual = TrainSettings(
        model=str(untrained), method="listwise", batch_pairs=48, steps=40, learning_rate=3e-3, precision="float32"
    )
    data = prepare(topic_pairs(), usual, selection=6)
    fit_pairs(usual, data, folder / "run")
    sample = folder / "sample.jsonl"
    sample.write_text(json.dumps({"id": "a", "name": "A", "description": "The company makes boats."}))

    def exported(model: Path) -> Path:
        facts = ExportSettings(
            model=str(model), base_model=model.name, licence="none", training_data="none", precision=FLOAT32
        )
        return export(facts, output=folder / "bundles", sample=sample, log=lambda line: None).folder

    return [exported(folder / "run" / "best"), exported(untrained)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    words = list(TOPICS.values())
    companies = [
        {
            "id": f"c{n}",
            "name": f"Firm{n}",
            **({"industry": list(TOPICS)[n % 3]} if n % 5 else {}),
            "description": f"The company makes {' '.join([*random.choice(words[n % 3], 4), *words[n % 3][: n % 5]])}.",
        }
        for n in range(60)
    ]
    (tmp_path / "companies.jsonl").write_text("\n".join(map(json.dumps, companies)))
    rows = [f"c{a},c{b},{'positive' if a % 3 == b % 3 else 'negative'}" for a in range(20) for b in range(20) if a != b]
    (tmp_path / "pairs.csv").write_text("\n".join(["company_a,company_b,label", *rows]) + "\n")
    return tmp_path


def arguments(files: Path, teachers: list[Path], model: Path, *extra: str) -> list[str]:
    fixed = (
        f"--companies {files / 'companies.jsonl'} --pairs {files / 'pairs.csv'} --output {files / 'run'} --selection 6 "
        f"--model {model} --batch-texts 16 --steps 20 --learning-rate 3e-3 --precision float32 --evaluate-every 10"
    )
    return ["--teachers", *map(str, teachers), *fixed.split(), *extra]


def test_distillation_lowers_the_loss_and_records_the_teachers(
    model: Path, teachers: list[Path], files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(arguments(files, teachers[:1], model))
    found = losses(files / "run")
    assert found[-1] < 0.7 * found[0]
    run = read_run(files / "run" / "best")
    assert run is not None
    assert run.selection_anchors == 6
    assert run.method.startswith(f"distillation of best ({teachers[0].name}), ")
    assert "batches of 16 texts" in run.method
    assert f"60 texts, teachers best ({teachers[0].name});" in capsys.readouterr().out


def test_several_teachers_are_the_mean_of_their_cosines(teachers: list[Path]) -> None:
    encoders = load_teachers(teachers)
    texts = ["The company makes boats.", "The company makes jam and tea.", "The company makes nails."]
    joint = joint_vectors(encoders, texts)
    single = [encoder.encode(texts) for encoder in encoders]
    np.testing.assert_allclose(joint @ joint.T, np.mean([each @ each.T for each in single], axis=0), atol=1e-6)


def test_weak_labels_add_their_weight_to_the_similarity(files: Path) -> None:
    companies = files / "companies.jsonl"
    described = [f"text {number // 2}" for number in range(60)]  # two companies each
    texts = tuple(dict.fromkeys(described))
    rows = shared_values(texts, described, companies, "industry", 0.2)
    industries = [list(TOPICS)[n % 3] if n % 5 else "" for n in range(0, 60, 2)]
    expected = [[0.2 if one and one == other else 0 for other in industries] for one in industries]
    np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-6)
    with pytest.raises(InvalidInput, match=r"no company in .* has a field 'segment'"):
        shared_values(texts, described, companies, "segment", 0.2)


def distillation_task(model: Path, targets: TeacherTargets, **changes: Any) -> Any:
    settings = TrainSettings(**{"model": str(model), "method": DISTILLATION, "batch_texts": 16, **changes})
    texts = [f"text {n}" for n in range(len(targets))]
    rows = np.arange(len(targets))
    return DistillationTask(
        settings,
        texts,
        targets,
        rows=rows,
        sources=[Source(1.0, rows)],
        select=lambda encode: {},
        selection_anchors=0,
        teachers=["one"],
    )


def test_the_target_is_cosine_plus_lexical_overlap_minus_hubness(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: for texts i and j, vectors_i · vectors_j + lexical_i · lexical_j − hubness_i − hubness_j."""
    vectors, hubness = unit_rows(20), np.linspace(-0.1, 0.2, 20, dtype=np.float32)
    lexical = np.random.default_rng(3).random((20, 7), dtype=np.float32)
    seen: list[Any] = []

    def noted(vectors: Any, targets: Any, **others: float) -> Any:
        seen.append(targets)
        return vectors.sum()

    monkeypatch.setattr(task, "distillation", noted)
    found = distillation_task(model, TeacherTargets(vectors=vectors, lexical=sparse(lexical), local_scaling=hubness))
    found.loss(None, torch.zeros(3, 4), TextBatch(texts=np.array([3, 0, 7])), step=1, steps=1)
    expected = np.array(
        [
            [vectors[i] @ vectors[j] + lexical[i] @ lexical[j] - hubness[i] - hubness[j] for j in (3, 0, 7)]
            for i in (3, 0, 7)
        ]
    )
    np.fill_diagonal(expected, np.minimum(np.diag(expected), 1))  # a text that stands for its translations
    np.testing.assert_allclose(seen[0].numpy(), expected, atol=1e-6)


def test_other_lexical_overlap_is_other_data(model: Path) -> None:
    fingerprints = {
        distillation_task(
            model,
            TeacherTargets(vectors=unit_rows(20), lexical=sparse(rows), local_scaling=np.zeros(20, dtype=np.float32)),
        ).fingerprint
        for rows in (np.zeros((20, 3)), np.eye(20, 3), np.eye(20, 3)[:, ::-1], 2 * np.eye(20, 3))
    }
    assert len(fingerprints) == 4


def test_companies_that_teachers_were_trained_on_count_as_seen(model: Path, teachers: list[Path], files: Path) -> None:
    lists = [trained_on_path(folder) for folder in teachers[:2]]
    for companies, path in zip(("c1 c2", "c2 c3"), lists, strict=True):
        path.write_text("\n".join(companies.split()))
    main(arguments(files, teachers[:2], model, "--steps", "2"))
    for path in lists:
        path.unlink()
    run = read_run(files / "run" / "best")
    assert run is not None
    assert run.training_companies == ("c1", "c2", "c3")


def test_each_addition_changes_the_targets_and_is_recorded(
    model: Path, teachers: list[Path], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "MAX_DOCUMENT_SHARE", 0.5)  # of these few words each is common
    additions: list[list[str]] = [[], ["--weak-labels", "industry=.05"], ["--words", ".4"], ["--local-scaling", ".5"]]
    found = set()
    for number in range(len(additions)):
        main(arguments(files, teachers[:1], model, *itertools.chain(*additions[: number + 1]), "--steps", "2"))
        found.add(tuple(losses(files / "run")))
        (files / "run").rename(files / f"run{number}")
    assert len(found) == 4
    run = read_run(files / "run3" / "best")
    assert run is not None
    added = "industry (+0.05) and shared words (+0.4) and local scaling (0.5)"
    assert f"distillation of best ({teachers[0].name}) and {added}, " in run.method


def test_a_translation_has_the_targets_of_its_original(
    model: Path, teachers: list[Path], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"original": "The company makes boats.", "lang": "xx", "translation": "tea jam"},
        {"original": "The company makes boats.", "lang": "yy", "translation": "olives"},
    ]
    (files / "translations.jsonl").write_text("\n".join(map(json.dumps, rows)))
    tasks: list[DistillationTask] = []

    def run(settings: TrainSettings, make_task: Any, *, output: Path) -> None:
        with joined_processes() as processes:
            tasks.append(make_task(processes))

    monkeypatch.setattr(distil, "run", run)
    given = ["--translations", f"{files / 'translations.jsonl'}=.4", "--local-scaling", ".5", "--frozen-embeddings"]
    main(arguments(files, teachers[:1], model, *given))
    found = tasks[0]
    assert "2 translations" in found.data
    texts = found.texts.numbers([rows[0]["original"], *(each["translation"] for each in rows)])
    assert len(texts) == 3
    assert len(set(found.rows[texts].tolist())) == 1
    among = found.targets.among(found.rows[[*texts, 0]])
    assert among[0, :3] == pytest.approx(np.ones(3) * among[0, 0])
    assert among[:3, 3] == pytest.approx(np.ones(3) * among[0, 3])
    frozen = found.load_model(found.settings).transformer.get_input_embeddings().weight
    assert not frozen.requires_grad


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("--weak-labels", given) for given in ("industry", "industry=0", "industry=2", "=.1", "industry=a")),
        *(("--translations", given) for given in ("file", "file=0", "file=1", "=.1", "file=a")),
        *((option, given) for option in ("--local-scaling", "--words") for given in ("-1", "2", "a", "nan")),
    ],
)
def test_a_weight_out_of_range_is_refused(
    model: Path, teachers: list[Path], files: Path, option: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments(files, teachers, model, option, given))
    assert option in capsys.readouterr().err


def test_teachers_encode_once_and_a_killed_run_continues(
    model: Path, teachers: list[Path], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = arguments(files, teachers, model, "--checkpoint-every", "5", "--steps", "10")
    with killed_after(7):
        distil.main(command)
    monkeypatch.setattr(teaching, "joint_vectors", lambda *given, **others: pytest.fail("encoded again"))
    distil.main(command)
    killed = losses(files / "run")
    monkeypatch.undo()
    (files / "run").rename(files / "killed")
    distil.main(command)
    assert killed == losses(files / "run")


def test_another_method_or_text_preparation_is_refused(
    model: Path, teachers: list[Path], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teaching, "DEFAULT_SETTINGS", TextSettings(drop_places=True))
    with pytest.raises(SystemExit, match="differ from those of training"):
        main(arguments(files, teachers, model))
    monkeypatch.undo()
    with pytest.raises(SystemExit, match=r"neither a manifest\.json nor a model\.safetensors"):
        main(arguments(files, [files], model))
    both = [f"{files / 'a.jsonl'}=.5", f"{files / 'b.jsonl'}=.5"]
    with pytest.raises(SystemExit):
        main(arguments(files, teachers, model, "--translations", *both))


def test_the_weights_of_a_run_teach_like_its_bundle(teachers: list[Path]) -> None:
    """The first teacher is the float32 export of the run beside it; a teacher that is given twice counts twice."""
    weights = teachers[0].parent.parent / "run" / "best"
    texts = ["The company makes boats.", "The company makes jam and tea."]
    bundle, run = load_teachers([teachers[0], weights])
    np.testing.assert_allclose(run.encode(texts), bundle.encode(texts), atol=2e-3)
    assert run.name.endswith("chosen by the selection score")
    twice = joint_vectors([run, run, bundle], texts)
    assert twice[0] @ twice[1] == pytest.approx(float(bundle.encode(texts)[0] @ bundle.encode(texts)[1]), abs=2e-3)
