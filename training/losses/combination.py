"""Two losses as one: a loss on pairs and a contrastive loss on anchors."""

from torch import Tensor


def combination(pair: Tensor, contrastive: Tensor, *, share: float = 0.3) -> Tensor:
    """(1 − λ) · pair + λ · contrastive, with `share` as λ.

    Source: eq. 3 of the supervised contrastive paper, whose best λ are .3 (STS) and .1 (SentEval); the
    pair part may be any, such as PAUSE.

    Raises:
        ValueError: the share is not from 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the contrastive share is {share}; give a number from 0 to 1")
    return (1 - share) * pair + share * contrastive
