"""A company written into everything that the service keeps, then deleted and erased; and a search of files for it.

Every place has a word of its own that nobody else writes. Letters without a pattern: in a compressed block
the first occurrence of such a word is stored as it is, so a search of bytes sees it.
"""

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from similarity.bundle import ModelBundle
from similarity.client import Anchor, Client, Question
from similarity.client.writes import Erasure
from similarity.company import Company
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex
from tests.factories import make_generation

ID = "c17"
NAME, ALIAS, DOMAIN, LATER = "Qvxjolta", "Wrzbeknu", "kpzyfomgar", "Žörkpludnå"
DESCRIPTION, TAG, ATTRIBUTE, LATER_DESCRIPTION = "Dzunkvelto", "Fyjmirqas", "Hjmvratzu", "Gbzwutelko"
TEXTS, NOTE = "Tcxyorbind", "Pzlekfumwa"
WORDS = (NAME, ALIAS, DOMAIN, LATER, DESCRIPTION, TAG, ATTRIBUTE, LATER_DESCRIPTION, TEXTS, NOTE)
SECONDS = 200

FIRST = Company(
    id=ID,
    name=f"{NAME} Works GmbH",
    aliases=(ALIAS,),
    domain=f"{DOMAIN}.example",
    description=f"Makes anvils called {DESCRIPTION}.",
    tags=(TAG,),
    attributes={"brand": ATTRIBUTE},
)
SECOND = Company(id=ID, name=f"{LATER} AG", description=f"Makes cars called {LATER_DESCRIPTION}.")


def add_two_generations(index: CompanyIndex, bundle: ModelBundle) -> None:
    """A live generation and a candidate: the service writes to both."""
    for name in ("first", "second"):
        index.create_generation(
            make_generation(name, encoder_id=bundle.encoder_id, dimension=bundle.manifest.dimension)
        )
        index.register_candidate(name)
    index.promote("first")


def write_everywhere(client: Client) -> None:
    """Two names one after the other, lists, verdicts, notes and looks."""
    for other, product in (("nike", "boats"), ("puma", "cars")):
        client.put(Company(id=other, name=other.title(), description=f"Makes big and small {product}."))
    client.put(FIRST)
    client.feedback("nike", ID, "competitor", note=f"says {NOTE}")
    client.feedback("nike", "puma", "competitor", note=f"both smaller than {NAME.lower()} works")
    client.save_shortlist(f"suppliers of {ALIAS}", [ID, "puma"])
    client.save_list("alone", Question.about(ID))
    client.looked("alone", ids=[ID])
    client.save_list("texts", Question.about("nike", Anchor(text=f"{TEXTS}, as {ALIAS.upper()} makes them")))
    excluded = [f"https://{DOMAIN}.example/about", f"{NAME} Works GmbH"]
    client.save_list("excluded", Question.about("nike", exclude=excluded))
    filters = [FieldFilter(field="attributes.brand", any_of=(ALIAS,))]
    client.save_list("filtered", Question.about("nike", filters=filters))
    client.save_list("unlisted", Question.about("nike", exclude_lists=f"suppliers of {ALIAS}"))
    client.save_list(f"rivals of {NAME} Works", Question.about("nike"))
    client.looked(f"rivals of {NAME} Works", ids=[ID, "puma"])
    client.put(SECOND)
    client.feedback("puma", "nike", "unsure", note=f"{LATER.upper()} told us")


def erase(client: Client) -> Erasure:
    """Deletes the company, then erases it, and waits until that has ended."""
    client.delete(ID)
    assert client.erase(ID).erased
    return ended(client)


def ended(client: Client) -> Erasure:
    """The erasure when it is no longer running."""
    deadline = time.monotonic() + SECONDS
    while (erasure := client.erasure(ID)).state == "running":
        assert time.monotonic() < deadline, erasure
        time.sleep(0.1)
    return erasure


def words_in_files(folders: Iterable[Path]) -> dict[str, set[str]]:
    """The words that are in the files under these folders, by file: in UTF-8, UTF-16 or escaped as in JSON."""
    needles = {needle: word for word in WORDS for needle in _written(word)}
    found: dict[str, set[str]] = {}
    for file in (file for folder in folders for file in folder.rglob("*") if file.is_file()):
        content = file.read_bytes()
        if words := {word for needle, word in needles.items() if needle in content}:
            found[file.name] = words | found.get(file.name, set())
    return found


def words_in_text(text: str) -> set[str]:
    """The words that are in a text."""
    return {word for word in WORDS if any(needle in text.encode() for needle in _written(word))}


def _written(word: str) -> Iterator[bytes]:
    for form in {word, word.lower(), word.upper(), word.casefold(), _plain(word), _plain(word).lower()}:
        for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
            yield form.encode(encoding)
        yield json.dumps(form).strip('"').encode()


def _plain(word: str) -> str:
    return word.translate(str.maketrans("Žöå", "Zoa"))
