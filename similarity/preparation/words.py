"""Splits names and texts of any script into words that can be compared."""

import re
import unicodedata

# Thai, Lao, Burmese, Khmer, Hangul, kana, ideographs: words are not separated by spaces, or have suffixes.
_ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
    "\u3005\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
)
WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")


def unaccented(text: str) -> str:
    """Return the text without accents and invisible characters, and with full-width letters as plain ones."""
    if text.isascii():  # ten times as fast
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    visible = (each for each in decomposed if not unicodedata.combining(each) and unicodedata.category(each) != "Cf")
    return unicodedata.normalize("NFC", "".join(visible))


def words_of(text: str) -> list[str]:
    """Return the words of a text, case unchanged; in scripts without spaces each character is a word."""
    return WORD.findall(unaccented(text))
