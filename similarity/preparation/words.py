"""Splits names and texts of any script into words that can be compared."""

import re
import unicodedata

from similarity.formats.normal_forms import normalized, without_marks

# Thai, Lao, Burmese, Khmer, Hangul, kana, ideographs: words are not separated by spaces, or have suffixes.
_ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
    "\u3005\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
)
# Letters that Unicode does not decompose into a plain one and an accent; a combining iota is a letter in capitals.
_PLAIN = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ı": "i", "\u0345": "ι"}
    | {"æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "Th"}
)
# Signs after a name, which Unicode would decompose into letters and digits ("Acme™", "Acme¹"), and the dot between
# the parts of a name in kana.
_SIGNS = re.compile("[™℠®©ªº¹²³⁰-⁹₀-₉①-⑳・･]")
# English words that say nothing about a business, and the words of the mask ("The company").
STOP_WORDS = frozenset(
    """a about all also am an and any are as at be been but by can company do does for from had has have he her his i if
    in into is it its more most no not of on or other our over s she so some such than that the their them then there
    these they this those through to under up us was we were what when where which while who whose will with within you
    your""".split()
)
MIN_CONTENT_WORDS = 3
MAX_CONTENT_CHARACTERS = 10_000
"""How many characters of a text are searched for content words; an encoder reads fewer."""
WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")


def unaccented(text: str) -> str:
    """Return the text in plain letters: without accents, invisible characters, full-width forms and signs such as ™."""
    if text.isascii():  # ten times as fast
        return text
    apart = without_marks(normalized("NFKD", _SIGNS.sub(" ", text)).translate(_PLAIN))
    invisible = [ord(each) for each in set(apart) if unicodedata.category(each) == "Cf"]
    return normalized("NFC", apart.translate(dict.fromkeys(invisible)) if invisible else apart)


def words_of(text: str) -> list[str]:
    """Return the words of a text, case unchanged; in scripts without spaces each character is a word."""
    return WORD.findall(unaccented(text))


def has_content(text: str, *, at_least: int = MIN_CONTENT_WORDS) -> bool:
    """Return whether the first MAX_CONTENT_CHARACTERS have at least `at_least` words that are not stop words."""
    return sum(word.lower() not in STOP_WORDS for word in words_of(text[:MAX_CONTENT_CHARACTERS])) >= at_least
