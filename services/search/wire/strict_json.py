"""Strict JSON for requests: refuses what Python's parser accepts beyond RFC 8259."""

import json
import math
import re
from typing import Any

from similarity.formats.json_text import read_json, without_repeats

# No request needs more than a few dozen; each unknown member would be an error of its own.
MOST_MEMBERS = 1_000
# Python's garbage collector visits each of them, and all other threads wait: 660,000 empty lists took most of a second.
# The longest table for `/match` has 5,000 objects. Brackets within texts count as well.
MOST_CONTAINERS = 10_000
# The parser holds up all threads, too. 10,000 exclusions with commas in their names have some 20,000.
MOST_COMMAS = 200_000
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def strict_json(raw: bytes) -> Any:
    """Return the value of a JSON text.

    Also refused: encodings other than UTF-8, NaN and Infinity (also as 1e999), a member that occurs twice in an object,
    lone surrogates, and too many levels, digits, members, commas, or lists and objects.

    Raises:
        ValueError: the message says what is wrong; from `raw` it contains only names and digits, in ASCII.
    """
    if raw.count(b"[") + raw.count(b"{") > MOST_CONTAINERS:
        raise ValueError(f"it has more than {MOST_CONTAINERS:,} lists and objects; send less at once")
    if raw.count(b",") > MOST_COMMAS:
        raise ValueError(f"it has more than {MOST_COMMAS:,} commas; send less at once")
    try:
        value = read_json(
            raw.decode("utf-8").removeprefix("\ufeff"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_object,
        )
        if SURROGATE.search(raw):  # escapes can produce lone surrogates, which no store and no response can encode
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from None
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair; write the whole character") from None
    return value


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number in JSON; omit the member or send null")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:20]} is too large; send it as text")
    return number


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(members) > MOST_MEMBERS:
        raise ValueError(f"an object has {len(members):,} members; {MOST_MEMBERS:,} are the most")
    return without_repeats(members)
