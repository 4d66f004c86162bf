"""The second stage: features of pairs, their scores, and the order of the candidates that the index returned.

    pair_features   the features of an anchor and each candidate
    scores          from features and weights (`model.ranker`) to probabilities
    stage           reads the candidates of the index, and orders them
    fact_effects    which features moved a hit: a reason to show, computed after the order
    rank            the names of the readings

docs/ranking.md explains and measures them.
"""
