"""Cells that a spreadsheet does not run as formulas (OWASP, CSV injection)."""

import re
import unicodedata

PARTS = re.compile(r"(?<=[;\t\r\n])")
SIGNS = frozenset("=+-@\N{MINUS SIGN}")
# Invisible or shown as a space, although Unicode classifies them as letters, marks or symbols; and the quotation mark:
# CSV doubles it, and after a semicolon the pair is read as an empty quoted text before the formula.
BLANKS = frozenset('"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0')


def spreadsheet_cell(value: object) -> object:
    """Return `value`; a text that a spreadsheet may run as a formula gets a leading apostrophe.

    A formula begins with = + - or @. Spreadsheets also accept full-width forms of these signs, and skip white
    space, invisible characters and quotation marks before them. Some spreadsheets split cells at semicolons, tabs and
    line breaks, so the parts after these are checked too.
    """
    if not isinstance(value, str):
        return value
    shown = "".join(f"'{part}" if _begins_formula(part) else part for part in PARTS.split(value))
    return f"'{shown}" if value.startswith(("\t", "\r", "\n")) or _begins_formula(shown) else shown


def _begins_formula(text: str) -> bool:
    first = next((character for character in text if not _is_blank(character)), "")
    return unicodedata.normalize("NFKC", first)[:1] in SIGNS


def _is_blank(character: str) -> bool:
    # Spaces and separators, control and format characters, variation selectors.
    return (
        character.isspace()
        or unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp", "Zs"}
        or character in BLANKS
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )
