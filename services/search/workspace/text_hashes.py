"""Which judged companies have the same text, without preparing each text again for every export of ids."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TypeAlias

from similarity.company import Company, EmbeddedCompany
from similarity.text import embedding_text, text_hash

# Some 500 bytes each. Preparing a text takes a few tenths of a millisecond, and the page asks with every verdict.
REMEMBERED = 30_000

Mark: TypeAlias = tuple[int, str]
"""What no two states of a company share, and what stays when another encoder is promoted: version and stored hash."""


class TextHashes:
    """Hashes of what an encoder reads of companies, the last `remembered` from memory. Thread-safe."""

    def __init__(self, *, remembered: int = REMEMBERED, prepare: Callable[[Company], str] = embedding_text) -> None:
        self._remembered = remembered
        self._prepare = prepare
        self._memory: OrderedDict[str, tuple[Mark, str]] = OrderedDict()
        self._lock = Lock()

    def of(self, documents: Mapping[str, EmbeddedCompany]) -> dict[str, str]:
        """The hash of each document's text, by id: equal for equal texts."""
        return {company_id: self._hash(document) for company_id, document in documents.items()}

    def _hash(self, document: EmbeddedCompany) -> str:
        mark = (document.version, document.text_hash)
        with self._lock:
            known = self._memory.get(document.id)
            if known is not None and known[0] == mark:
                self._memory.move_to_end(document.id)
                return known[1]
        made = text_hash(self._prepare(document.company))
        with self._lock:
            self._memory[document.id] = mark, made
            self._memory.move_to_end(document.id)
            while len(self._memory) > self._remembered:
                self._memory.popitem(last=False)
        return made
