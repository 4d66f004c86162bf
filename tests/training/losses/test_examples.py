"""The examples in the docstrings of the losses."""

import doctest
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

pytestmark = pytest.mark.training

ROOT = Path(__file__).parents[3]
WITHOUT_LOSS = {"__init__", "arithmetic", "methods"}
MODULES = [
    "training.papers.paper_losses",
    *(
        f"training.losses.{path.stem}"
        for path in sorted((ROOT / "training" / "losses").glob("*.py"))
        if path.stem not in WITHOUT_LOSS
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_of_a_loss_has_an_example_that_runs(name: str) -> None:
    module = import_module(name)
    runner = doctest.DocTestRunner()
    for found in doctest.DocTestFinder(exclude_empty=False).find(module, extraglobs={"torch": import_module("torch")}):
        function = vars(module).get(found.name.removeprefix(f"{name}."))
        if isinstance(function, FunctionType) and not function.__name__.startswith("_"):
            assert found.examples, f"{found.name} has no example"
        assert runner.run(found).failed == 0, found.name
