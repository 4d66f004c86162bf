"""Answering while the live generation may be replaced at any moment."""

from collections.abc import Callable
from typing import TypeVar

from similarity.errors import UnknownGeneration

Answer = TypeVar("Answer")


def once_more(answer: Callable[[], Answer]) -> Answer:
    """`answer`, again if the generation that it began with vanished meanwhile (promoted over and retired)."""
    try:
        return answer()
    except UnknownGeneration:
        return answer()
