"""Filters as users write them: short texts, countries by any spelling, ranges of levels."""
