"""What orders the hits of a search."""

from enum import StrEnum


class Rank(StrEnum):
    """What orders the hits: what companies do, whom an analyst would put beside the company, or the plain cosine."""

    BUSINESS = "business"
    COMPARABLE = "comparable"
    COSINE = "cosine"
