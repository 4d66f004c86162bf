"""Where downloaded servers are kept: outside the checkout, shared by all checkouts of one user."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$COMPANY_SIMILARITY_CACHE`, else `company-similarity` in the user's cache folder. It need not exist yet."""
    if chosen := os.environ.get("COMPANY_SIMILARITY_CACHE"):
        return Path(chosen).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "company-similarity"
