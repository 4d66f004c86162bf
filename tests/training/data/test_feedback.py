"""A model is trained on the exported verdicts of users alone."""

import itertools
import json
from contextlib import closing
from pathlib import Path

import pytest

from similarity.feedback.labels import judged_pairs, latest_verdicts, text_record, with_consistent_texts
from similarity.feedback.sqlite import SqliteWorkspace
from tests.training.tiny_model import TOPICS
from tests.workspace_records import make_event, moment
from training.train import main

pytestmark = pytest.mark.training

TEXTS = {word: f"The company makes {word}" for words in TOPICS.values() for word in words}
TOPIC_OF = {word: topic for topic, words in TOPICS.items() for word in words}


def exported(folder: Path) -> Path:
    """The export of a workspace in which everybody who shares a topic was said to compete."""
    with closing(SqliteWorkspace(folder / "w.db")) as workspace:
        for number, (anchor, hit) in enumerate(itertools.combinations(TEXTS, 2)):
            verdict = "competitor" if TOPIC_OF[anchor] == TOPIC_OF[hit] else "not_competitor"
            workspace.add_event(make_event(str(number), at=moment(number), anchor=anchor, hit=hit, verdict=verdict))
        rows = with_consistent_texts(judged_pairs(latest_verdicts(workspace.events())), TEXTS)
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(text_record(row, TEXTS)) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_model_trains_on_the_export_alone(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    numbers = {"steps": 8, "evaluate-every": 4, "batch-pairs": 12, "selection": 3, "learning-rate": 3e-3}
    files = {"pairs": exported(tmp_path), "model": model, "output": output}
    choices = {"method": "cross-entropy", "precision": "float32"}
    main([word for name, value in (files | numbers | choices).items() for word in (f"--{name}", str(value))])
    assert (output / "best" / "model.safetensors").exists()
