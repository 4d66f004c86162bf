"""Scores with a known prior, and a file of pairs, to estimate a prior from."""

from pathlib import Path

import numpy as np

from tests.training.data.pair_data import written

PAIRS, ANCHORS = 8_000, 400


def pool(*, prior_at_mean: float, labelled: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Scores whose share of competitors rises as a logistic curve; the true share of what is left unlabelled."""
    random = np.random.default_rng(seed)
    scores = random.normal(0.5, 0.15, PAIRS)
    chance = 1 / (1 + np.exp(-(np.log(prior_at_mean / (1 - prior_at_mean)) + 20 * (scores - 0.5))))
    competitor = random.random(PAIRS) < chance
    positive = competitor & (random.random(PAIRS) < labelled)
    return scores, positive, np.repeat(np.arange(ANCHORS), PAIRS // ANCHORS), float(competitor[~positive].mean())


def write_pairs_of_sentences(folder: Path) -> Path:
    """Pairs of sentences, of which some are much alike; a third of those are labelled."""
    topics = ["steel ships", "fresh bread", "car insurance", "solar panels", "office chairs", "dental tools"]
    verbs = ["sells", "makes", "exports", "repairs", "designs"]
    texts = [f"The company {verb} {topic}." for topic in topics for verb in verbs]
    random = np.random.default_rng(0)
    lines = ["text_a,text_b,label"]
    for one in range(len(texts)):
        for other in range(one):
            alike = one // len(verbs) == other // len(verbs)
            label = "positive" if alike and random.random() < 0.6 else ""
            lines.append(f"{texts[one]},{texts[other]},{label}")
    return written(folder, "pairs.csv", "\n".join(lines) + "\n")
