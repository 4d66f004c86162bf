"""Links of the documents lead to files that are there, and to headings that stand in them."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?P<file>[^)#\s]*)(?:#(?P<heading>[^)\s]*))?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def there() -> frozenset[str]:
    """Every file and folder of the project, without what it makes itself; in a fresh clone just what git holds."""
    made = {"var", "build", "dist", ".venv", ".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
    # Not walked at all: a folder that somebody removes there meanwhile would be an error.
    tops = (top for top in ROOT.iterdir() if top.name not in made)
    return frozenset(str(path.relative_to(ROOT)) for top in tops for path in (top, *top.rglob("*")))


def headings(text: str) -> set[str]:
    """What GitHub makes of a document's headings: lower case, no punctuation, hyphens for spaces."""
    titles = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(document: str, known: frozenset[str]) -> Iterator[str]:
    """The links of one document that lead nowhere."""
    for link in LINK.finditer(FENCE.sub("", (ROOT / document).read_text(encoding="utf-8"))):
        if "://" in link["file"] or link["file"].startswith(("/", "mailto:")):
            continue
        file = normpath(str(PurePosixPath(document).parent / link["file"])) if link["file"] else document
        if file not in known:
            yield f"{document}: {link['file']}"
        elif link["heading"] and file.endswith(".md") and link["heading"] not in headings((ROOT / file).read_text()):
            yield f"{document}: {link['file']}#{link['heading']}"


def test_every_link_leads_somewhere() -> None:
    known = there()
    documents = sorted(name for name in known if name.endswith(".md"))
    assert len(documents) > 30
    assert [link for document in documents for link in broken(document, known)] == []
