"""Links of the documents lead to files and headings that are there; make targets that something names exist."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?P<file>[^)#\s]*)(?:#(?P<heading>[^)\s]*))?\)")
TARGET = re.compile(r"^([a-z][a-z-]*):(?!=)([^#\n]*).*\n(\t?)", re.MULTILINE)
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


def targets() -> dict[str, tuple[set[str], bool]]:
    """The targets of the Makefile: what each needs, and whether it has a recipe of its own."""
    found = TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    return {name: (set(needs.split()), bool(recipe)) for name, needs, recipe in found}


def made(text: str, start: str) -> set[str]:
    """The targets of the `make` commands in a text: words up to `#` or `&`, without options, variables and files."""
    commands = re.findall(start + r"make ([^`#&\n]*)", text, re.MULTILINE)
    return {word for command in commands for word in command.split() if re.fullmatch(r"[a-z][a-z-]*", word)}


def code(text: str) -> str:
    """The blocks and the inline code of a document, each in lines of its own."""
    return "\n".join([*FENCE.findall(text), *re.findall(r"`([^`\n]+)`", FENCE.sub("", text))])


def covered(names: set[str]) -> set[str]:
    """These targets, those that they need, and those that only stand for some of them."""
    known, found = targets(), set(names)
    for name in sorted(names):
        found |= covered(known[name][0] & known.keys())
    return found | {name for name, (needs, recipe) in known.items() if needs and not recipe and needs <= found}


def test_every_make_target_in_a_document_exists() -> None:
    documents = [name for name in there() if name.endswith(".md")]
    named = {name: made(code((ROOT / name).read_text(encoding="utf-8")), "^") for name in documents}
    assert {"demo", "lint", "test", "test-unit"} <= named["CONTRIBUTING.md"]
    assert {name: unknown for name, found in named.items() if (unknown := found - targets().keys())} == {}


def test_the_workflow_runs_every_target_of_the_gate() -> None:
    gate = made((ROOT / ".ci/run").read_text(encoding="utf-8"), "^ *")
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    workflow = made(text, "(?:run:|-) +")
    assert {"test", "demo", "test-integration"} <= gate
    assert workflow <= targets().keys()
    assert gate - covered(workflow) == set()
    # What one part of the unit tests leaves out is a part of its own.
    assert re.findall(r"TESTS=(\S+/\S+)", text) == re.findall(r"--ignore=([^\s\"]+)", text) != []


def test_the_hooks_before_a_commit_are_the_tools_of_lint() -> None:
    hooks = re.findall(r"entry: \.venv/bin/(.+)", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    [lint] = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert hooks == [re.sub(r" (--\S+|\.)", "", line) for line in re.findall(r"\$\(BIN\)/(.+)", lint)]
