"""The readings: the orders in which a search can return its hits."""

from enum import StrEnum


class Rank(StrEnum):
    """The order of the hits: by what companies do, by how comparable analysts find them, or by the cosine alone."""

    BUSINESS = "business"
    COMPARABLE = "comparable"
    COSINE = "cosine"
