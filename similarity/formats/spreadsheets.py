"""Cells that a spreadsheet does not run as formulas (OWASP, CSV injection)."""

import unicodedata

SIGNS = frozenset("=+-@\N{MINUS SIGN}")
# Invisible or shown as a space, although Unicode classifies them as letters, marks or symbols; and the quotation mark:
# CSV doubles it, and after a semicolon the pair is read as an empty quoted text in front of the formula.
BLANKS = frozenset('"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0')


def spreadsheet_cell(value: object) -> object:
    """Return `value`; a text that a spreadsheet may run as a formula gets an apostrophe in front.

    A formula begins with = + - or @. Spreadsheets also accept full-width forms of these signs, and skip white space
    invisible characters and quotation marks in front of them. Some split cells at semicolons, so each part is checked.
    """
    if not isinstance(value, str):
        return value
    first, *others = value.split(";")
    return ";".join([_cell(first), *(_cell(other) for other in others)])


def _cell(value: str) -> str:
    first = next((character for character in value if not _is_blank(character)), "")
    begins_formula = unicodedata.normalize("NFKC", first)[:1] in SIGNS
    return f"'{value}" if begins_formula or value.startswith(("\t", "\r", "\n")) else value


def _is_blank(character: str) -> bool:
    # Spaces and separators, control and format characters, variation selectors.
    return (
        character.isspace()
        or unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp", "Zs"}
        or character in BLANKS
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )
