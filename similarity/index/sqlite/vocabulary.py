"""The words of an index, to correct typing errors in a query."""

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence

from rapidfuzz import process
from rapidfuzz.distance import OSA

from similarity.company import MAX_NAME_CHARACTERS

MAX_CORRECTIONS = 8
MAX_AGE_SECONDS = 60.0
MIN_CORRECTED_LETTERS, MIN_TWO_ERRORS = 4, 9


class Vocabulary:
    """The distinct words of the full-text index, at most MAX_AGE_SECONDS behind the file. Thread-safe.

    Reading them takes 0.3 s for 46,000 companies. See "The fts5vocab Virtual Table Module" in
    https://sqlite.org/fts5.html.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._words: frozenset[str] = frozenset()
        self._words_of_names: Sequence[str] = ()
        self._state: tuple[int, ...] = ()
        self._read_at = 0.0

    def corrections(self, connection: sqlite3.Connection, word: str, *, state: tuple[int, ...]) -> list[str]:
        """Return up to MAX_CORRECTIONS words of names that differ from `word` by one typing error, nearest first.

        Words from MIN_TWO_ERRORS letters may have two errors, and words below MIN_CORRECTED_LETTERS none. A word that
        is in any text is no error: only it is returned. `state` identifies the contents of the file: if it has changed,
        the words are read again, unless they were read in the last MAX_AGE_SECONDS.
        """
        self._refresh(connection, state)
        if word in self._words:
            return [word]
        cutoff = (len(word) >= MIN_CORRECTED_LETTERS) + (len(word) >= MIN_TWO_ERRORS)
        near = process.extract(
            word, self._words_of_names, scorer=OSA.distance, score_cutoff=cutoff, limit=MAX_CORRECTIONS
        )
        return [correction for correction, _, _ in near]

    def _refresh(self, connection: sqlite3.Connection, state: tuple[int, ...]) -> None:
        with self._lock:
            if self._words and (state == self._state or self._clock() - self._read_at < MAX_AGE_SECONDS):
                return
            connection.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'words', 'col')"
            )
            # FTS5 cuts words at 32,768 bytes, perhaps within a character; reading such a word fails.
            select = f"SELECT DISTINCT term FROM temp.vocabulary WHERE length(term) <= {MAX_NAME_CHARACTERS}"
            self._words = frozenset(term for (term,) in connection.execute(select))
            self._words_of_names = [term for (term,) in connection.execute(f"{select} AND col IN ('name', 'aliases')")]
            self._state, self._read_at = state, self._clock()
