"""The losses: pure functions on tensors, tested against hand-computed values.

The losses of reproduced papers are in training.papers.paper_losses.

    pause, cross_entropy   losses on pairs
    anchor_losses          losses on anchors: in-batch, listwise, supervised contrastive
    distillation           the loss on texts
    methods                the losses that a method's name stands for, their weighted sum, and their arguments
    candidate_table        anchors × candidates of a batch, for losses on anchors
    arithmetic             means and softmax over masks

The losses know no models, files or batches. Bool masks select the entries that count. All is computed in float32
(float64 stays float64, for gradient tests). If no entry counts, a loss is 0 and `backward()` gives zero gradients.
"""
