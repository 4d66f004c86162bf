"""Training data of pairs, and checkpoint selection by held-out anchors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import ndcg_of_gains
from training.config import TrainSettings
from training.data.pairs import Pairs
from training.data.splits import hide_labels, split_by_anchor
from training.data.texts import Texts
from training.evaluate.encoding import Encode
from training.evaluate.ranks import auc

Select = Callable[[Encode], Mapping[str, float]]

# Anchors with fewer candidates are left out, because their order means little.
LEAST_CANDIDATES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """The data of a training run, and the scores that select its best checkpoint.

    `pairs`: the pairs to train on. `texts`: the tokenised texts, numbered as in `pairs`; more may follow.
    `select`: returns the selection scores of an encoder, higher is better. The first score decides; if it is equal, the
    next. It must not use data of the final evaluation. `selection_anchors`: how many anchors `prepare` held out for
    `select`; 0 if it uses other data.
    """

    pairs: Pairs
    texts: Texts
    select: Select
    selection_anchors: int = 0


def prepare(pairs: Pairs, settings: TrainSettings, *, selection: int) -> TrainingData:
    """Hold out `selection` anchors of `pairs` for checkpoint selection; the other pairs are to train on.

    A share `settings.label_share` of the labels to train on is kept; the other labels are hidden.

    Raises:
        InvalidInput: there are not enough anchors, nothing to train on is left, the held-out pairs have no
            positive or nothing else, or `label_share` is not in (0, 1].
    """
    train, held_out = split_by_anchor(pairs, selection=selection, seed=settings.seed)
    return TrainingData(
        pairs=hide_labels(train, share=settings.label_share, seed=settings.seed),
        texts=Texts(pairs.texts, settings.source, max_tokens=settings.max_tokens),
        select=Selection(held_out),
        selection_anchors=selection,
    )


class Selection:
    """Selection scores by cosine on labelled pairs: mean nDCG@10 over anchors with enough candidates, AUC of all pairs.

    The first class of the pairs is the positive one. If no anchor has enough candidates, AUC alone is the score. If
    only positives are labelled, unlabelled pairs count as negatives: this lowers the AUC, but still ranks encoders
    correctly (Menon et al., ICML 2015).

    Raises:
        InvalidInput: the pairs have no positive, or nothing else.
    """

    def __init__(self, pairs: Pairs) -> None:
        labelled = pairs.known[:, 0]
        positive = labelled & (pairs.targets[:, 0] > 0)
        others = labelled & ~positive if (labelled & ~positive).any() else ~labelled
        if not positive.any() or not others.any():
            raise InvalidInput(
                "the selection pairs are all of one kind, so every encoder has the same score; label both "
                "kinds, or add unlabelled pairs of the same anchors to positives (python -m training.generate)"
            )
        self.pairs = pairs.subset(positive | others)
        self.positive: NDArray[np.bool_] = positive[positive | others]
        graded = np.isfinite(self.pairs.gains)
        anchors = [np.flatnonzero(graded & (self.pairs.left == anchor)) for anchor in np.unique(self.pairs.left)]
        # If all gains are equal, every order has the same nDCG.
        self.anchors = [rows for rows in anchors if len(rows) >= LEAST_CANDIDATES and np.ptp(self.pairs.gains[rows])]

    def __call__(self, encode: Encode) -> dict[str, float]:
        """Return the scores of an encoder."""
        cosines = self.cosines(encode)
        scores = {"auc": auc(cosines, self.positive)}
        if self.anchors:
            order = [ndcg_of_gains(cosines[rows], self.pairs.gains[rows]) for rows in self.anchors]
            return {"ndcg10": float(np.mean(order)), **scores}
        return scores

    def cosines(self, encode: Encode) -> NDArray[np.float32]:
        """Return the cosine of each pair, `[n]`."""
        used = np.unique(np.concatenate([self.pairs.left, self.pairs.right]))
        vectors = encode([self.pairs.texts[number] for number in used])
        left, right = (vectors[np.searchsorted(used, side)] for side in (self.pairs.left, self.pairs.right))
        cosines: NDArray[np.float32] = np.einsum("nd,nd->n", left, right)
        return cosines
