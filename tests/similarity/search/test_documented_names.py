"""Every company that docs/*.md ask about is in the sample, under that id, domain or name.

`tests/test_readme.py` runs the commands of README.md.
"""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from similarity.index.sqlite import SqliteIndex
from similarity.search.names.resolver import FoundCompany, Resolver
from tests.similarity.search.conftest import GENERATION

ROOT = Path(__file__).parents[3]
COMMAND = re.compile(r"similarity similar ((?:[^\n`\\#]|\\\n)+)")
ADDRESS = re.compile(r"/similar/([\w.%-]+)|[?&](?:also|unlike|exclude|company|anchor)=([\w.%-]+)")
MEMBER = re.compile(r"""\b(?:company|anchor|hit)"?[:=] ?"([^"]+)\"""")
LIST = re.compile(r"""\b(?:exclude|companies|add|remove|negatives)"?[:=] ?\[((?:"[^"]*"(?:, )?)+)\]""")
CALL = re.compile(
    r"""(?:Question\.about|\.similar|\.search|\.company|save_shortlist\("[^"]*",)\(? ?\[?((?:"[^"]*"(?:, )?)+)"""
)
PATHS = {"batch", "locate"}
"""Addresses below /similar that are no company."""


def asked_by_command(arguments: str) -> Iterator[str]:
    """The companies of a command line: its first words, and those of its options that name companies."""
    words = shlex.split(arguments.replace("\\\n", " "))
    first_option = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    yield from words[:first_option]
    yield from (value for option, value in pairwise(words) if option in ("--unlike", "--exclude"))


def asked_by(text: str) -> Iterator[str]:
    """The companies that a document asks about."""
    for command in COMMAND.finditer(text):
        yield from asked_by_command(command[1])
    for pattern in (ADDRESS, MEMBER):
        for match in pattern.finditer(text):
            yield from (unquote(each) for each in match.groups() if each)
    for pattern in (LIST, CALL):
        for match in pattern.finditer(text):
            yield from re.findall(r'"([^"]*)"', match[1])


def test_the_sample_has_every_company_that_the_documents_ask_about(sample: SqliteIndex) -> None:
    documents = sorted((ROOT / "docs").glob("*.md"))
    asked = {name: path.name for path in documents for name in asked_by(path.read_text(encoding="utf-8"))}
    for each in PATHS:
        asked.pop(each, None)
    assert {"nike", "Asics", "about.puma.com", "Mastercard", "heineken"} <= asked.keys()
    found = Resolver(sample, GENERATION).companies(asked, max_similar_searches=0)
    assert {name: asked[name] for name, company in found.items() if not isinstance(company, FoundCompany)} == {}
