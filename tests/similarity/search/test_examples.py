"""The examples in the docstrings of `similarity.search` print what they say."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "countries",
        "explanations.phrase_pairs",
        "queries.filter_texts",
        "names.comparison",
        "projection",
        "queries.question",
        "queries.vector",
        "reranking.pair_features",
    ],
)
def test_the_examples_of_a_module_are_right(name: str) -> None:
    results = doctest.testmod(import_module(f"similarity.search.{name}"))
    assert results.attempted
    assert not results.failed
