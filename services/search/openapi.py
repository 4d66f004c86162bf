"""Writes the committed description of the API, so that a change of the API is a change of files.

python -m services.search.openapi    rewrites services/search/openapi.json, and the problems in docs/problems.md
"""

import json
from pathlib import Path
from typing import cast

from similarity.index.protocol import CompanyIndex

from .app import create_app
from .wire.problems import KINDS

DOCUMENT = Path(__file__).with_name("openapi.json")
GUIDE = Path(__file__).parents[2] / "docs" / "problems.md"
TABLE_BEGINS = "|---|---|---|\n"


def document_text() -> str:
    """Return the OpenAPI document as it is committed."""
    # Describing the API reads no index.
    app = create_app(index=cast("CompanyIndex", None))
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"


def with_problems(guide: str) -> str:
    """Return the guide with a row for each kind of problem in the table at its end."""
    rows = "".join(f"| `{kind.slug}` | {kind.status} | {kind.meaning} |\n" for kind in KINDS)
    return guide.partition(TABLE_BEGINS)[0] + TABLE_BEGINS + rows


def main() -> None:
    """Rewrite both files."""
    DOCUMENT.write_text(document_text(), encoding="utf-8")
    GUIDE.write_text(with_problems(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
