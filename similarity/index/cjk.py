"""Splits Chinese, Japanese and Korean text, whose words are not separated by spaces, for full-text search.

Every two neighbouring characters become a word, as in Lucene's CJKBigramFilter
(https://lucene.apache.org/core/9_0_0/analysis/common/org/apache/lucene/analysis/cjk/CJKBigramFilter.html).
"""

import re

_CHARACTER = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
_CJK = re.compile(f"[{_CHARACTER}\U00020000-\U0003ffff]+")


def is_cjk(text: str) -> bool:
    """Return whether all characters of a text are Chinese, Japanese or Korean; false for an empty text."""
    return _CJK.fullmatch(text) is not None


def with_bigrams(text: str) -> str:
    """Return the text with each run of CJK characters replaced by its bigrams; a single character remains.

    >>> with_bigrams("ARM 半導体")
    'ARM  半導 導体'
    """
    return text if text.isascii() else _CJK.sub(_bigrams, text).strip()


def stored_bigrams(text: bytes) -> str:
    """Return `with_bigrams` of a UTF-8 text. Invalid bytes are replaced, so that a damaged company can be deleted."""
    return with_bigrams(text.decode(errors="replace"))


def _bigrams(run: re.Match[str]) -> str:
    characters = run[0]
    pairs = [characters[start : start + 2] for start in range(max(1, len(characters) - 1))]
    return f" {' '.join(pairs)} "
