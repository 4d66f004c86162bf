"""Unicode normal forms in linear time."""

import re
import sys
import unicodedata
from functools import cache
from typing import Literal

MOST_MARKS = 30
"""Combining marks in a row, as in the Stream-Safe Text Format of Unicode Standard Annex 15. No language has more."""
NormalForm = Literal["NFC", "NFKC", "NFKD"]


def normalized(form: NormalForm, text: str) -> str:
    """Return the text in a normal form. Of more than MOST_MARKS combining marks in a row, the others are dropped.

    Normalising sorts such a run, in a time that grows with the square of its length: 100,000 marks take 10 s.
    """
    if len(text) > MOST_MARKS and not text.isascii():
        text = _long_run().sub(r"\1", text)
    return unicodedata.normalize(form, text)


@cache  # not at import: it reads all of Unicode
def _long_run() -> re.Pattern[str]:
    marks = "".join(chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code)))
    return re.compile(f"([{marks}]{{{MOST_MARKS}}})[{marks}]+")
