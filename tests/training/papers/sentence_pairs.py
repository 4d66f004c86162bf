"""Small files in the form of the STS and NLI sets, about the topics of the tiny model."""

from pathlib import Path

import numpy as np

from tests.training.tiny_model import TOPICS
from training.papers.sts import SETS

CLASSES = ("entailment", "neutral", "contradiction")


def sentence(random: np.random.Generator, topic: str) -> str:
    return f"the company makes {' '.join(random.choice(TOPICS[topic], size=random.integers(1, 5)))}"


def write_sts(folder: Path, *, pairs: int = 24) -> Path:
    """All sets, and train and dev of STSb: 5 for the same topic, 0 or 1 for others."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*SETS, "STSb-train", "STSb-dev"):
        lines = ["score\tsentence1\tsentence2\tsubset"]
        for number in range(pairs):
            first = str(random.choice(list(TOPICS)))
            second = first if number % 2 else str(random.choice([topic for topic in TOPICS if topic != first]))
            score = 5 if number % 2 else number % 4 / 2
            lines.append(f"{score}\t{sentence(random, first)}\t{sentence(random, second)}\tpart{number % 2}")
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def write_nli(folder: Path, *, labelled: int = 90, unlabelled: int = 30) -> Path:
    """Entailed: the same topic; contradicted: another; neutral: half and half."""
    random = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    written: set[tuple[str, str]] = set()
    for name, count in (("train", labelled), ("unlabeled", unlabelled)):
        lines = ["label\tpremise\thypothesis\tsource"]
        while len(lines) <= count:
            label = CLASSES[len(lines) % 3]
            first, other = random.permutation(list(TOPICS))[:2]
            same = label == "entailment" or (label == "neutral" and random.random() < 0.5)
            pair = sentence(random, first), sentence(random, first if same else other)
            if pair not in written:
                written.add(pair)
                lines.append("\t".join((label if name == "train" else "-", *pair, "made")))
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return folder
