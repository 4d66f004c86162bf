"""Weighted sum of a loss on pairs and a contrastive loss on anchors."""

from torch import Tensor


def combination(pair: Tensor, contrastive: Tensor, *, share: float = 0.3) -> Tensor:
    """Return (1 − λ) · pair + λ · contrastive, with `share` as λ.

    Source: Liao 2021 (https://arxiv.org/abs/2106.04791), eq. 3, with cross-entropy on pairs; its best λ are .3 (STS)
    and .1 (SentEval). Any loss on pairs can be combined, for example PAUSE.

    >>> round(combination(torch.tensor(2.0), torch.tensor(5.0), share=0.3).item(), 4)
    2.9

    Raises:
        ValueError: the share is not from 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the contrastive share is {share}; give a number from 0 to 1")
    return (1 - share) * pair + share * contrastive
