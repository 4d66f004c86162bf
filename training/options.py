"""Command-line options for the fields of TrainSettings."""

import argparse
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from similarity.errors import SimilarityError
from training.config import TrainSettings, settings_from


def add_settings(parser: argparse.ArgumentParser, *, without: Sequence[str] = ()) -> None:
    """One option for each setting; what each means is said in training/config.py. Only those given are kept."""
    group = parser.add_argument_group("settings", "described in training/config.py")
    hints = get_type_hints(TrainSettings)
    for each in fields(TrainSettings):
        if each.name in without:
            continue
        group.add_argument(
            f"--{each.name.replace('_', '-')}",
            dest=each.name,
            default=argparse.SUPPRESS,
            help=f"default: {each.default}",
            **_parsing(hints[each.name]),
        )


def settings_of(options: argparse.Namespace, defaults: Mapping[str, Any] | None = None) -> TrainSettings:
    """The settings that were given, over `defaults`, over those of TrainSettings; texts as long as a bundle's.

    Raises:
        ValueError: a value is out of its range.
        InvalidBundle: the bundle to begin with cannot be read.
    """
    known = {each.name for each in fields(TrainSettings)}
    given = {name: value for name, value in vars(options).items() if name in known}
    values = {**(defaults or {}), **given}
    settings = settings_from(values)
    return settings if "max_tokens" in values else replace(settings, max_tokens=settings.tokens_of_start)


def checked_settings(options: argparse.Namespace, defaults: Mapping[str, Any] | None = None) -> TrainSettings:
    """`settings_of` for a command line: a value out of its range ends it, with the reason."""
    try:
        return settings_of(options, defaults)
    except (ValueError, SimilarityError) as error:
        sys.exit(f"refused: {error}")


def _parsing(hint: Any) -> dict[str, Any]:
    """How argparse reads a value of this type."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if get_origin(hint) is tuple:
        return {"type": float, "nargs": "+"}
    return {"type": hint}
