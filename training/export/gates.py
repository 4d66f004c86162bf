"""The quality gates of an export, and their figures for the manifest.

A figure is named by measure and text: `dev_ndcg10_prepared`, `dev_auc_strict`. *Plain* is the unchanged description,
*prepared* the output of `similarity.text.embedding_text`, *strict* the prepared text without candidates that were in
the training data. `..._float32` is the model before quantisation, `reference_...` another bundle on the same pairs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from similarity.encoder import TextEncoder, padded
from similarity.errors import SimilarityError
from similarity.generations.gate import MAX_LOSS, MIN_ANCHORS, labelled_companies, usable_labels
from similarity.generations.relevance_labels import RelevanceLabels, read_relevance_labels
from similarity.model.onnxruntime_session import OnnxRuntimeSession
from similarity.text import TextSettings
from training.console import Log
from training.evaluate.bootstrap import Interval, mean_interval, paired_difference, with_bounds
from training.evaluate.encoding import Texts
from training.evaluate.judged import judged_split, judged_texts
from training.evaluate.ranking import RankingMeasures, rank, without_seen
from training.export.graph import SentenceEncoder

# torch and onnxruntime differ only in the order of summation.
LARGEST_DIFFERENCE = 1e-5
# Lowest allowed mean cosine of int8 or float16 to float32 vectors; int8 had .998 on company texts.
LOWEST_MEAN_COSINE = 0.995
# Share of float32's nDCG@10 that int8 or float16 must reach.
KEPT_QUALITY = 0.995


class ExportRefused(SimilarityError):
    """A check failed: the model is worse than its original or the reference, is too large, or was trained on dev."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedData:
    """The folder of the judged pairs, the file of their companies, and the companies seen in training."""

    folder: Path
    companies: Path
    seen: frozenset[str] = frozenset()

    def read(self) -> dict[str, dict[str, int]]:
        """Return the judgements of the dev split.

        Raises:
            ExportRefused: one of its anchors was in the training data.
            InvalidInput: the file is invalid.
        """
        judgements = read_relevance_labels(judged_split(self.folder, "dev"))
        leaked = sorted(self.seen.intersection(judgements))
        if leaked:
            raise ExportRefused(
                f"training has seen {len(leaked)} of the {len(judgements)} anchors of dev, such as {leaked[0]}; "
                "measure on anchors that it has not seen"
            )
        return judgements


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A bundle to compare with: the new one must not rank worse. With `allow_worse` the result is only logged."""

    encoder: TextEncoder
    allow_worse: bool = False


def largest_difference(encoder: SentenceEncoder, model: onnx.ModelProto) -> float:
    """Return the largest absolute difference between the vectors of torch and onnxruntime.

    The inputs are random tokens with several lengths, batch sizes and amounts of padding.
    """
    session = OnnxRuntimeSession(model.SerializeToString())
    words = int(encoder.transformer.config.vocab_size)
    longest = min(128, int(encoder.transformer.config.max_position_embeddings) - 2)
    random = np.random.default_rng(0)
    differences = []
    shapes = ((1, 1, 1), (1, 2, 2), (3, 1, 7), (8, 1, 33), (2, longest, longest), (5, 1, longest))
    for batch, shortest, length in shapes:
        ids = [random.integers(words, size=size) for size in random.integers(shortest, length + 1, size=batch)]
        input_ids, attention_mask = padded(ids)
        with torch.inference_mode():
            expected = encoder(torch.from_numpy(input_ids), torch.from_numpy(attention_mask)).numpy()
        differences.append(np.abs(session.run(input_ids, attention_mask) - expected).max())
    return float(max(differences))


def check_parity(encoder: SentenceEncoder, model: onnx.ModelProto, log: Log) -> dict[str, float]:
    """Check that the float32 graph has the same output as torch.

    Raises:
        ExportRefused: the outputs differ by more than LARGEST_DIFFERENCE.
    """
    difference = largest_difference(encoder, model)
    log(f"float32 graph: largest difference to torch {difference:.1e}")
    if not difference <= LARGEST_DIFFERENCE:
        raise ExportRefused(
            f"the graph's vectors differ from torch's by {difference:.1e}, more than {LARGEST_DIFFERENCE:.0e}: "
            "the export does not support this model, choose another"
        )
    return {"difference_to_torch": difference}


def check_closeness(float32: TextEncoder, smaller: TextEncoder, texts: Sequence[str], log: Log) -> dict[str, float]:
    """Check that int8 or float16 vectors of `texts` are close to their float32 vectors.

    Raises:
        ExportRefused: their mean cosine is below LOWEST_MEAN_COSINE.
    """
    cosines: NDArray[np.float32] = np.einsum("nd,nd->n", float32.encode(texts), smaller.encode(texts))
    mean, lowest = float(cosines.mean()), float(cosines.min())
    log(f"cosine to float32: mean {mean:.4f}, lowest {lowest:.4f}")
    if not mean >= LOWEST_MEAN_COSINE:
        raise ExportRefused(
            f"the vectors have a mean cosine of {mean:.4f} to float32, below {LOWEST_MEAN_COSINE}; set the scales of "
            "int8 with more texts of your own (--sample), or export --precision float32"
        )
    return {"cosine_to_float32_mean": mean, "cosine_to_float32_lowest": lowest}


def check_ranking(
    encoder: TextEncoder,
    judged: JudgedData,
    log: Log,
    *,
    float32: TextEncoder | None = None,
    reference: Reference | None = None,
) -> dict[str, float]:
    """Rank the judged candidates; check that it is not worse than `float32` and `reference`, if given.

    Raises:
        ExportRefused: the quality is worse, or an anchor was in the training data.
        InvalidInput: the judged pairs are invalid.
    """
    judgements = judged.read()
    unseen = without_seen(judgements, judged.seen) if judged.seen else {}
    texts = cache(partial(judged_texts, judged.companies, judgements))
    found = _rankings(encoder, judgements, unseen, texts)
    metrics = _figures(found)
    lines = [f"{name} {ranking.ndcg.mean():.4f}" for name, ranking in found.items()]
    log(f"dev: nDCG@10 {', '.join(lines)}; AUC prepared {found['prepared'].auc:.4f}")
    if float32 is not None:
        for text, ranking in _rankings(float32, judgements, unseen, texts).items():
            metrics[f"dev_ndcg10_{text}_float32"] = float(ranking.ndcg.mean())
        _check_kept(metrics["dev_ndcg10_prepared"], metrics["dev_ndcg10_prepared_float32"])
    if reference is not None:
        known = _rankings(reference.encoder, judgements, unseen, texts)
        metrics |= {f"reference_{name}": value for name, value in _figures(known).items()}
        usable = usable_labels(judgements, labelled_companies(judgements))
        rows = np.array([anchor in usable for anchor in found["prepared"].anchors])
        difference = paired_difference(found["prepared"].ndcg[rows], known["prepared"].ndcg[rows])
        metrics |= with_bounds("dev_ndcg10_over_reference", difference)
        _check_reference(difference, reference, log)
    return metrics


def _rankings(
    encoder: TextEncoder,
    judgements: RelevanceLabels,
    unseen: RelevanceLabels,
    texts: Callable[[TextSettings | None], Texts],
) -> dict[str, RankingMeasures]:
    prepared = texts(encoder.text_settings)
    found = {
        "plain": rank(encoder.encode, judgements, texts(None)),
        "prepared": rank(encoder.encode, judgements, prepared),
    }
    if unseen:
        found["strict"] = rank(encoder.encode, unseen, prepared)
    return found


def _figures(rankings: Mapping[str, RankingMeasures]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text, ranking in rankings.items():
        found |= with_bounds(f"dev_ndcg10_{text}", mean_interval(ranking.ndcg))
        found |= {f"dev_auc_{text}": ranking.auc, f"dev_pairs_{text}": ranking.pairs}
    # The AUC of candidates that are all competitors is NaN, which a manifest may not contain.
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _check_kept(after: float, before: float) -> None:
    if not after >= KEPT_QUALITY * before:
        raise ExportRefused(
            f"the bundle keeps {after / before:.2%} of float32's nDCG@10 on dev, less than {KEPT_QUALITY:.1%}; set its "
            "scales with more texts of your own (--sample), or export --precision float32"
        )


def _check_reference(difference: Interval, reference: Reference, log: Log) -> None:
    result = (
        f"dev: nDCG@10 {difference.mean:+.4f} [{difference.lower:+.4f}, {difference.upper:+.4f}] against "
        f"{reference.encoder.encoder_id}, {difference.anchors} anchors"
    )
    log(result)
    reasons = []
    if difference.anchors < MIN_ANCHORS:
        reasons.append(f"fewer than {MIN_ANCHORS} anchors can be used")
    if difference.lower < -MAX_LOSS:
        reasons.append(f"the lower bound is under {-MAX_LOSS:+.2f}")
    if not reasons:
        return
    if reference.allow_worse:
        log(f"{' and '.join(reasons)}; exported because of --allow-worse")
        return
    raise ExportRefused(f"{result}: {' and '.join(reasons)}; keep the reference, or export with --allow-worse")
