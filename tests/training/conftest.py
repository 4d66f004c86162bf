"""Tiny models, made once for all tests that train."""

from pathlib import Path

import pytest

from tests.training.tiny_model import write_tiny_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model without dropout: what it makes does not depend on chance."""
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="session")
def dropping_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with dropout."""
    return write_tiny_model(tmp_path_factory.mktemp("model") / "dropping", dropout=0.2)
