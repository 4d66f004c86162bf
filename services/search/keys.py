"""Makes, lists and revokes the keys of the search service.

python -m services.search.keys add analysts --scope read --scope feedback --expires 2027-01-01
python -m services.search.keys list
python -m services.search.keys revoke analysts --id 0123456789ab

The file is --file, else SIMILARITY_SERVICE_KEYS, else keys.json. Each change is in the audit record:
SIMILARITY_AUDIT, else the record of SIMILARITY_INDEX, else FILE.audit.jsonl. A running service reads a change
within a second. To replace a key: add a second one of the same name, give it to its user, and revoke the
first by its id.
"""

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from similarity.company import utc_now
from similarity.errors import InvalidInput, SimilarityError
from similarity.settings import Settings
from similarity.upkeep.audit import Action, AuditRecord, audit_target, system_user

from . import PROGRAM
from .guards.callers import Scope
from .guards.key_file import Key, key_id, new_key, read_keys, write_keys
from .settings import ServiceSettings

DEFAULT_FILE = "keys.json"


def add(path: Path, name: str, scopes: list[Scope], *, expires: datetime | None = None) -> str:
    """Adds a key and returns its secret, which is not stored.

    Raises:
        InvalidInput: the file is not a file of keys, has no folder, or the name, scopes or expiry cannot be used.
    """
    key, secret = new_key(name, scopes, now=utc_now(), expires=expires)
    with _locked(path):
        write_keys(path, [*(read_keys(path) if path.exists() else ()), key])
    return secret


def revoke(path: Path, name: str, *, identity: str | None = None) -> int:
    """Removes the keys of `name`, or only the one with the id `identity`; returns how many it removed.

    Raises:
        InvalidInput: the file is not a file of keys, or `name` has no key (with this id).
    """
    with _locked(path):
        keys = read_keys(path)
        kept = [key for key in keys if key.name != name or identity not in {None, key.id}]
        if len(kept) == len(keys):
            key = f"key {identity}" if identity else "key"
            raise InvalidInput(f"there is no {key} of {name!r}; list the keys with: {PROGRAM}.keys list --file {path}")
        write_keys(path, kept)
    return len(keys) - len(kept)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command; expected errors are one line and exit status 1."""
    options = _parser().parse_args(arguments)
    try:
        path = options.file or ServiceSettings.from_environment(os.environ).keys or Path(DEFAULT_FILE)
        if options.action == "add":
            with _audit(path).recorded(Action.KEY_ADD, who=system_user(), subject=options.name) as act:
                secret = add(path, options.name, options.scope or [], expires=options.expires)
                act.subject = f"{options.name} {key_id(secret)} {','.join(sorted(options.scope))}"
            sys.stderr.write(f"The key of {options.name}. It is shown only now, and is not stored:\n")
            sys.stdout.write(secret + "\n")
        elif options.action == "list":
            sys.stdout.write("".join(_line(key) for key in read_keys(path)))
        else:
            subject = f"{options.name} {options.id or ''}".strip()
            with _audit(path).recorded(Action.KEY_REVOKE, who=system_user(), subject=subject):
                gone = revoke(path, options.name, identity=options.id)
            sys.stdout.write(f"revoked {gone} key{'s' if gone > 1 else ''} of {options.name}\n")
    except (SimilarityError, OSError) as error:
        sys.exit(f"{__package__}.keys: {error}")


def _audit(path: Path) -> AuditRecord:
    """Return the audit record of the index that the environment names, else one beside the file of keys."""
    settings = Settings.from_environment(os.environ)
    named = settings.audit or os.environ.get("SIMILARITY_INDEX")
    return AuditRecord(audit_target(settings) if named else f"{path}.audit.jsonl")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock the folder of the file of keys, because two commands at once would lose one of the changes."""
    parent = Path(os.path.realpath(path)).parent  # where `write_keys` replaces the file
    if not parent.is_dir():
        raise InvalidInput(f"there is no folder {parent}; make it first")
    folder = os.open(parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _line(key: Key) -> str:
    expires = key.expires.date() if key.expires else "never"
    mark = "" if key.valid(utc_now()) else "  (expired)"
    return (
        f"{key.name}  {key.id}  {','.join(sorted(key.scopes))}  created {key.created.date()}  expires {expires}{mark}\n"
    )


def _day(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date; write it like 2027-01-31") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{PROGRAM}.keys", description="Keys of the search service.")
    actions = parser.add_subparsers(dest="action", required=True)
    adding = actions.add_parser("add", help="make a key and print its secret, once")
    adding.add_argument("name", help="who will use it; several keys may have one name")
    adding.add_argument("--scope", action="append", type=Scope, choices=list(Scope), help="what it allows; repeatable")
    adding.add_argument(
        "--expires", type=_day, help="valid until this day begins in UTC, like 2027-01-31 (default: never)"
    )
    listing = actions.add_parser("list", help="show all keys, without secrets")
    revoking = actions.add_parser("revoke", help="revoke the keys of a name, or one of them")
    revoking.add_argument("name")
    revoking.add_argument("--id", help="only the key with this id")
    for each in (adding, listing, revoking):
        each.add_argument("--file", type=Path, help=f"file of keys (SIMILARITY_SERVICE_KEYS, else {DEFAULT_FILE})")
    return parser


if __name__ == "__main__":
    main()
