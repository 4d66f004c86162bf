"""The command `similarity audit`."""

import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from similarity.cli.context import IndexOption, typed_id
from similarity.cli.output import ListFormat
from similarity.errors import InvalidInput
from similarity.formats.terminal import printable
from similarity.settings import Settings
from similarity.upkeep.audit import Action, audit_target, hashed, read_entries

HASH_CHARACTERS = 12


def audit(
    company: Annotated[
        str | None, typer.Option("--company", metavar="ID", help="Only what concerns this company")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only from this time or day (UTC) on")
    ] = None,
    action: Annotated[list[Action] | None, typer.Option("--action", help="Only this action (repeatable)")] = None,
    output: Annotated[ListFormat, typer.Option("--format", "-f", help="How to print: lines to read, or JSON lines")] = (
        ListFormat.TABLE
    ),
    index: IndexOption = None,
) -> None:
    """Show who changed what, when, and with what outcome: writes, deletes, erasures, generations, keys.

    The record is SIMILARITY_AUDIT, else INDEX.audit.jsonl beside the index. Companies are in it by a hash of their id.

    Example: `similarity audit --company acme --since 2026-01-31`, `similarity audit --action erase --format json`
    """
    target = audit_target(Settings.from_environment(os.environ, index=index))
    wanted = hashed(typed_id(company)) if company else None
    begin = _time(since) if since else None
    is_known = wanted is None
    for entry in read_entries(target):
        is_known |= wanted == entry.get("company_sha256")
        if wanted not in (None, entry.get("company_sha256")) or (action and entry.get("action") not in action):
            continue
        if begin is None or entry["time"] >= begin:
            sys.stdout.write(_json(entry) if output is ListFormat.JSON else _line(entry))
    if not is_known:
        typer.echo(printable(f"no entry is of a company with the id {company!r}; case matters in ids"), err=True)


def _json(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, default=datetime.isoformat) + "\n"


def _line(entry: Mapping[str, Any]) -> str:
    parts = [
        f"{entry['time']:%Y-%m-%d %H:%M:%S}Z",
        *(str(entry.get(name, "-")) for name in ("who", "action", "outcome")),
    ]
    if "company_sha256" in entry:
        parts.append(f"company={entry['company_sha256'][:HASH_CHARACTERS]}")
    parts += [f"{name}={entry[name]}" for name in ("version", "subject", "request_id") if name in entry]
    parts += [f"{name}={count}" for name, count in entry.get("counts", {}).items()]
    return printable("  ".join(parts)) + "\n"


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"--since is {text!r}, which is not a time; use a form like 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)
