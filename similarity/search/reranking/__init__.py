"""The second stage: features of pairs, their scores, and the order of the candidates that the index returned."""
