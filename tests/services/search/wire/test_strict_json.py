import json
import re

import pytest

from services.search.wire.strict_json import strict_json


def test_json_is_read_as_it_is() -> None:
    raw = '\ufeff{"name": "Zoë \\ud83d\\ude00", "sizes": [1, 2.5, null, true], "large": 12345678901234567890}'.encode()
    assert strict_json(raw) == {"name": "Zoë 😀", "sizes": [1, 2.5, None, True], "large": 12345678901234567890}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b"{} {}", "Extra data"),
        (b'{"a": NaN}', "NaN is not a number in JSON"),
        (b'{"a": -Infinity}', "-Infinity is not a number in JSON"),
        (b'{"a": 1e999}', "the number 1e999 is too large"),
        (b"9" * 5_000, "Exceeds the limit"),
        (b'{"a": "\xff"}', "is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "is not UTF-8"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b'{"\\udfff": 1}', "half of a surrogate pair"),
        (b'{"a": {"b": 1, "c": 2, "b": 3}}', "the member 'b' occurs twice"),
        (b'{"\\ud800": 1, "\\ud800": 2}', r"the member '\ud800' occurs twice"),
        (b"[" * 9_000, "nested too deeply"),
        (b"[" + b"[]," * 10_000 + b"1]", "more than 10,000 lists and objects"),
        (b"[" + b"1," * 200_001 + b"1]", "more than 200,000 commas"),
        (json.dumps([dict.fromkeys(map(str, range(1_001)))]).encode(), "an object has 1,001 members; 1,000 are the"),
    ],
)
def test_what_is_no_strict_json_is_refused_in_words(raw: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        strict_json(raw)
    assert str(error.value).isascii()
