"""The losses: pure functions on tensors, tested against hand-computed values. Those of papers: training.papers.losses.

    losses on pairs     pause, cross_entropy
    losses on anchors   supervised_contrastive, in_batch, listwise
    loss on texts       distillation
    combination         the weighted sum of two losses
    objectives          the losses that a method's name stands for; the loss of a batch is computed here
    inputs              the arguments of a loss on pairs
    candidate_table     anchors × candidates of a batch, for losses on anchors
    arithmetic          means and softmax over masks

The losses know no models, files or batches. Bool masks select the entries that count. All is computed in float32
(float64 stays float64, for gradient tests). If no entry counts, a loss is 0 and `backward()` gives zero gradients.
"""
