"""Texts, lists and typed attributes from the raw values of a record."""

import ast
import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass

from similarity.company import AttributeValue
from similarity.errors import InvalidCompany
from similarity.formats.normal_forms import normalized
from similarity.formats.plain_values import EXACT_IN_EXCEL, UnreadableValue, plain_value
from similarity.index.attributes import AttributeType
from similarity.index.numbers import (
    DATE_PATTERN,
    ambiguous_thousands,
    has_decimal_comma,
    is_finite,
    is_number,
    number_of_cell,
)
from similarity.ingest.markup import without_markup

# Ways to write that a value is missing.
MISSING = frozenset(
    r"""
    null none nan n/a n.a. tbd - -- \n <na> (null) <null> [null] (none) (blank)
    #null! #div/0! #value! #ref! #name? #num! #n/a #getting_data #spill! #calc! #field! #blocked! #connect! #busy!
    #unknown! #external! #timeout! #python!
    """.split()
)
NA_IS_MISSING = frozenset({"aliases", "tags", "industry", "domain", "description", "event_time", "deleted"})
MAX_BITS = 10_000
"""Limit of a whole number that becomes text, in bits; Python refuses to convert much longer ones."""
NUMBER_EXAMPLES = "12500, 12,500 or 12.5"
YEAR = re.compile(r"(?:19|20)[0-9]{2}\b")
COMPACT_DATE = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
WHOLE_FLOAT = re.compile(r"-?[0-9]+\.0")
COMMA_DECIMAL = re.compile(r"[+-]?[0-9]+,[0-9]+")
LEADING_ZERO = re.compile(r"[+-]?0[0-9]+")
SEPARATORS = re.compile(r"[;|\r\n]")
# A text as Python's repr() writes it.
PYTHON_TEXT = re.compile(r"""'[^'\\\n]*(?:\\[\\'"nrtxuU][^'\\\n]*)*'|"[^"\\\n]*(?:\\[\\'"nrtxuU][^"\\\n]*)*\"""")
PYTHON_LIST = re.compile(rf"\s*\[\s*(?:(?:{PYTHON_TEXT.pattern})[\s,]*)*\]\s*")
MAX_PYTHON_LIST = 10_000
"""The most characters of a list in Python's syntax, which takes longer to read than JSON."""
KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    bytes: "bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValue:
    """The value of an attribute; None if the record has none, or an invalid one.

    `warning`: why the value was ignored or, if it is `ambiguous`, what else it may mean. `decimal_comma`: the text of a
    number whose decimal sign is certainly a comma.
    """

    value: AttributeValue | None = None
    warning: str = ""
    ambiguous: bool = False
    decimal_comma: str = ""


def kind_of(value: object) -> str:
    """Return the kind of a value in words, for a message: "a list", "an object"."""
    return KINDS.get(type(value), f"a value of the type {type(value).__name__}")


def clean_text(value: object, field_name: str) -> str:
    """Return a text field, stripped and in NFC. Numbers and dates become text; None and NaN become empty.

    In every field but an id, HTML is removed, and the words of MISSING become empty.

    Raises:
        InvalidCompany: the value is a list, an object, true or false, an infinite number or the like.
    """
    value = plain_value(value)
    if value is None or _is_nan(value):
        return ""
    if isinstance(value, UnreadableValue):
        raise InvalidCompany(field_name, value.reason)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        flat = "; write one object for each company, with its texts as members" if isinstance(value, dict) else ""
        raise InvalidCompany(field_name, f"must be text, not {kind_of(value)}{flat}")
    if isinstance(value, float) and not is_finite(value):
        raise InvalidCompany(field_name, "is an infinite number")
    if isinstance(value, float) and field_name == "id" and abs(value) >= EXACT_IN_EXCEL:
        raise InvalidCompany(field_name, f"{value!r} has more digits than such a number keeps; write such ids as text")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise InvalidCompany(field_name, "is a number of too many digits")
    text = normalized("NFC", str(value)).strip()
    if field_name == "id":
        return text
    is_missing = text.casefold() in MISSING or text == "NaT"  # NAT is a ticker
    # R writes NA, which is also Namibia and may be a name.
    return "" if is_missing or (text == "NA" and field_name in NA_IS_MISSING) else without_markup(text)


def clean_list(value: object, field_name: str) -> tuple[str, ...]:
    """Return the entries of a list field, without empty and repeated ones.

    `value`: a list of texts, or one text, which is a list in JSON or Python, or has entries separated by `;`, `|` or
    line breaks.
    """
    if value is None:
        return ()
    entries = value if isinstance(value, list | tuple) else _entries(value, field_name)
    cleaned = (clean_text(entry, field_name) for entry in entries)
    return tuple(dict.fromkeys(entry for entry in cleaned if entry))


