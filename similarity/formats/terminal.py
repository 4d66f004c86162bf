"""Text without characters that a terminal would interpret as commands."""

import unicodedata

# Marks that change the direction of what follows (Unicode Standard Annex 9).
DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    r"""Return `text` with a replacement character for each control character, direction mark and lone surrogate.

    A terminal interprets some of them as commands (ECMA-48), a line break would start another line of a record, and
    a lone surrogate cannot be encoded.

    >>> printable("Acme\x1b[2J")
    'Acme\ufffd[2J'
    """
    if text.isprintable():
        return text
    return "".join("\ufffd" if _is_unprintable(each) else each for each in text)


def _is_unprintable(character: str) -> bool:
    return character in DIRECTION_MARKS or unicodedata.category(character) in {"Cc", "Cs"}
