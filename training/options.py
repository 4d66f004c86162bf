"""Command-line options for the fields of TrainSettings."""

import argparse
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from training.config import TrainSettings

Settings = TypeVar("Settings", bound=TrainSettings)


SEVERAL: Mapping[str, Any] = {"action": "extend", "nargs": "+"}
"""Arguments of `add_argument` for an option with several values, which may be given together or one by one."""


def add_settings(
    parser: argparse.ArgumentParser, kind: type[TrainSettings] = TrainSettings, *, without: Sequence[str] = ()
) -> None:
    """Add one option for each setting; the namespace contains only the settings that were passed."""
    group = parser.add_argument_group("settings", "described in training/config.py")
    hints = get_type_hints(kind)
    for each in fields(kind):
        if each.name in without:
            continue
        group.add_argument(
            f"--{each.name.replace('_', '-')}",
            dest=each.name,
            default=argparse.SUPPRESS,
            help=f"default: {each.default}",
            **_parsing(hints[each.name]),
        )


def settings_of(
    options: argparse.Namespace, kind: type[Settings], defaults: Mapping[str, Any] | None = None
) -> Settings:
    """Return settings of class `kind`: from the options, else from `defaults`, else the defaults of the class.

    If training begins with a bundle and `max_tokens` is omitted, it is taken from the bundle.

    Raises:
        InvalidInput: a value is out of range.
        InvalidBundle: the bundle that training begins with cannot be read.
    """
    known = {each.name for each in fields(kind)}
    given = {name: value for name, value in vars(options).items() if name in known}
    values = {**(defaults or {}), **given}
    settings = kind.from_values(values)
    return settings if "max_tokens" in values else replace(settings, max_tokens=settings.tokens_of_start)


def _parsing(hint: Any) -> dict[str, Any]:
    """Return the arguments of `add_argument` for a value of this type."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if get_origin(hint) is tuple:
        return {"type": float, **SEVERAL}
    return {"type": hint}
