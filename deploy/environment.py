"""Writes .env for docker compose from .env.example, with a random secret wherever a value is left empty.

    python -m deploy.environment

An existing .env keeps its values, because existing data needs its secrets. Secrets that it lacks, because they came
with a newer release, are added.
"""

import os
import re
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EMPTY = re.compile(r"^([A-Z_]+)=$", re.MULTILINE)
GIVEN = re.compile(r"^([A-Z_]+)=.", re.MULTILINE)


def filled(example: str) -> str:
    """The example with a new secret of 32 bytes, URL-safe, after each `NAME=` that has no value."""
    return EMPTY.sub(lambda match: f"{match[1]}={secrets.token_urlsafe(32)}", example)


def main(folder: Path = ROOT) -> None:
    """Writes the file, for its owner only, or adds the secrets that it lacks; ends with status 1 if it lacks none."""
    target = folder / ".env"
    example = (folder / ".env.example").read_text(encoding="utf-8")
    try:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        _add_missing(target, example)
        return
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(filled(example))
    sys.stdout.write(f"{target} is written; read it, then: docker compose up --build\n")


def _add_missing(target: Path, example: str) -> None:
    given = GIVEN.findall(target.read_text(encoding="utf-8"))
    missing = [name for name in EMPTY.findall(example) if name not in given]
    if not missing:
        sys.exit(
            f"{target} is there already and stays as it is; remove it only together with the data: docs/compose.md"
        )
    with target.open("a", encoding="utf-8") as file:
        file.write("\n" + filled("".join(f"{name}=\n" for name in missing)))
    sys.stdout.write(f"{target} is there already; added to it: {', '.join(missing)}\n")


if __name__ == "__main__":
    main()
