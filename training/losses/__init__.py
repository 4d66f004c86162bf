"""The losses, one per file: pure functions on tensors, tested against numbers worked by hand.

None of them knows about models, files or batches. Bool masks say which entries count, settings are
keyword-only, and everything is computed in float32 (float64 stays float64, for tests of gradients).
Where nothing counts, a loss is 0 and still belongs to the graph, so `backward()` gives zeros.
"""
