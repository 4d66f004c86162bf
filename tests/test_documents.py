"""Links of the documents lead to files that the repository holds, and to headings that stand in them."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

import pytest

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?P<file>[^)#\s]*)(?:#(?P<heading>[^)\s]*))?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def tracked() -> frozenset[str]:
    """Every file that git holds, and every folder above one."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: what the repository holds is not known")
    files = [name for name in listed.stdout.split("\0") if name]
    folders = {str(folder) for name in files for folder in PurePosixPath(name).parents}
    return frozenset(files) | folders


def headings(text: str) -> set[str]:
    """What GitHub makes of a document's headings: lower case, no punctuation, hyphens for spaces."""
    titles = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(document: str, there: frozenset[str]) -> Iterator[str]:
    """The links of one document that lead nowhere."""
    for link in LINK.finditer(FENCE.sub("", (ROOT / document).read_text(encoding="utf-8"))):
        if "://" in link["file"] or link["file"].startswith(("/", "mailto:")):
            continue
        file = normpath(str(PurePosixPath(document).parent / link["file"])) if link["file"] else document
        if file not in there:
            yield f"{document}: {link['file']}"
        elif link["heading"] and file.endswith(".md") and link["heading"] not in headings((ROOT / file).read_text()):
            yield f"{document}: {link['file']}#{link['heading']}"


def test_every_link_leads_somewhere() -> None:
    there = tracked()
    documents = sorted(name for name in there if name.endswith(".md"))
    assert len(documents) > 30
    assert [link for document in documents for link in broken(document, there)] == []
