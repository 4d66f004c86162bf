"""Detects the language of a description.

An encoder reads the languages that it was trained on. Texts in other languages are embedded too, but their language is
shown, so that a user knows why the neighbours look wrong, and they get no probability (`is_readable`).
"""

import io
import lzma
import re
from array import array
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from py3langid.langid import LanguageIdentifier

UNDECIDED = "und"

# Shorter texts are names and slogans, whose language cannot be detected reliably.
MIN_LETTERS = 20
# One CJK character carries as much meaning as several Latin letters.
MIN_CJK_LETTERS = 6
# Below this the identifier is undecided: lists of names, mixed texts. Short plain sentences reach .7.
MIN_PROBABILITY = 0.6
# Only the first sentences are used, so that a long profile costs no more than a short one.
MAX_CHARACTERS = 400

# An ASCII text with at least this many, and this share, of the words below is English. The identifier, which is ten
# times slower, agreed on all 38,000 such descriptions among 46,616.
MIN_ENGLISH_WORDS = 6
MIN_ENGLISH_SHARE = 0.1

# An English text has at most this share of letters of other scripts. An English tokenizer knows few of these: of the
# tokens, 59 % are unknown in Chinese descriptions, 26 % in Japanese ones and none in Latin letters. At most 1 % of the
# letters of 46,616 English descriptions are of other scripts, and at least 17 % of Chinese and Japanese ones.
MAX_OTHER_SCRIPTS = 0.2
# A text in another language has less than this share of the words below. English texts with a long foreign name have
# more, but the identifier takes them for another language.
MAX_ENGLISH_SHARE = 0.08

_ENGLISH = re.compile(r"\b(?:the|and|of|with|that|which|from|its|are|their|company|provides)\b", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
# A letter that is not Latin; full-width forms and ligatures of Latin letters count as Latin.
_OTHER_SCRIPT = re.compile(
    r"[^\W\d_A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a]"
)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_HAN_OR_KANA = re.compile("[\u3005\u3040-\u30ff\u3400-\u9fff]")


def detect_language(text: str) -> str:
    """Return the ISO 639-1 code of the language of `text`, or "und" if the text is too short or mixed."""
    sample = text[:MAX_CHARACTERS]
    if _is_plainly_english(sample):
        return "en"
    if len(_LETTER.findall(sample)) < MIN_LETTERS and len(_CJK.findall(sample)) < MIN_CJK_LETTERS:
        return UNDECIDED
    # Unpaired surrogates cannot be encoded as UTF-8; leave them out.
    language, probability = _identifier().classify(sample.encode("utf-8", "ignore").decode("utf-8"))
    if probability < MIN_PROBABILITY:
        return UNDECIDED
    return "en" if language == "pcm" else str(language)  # short English sentences are taken for Nigerian Pidgin


def is_readable(text: str, language: str, languages: Collection[str]) -> bool:
    """Return whether an encoder of `languages` can read `text`, whose detected language is `language`.

    False for a text in another language with few English words, and for an English or undecided text that is largely in
    another script than Latin. For an encoder of English, the result is False for one of 46,616 English descriptions,
    and for 239 of 240 in six other languages.
    """
    sample = text[:MAX_CHARACTERS]
    if language in languages and language != "en":
        return True
    if language == UNDECIDED and not {"ja", "zh"}.isdisjoint(languages):  # lists of products, such as 煤炭开采、洗选
        sample = _HAN_OR_KANA.sub("", sample)
    if not sample.isascii() and len(_OTHER_SCRIPT.findall(sample)) > MAX_OTHER_SCRIPTS * len(_LETTER.findall(sample)):
        return False
    return language in {*languages, UNDECIDED} or ("en" in languages and _english_share(sample) >= MAX_ENGLISH_SHARE)


def _english_share(sample: str) -> float:
    return len(_ENGLISH.findall(sample)) / (sample.count(" ") + 1)


def _is_plainly_english(sample: str) -> bool:
    found = len(_ENGLISH.findall(sample)) if sample.isascii() else 0
    return found >= max(MIN_ENGLISH_WORDS, MIN_ENGLISH_SHARE * (sample.count(" ") + 1))


@cache
def _identifier() -> "LanguageIdentifier":
    # Loading takes a second, so it is done at the first text.
    import numpy as np
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    # Not `from_model_file`: it unpacks the model into a temporary file, and fails if TMPDIR is full.
    unpacked = io.BytesIO(lzma.decompress((MODEL_DIR / MODEL_FILE).read_bytes()))
    with np.load(unpacked, allow_pickle=False) as model:
        return LanguageIdentifier(
            model["ptc"],
            model["pc"],
            model["classes"].tolist(),
            _whole_numbers(model["nextmove"]),
            model["out_feat"].tolist(),
            norm_probs=True,
            tk_row=_whole_numbers(model["nextmove_row"]),
        )


def _whole_numbers(values: "NDArray[np.unsignedinteger]") -> "array[int]":
    """Return the numbers as an `array`, which the identifier reads faster, one number for each byte of a text."""
    numbers = array(values.dtype.char)
    numbers.frombytes(values.data.cast("B"))
    return numbers