def _entries(value: object, field_name: str) -> list[object]:
    if isinstance(value, str) and value.lstrip().startswith("[") and value.rstrip().endswith("]"):
        try:
            entries = json.loads(value)
        except (ValueError, RecursionError):
            entries = None
        if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
            return entries
        # A list or an array of a data frame in a CSV file: ['Acme', "O'Hara"] or ['Acme' "O'Hara"].
        if len(value) <= MAX_PYTHON_LIST and PYTHON_LIST.fullmatch(value):
            with suppress(SyntaxError, ValueError):
                return [ast.literal_eval(text) for text in PYTHON_TEXT.findall(value)]
    return list(SEPARATORS.split(clean_text(value, field_name)))


def comma_warning(value: object, entries: tuple[str, ...], field_name: str) -> str:
    """Return a warning if the text of a list field has commas but became one entry; otherwise empty."""
    if not isinstance(value, str) or len(entries) != 1 or "," not in entries[0]:
        return ""
    return (
        f"{field_name}: {entries[0]!r:.60} is one entry, because commas do not separate entries; write ; or | between "
        "several"
    )


def attribute_value(raw: object, declared: AttributeType | None) -> FieldValue:
    """Return the value of an attribute as its declared type, if it has one."""
    value = plain_value(raw)
    if problem := _problem_of(value):
        return FieldValue(warning=f"{problem}; ignored")
    scalar = value if isinstance(value, bool | int | float) and not _is_nan(value) else None
    text = clean_text(value, "attributes") if scalar is None else str(scalar)
    if not text and declared and isinstance(value, str) and declared.step(value.strip()) is not None:
        text = value.strip()  # a level such as "none", which is a missing value elsewhere
    if not text:
        return FieldValue()
    if declared is None or (declared.levels and declared.step(text) is not None):
        return FieldValue(value=text if scalar is None else scalar)
    if declared.levels:
        comma = " (a level cannot have a comma: write 1001-5000, for example)" if "," in text else ""
        return FieldValue(warning=f"{text!r:.40} is none of {', '.join(declared.levels)}; ignored{comma}")
    if is_number(scalar) and _is_storable(scalar):
        return FieldValue(value=_whole(scalar))
    return _number(text)


def _number(text: str) -> FieldValue:
    number = number_of_cell(text)
    if number is None or not _is_storable(number):
        instead = text.replace(",", ".")
        hint = f" (write {instead} if the comma is a decimal sign)" if COMMA_DECIMAL.fullmatch(text) else ""
        hint = " (write a date as 2010-01-31, or its year alone)" if YEAR.search(text) else hint
        return FieldValue(warning=f"{text!r:.40} is not a number like {NUMBER_EXAMPLES}{hint}; ignored")
    value = _whole(number)
    if DATE_PATTERN.fullmatch(text):
        return FieldValue(value=value, warning=f"{text!r:.40} is read as its year, {value}", ambiguous=True)
    if COMPACT_DATE.fullmatch(text):
        instead = f"{text[:4]}-{text[4:6]}-{text[6:]}"
        warning = f"{text} is read as this number; write {instead} if the year of a date is meant"
        return FieldValue(value=value, warning=warning, ambiguous=True)
    if (thousands := ambiguous_thousands(text)) is not None:
        warning = f"{text!r} is read as {number}; write {thousands} if a thousand is meant"
        return FieldValue(value=value, warning=warning, ambiguous=True)
    if LEADING_ZERO.fullmatch(text):
        warning = (
            f"{text!r:.40} is read as {value}, without its leading zero; if it is a code, such as a postcode, "
            "load it without a type, with --attribute NAME:text"
        )
        return FieldValue(value=value, warning=warning, ambiguous=True)
    return FieldValue(value=value, decimal_comma=text if has_decimal_comma(text) else "")


def _problem_of(value: object) -> str:
    """Return why no attribute of any type can have this value; empty if one can."""
    if isinstance(value, UnreadableValue):
        return value.reason
    if value is not None and not isinstance(value, str | bool | int | float):
        return f"must be text, a number, a date, true or false, not {kind_of(value)}"
    return "is a number of too many digits" if isinstance(value, int) and value.bit_length() > MAX_BITS else ""


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _whole(number: float) -> float:
    """Return 50.0 as 50: a data frame makes floats of whole numbers, and a filter for 50 must find both."""
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < 2**53 else number


def _is_storable(number: float) -> bool:
    """Return whether the number can be stored as an attribute: a finite float or a signed 64-bit integer."""
    return is_finite(number) if isinstance(number, float) else -(2**63) <= number < 2**63


def id_warning(company_id: str) -> str:
    """Return why an id may be a mistake of the file; empty if nothing is odd."""
    if company_id.casefold() in MISSING:  # NAN is a ticker, too
        return f"id: {company_id!r} is usually a missing value; companies of one id replace each other"
    # A data frame makes floats of whole numbers if one of them is missing, and may have written them as text.
    if WHOLE_FLOAT.fullmatch(company_id):
        return f"id: {company_id!r} is a number with a decimal point; {company_id.removesuffix('.0')!r} is another id"
    if DATE_PATTERN.fullmatch(company_id):
        return f"id: {company_id!r} is a date, which Excel makes of texts such as MAR1"
    return ""
