"""The committed OpenAPI document, so that a change of the API is a visible change of a file.

python -m services.search.openapi    rewrites services/search/openapi.json
"""

import json
from pathlib import Path
from typing import cast

from services.search.app import create_app
from similarity.index.protocol import CompanyIndex

DOCUMENT = Path(__file__).with_name("openapi.json")


def document_text() -> str:
    """The document as it is committed."""
    # Describing the API asks no index.
    app = create_app(index=cast("CompanyIndex", None))
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Rewrites the committed document."""
    DOCUMENT.write_text(document_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
