"""Text preparation: the text that the encoder reads for a company.

Names and places mislead an untrained encoder. On the labelled development pairs, masking the company's own names
and dropping sentences about its origin raises nDCG@10 from .51 to .78. `python -m training.evaluate` prints both
figures for any bundle; the card of the shipped bundle gives its own.
"""

import hashlib
import re
from dataclasses import dataclass

from similarity.company import Company
from similarity.preparation.masking import MASK, mask_names
from similarity.preparation.origin_languages import drop_other_origin_sentences
from similarity.preparation.sentences import drop_origin_sentences, drop_places, drop_tickers
from similarity.preparation.words import has_content

TEXT_REVISIONS = (1, 2)
"""1: sentences on the origin of a company are dropped in English. 2: also in six other languages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSettings:
    """Settings of the text preparation; part of a bundle's `encoder_id`.

    `mask_names`: replace the company's own names by "The company".
    `drop_origin_sentences`: drop ticker symbols, and sentences on head office, founding, renaming and listing.
    `drop_places`: also drop place phrases ("in China", "across Europe"); off, because geography matters to some users.
    `revision`: the revision of these rules, one of TEXT_REVISIONS. A change of rules that changes any text gets a new
    revision, so that one generation never holds vectors of old and new texts.
    """

    mask_names: bool = True
    drop_origin_sentences: bool = True
    drop_places: bool = False
    revision: int = 1


DEFAULT_SETTINGS = TextSettings(revision=2)


def embedding_text(company: Company, settings: TextSettings = DEFAULT_SETTINGS) -> str:
    """Return the text that is encoded for a company; the text is never empty.

    If the preparation would leave no words (a profile that only says where a company was founded), the description is
    returned unprepared.
    """
    text = _prepared(company, settings)
    return text if _says_something(text) else " ".join(company.description.split())


def text_to_rank_by(company: Company, settings: TextSettings = DEFAULT_SETTINGS) -> str:
    """Return `embedding_text`, or an empty text if the prepared text has too few content words to rank by."""
    text = _prepared(company, settings)
    return text if has_content(text) else ""


def text_hash(text: str) -> str:
    """Return 32 hexadecimal digits of SHA-256: a stored vector with an equal hash can be reused."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


NO_TEXT = text_hash("")
"""The `text_hash` of a company that has no vector, because its description has too few content words."""

CHARACTERS_PREPARED = 10_000
"""How many characters of a description are prepared. An encoder reads about 2,500 of them (512 tokens), and preparing
60,000 takes as long as encoding."""


def beginning_of(description: str) -> str:
    """Return the first CHARACTERS_PREPARED characters. A run of blanks counts as one character, and is kept."""
    [beginning] = re.findall(rf"^(?:\s++|\S){{,{CHARACTERS_PREPARED}}}", description)
    return str(beginning)


def _prepared(company: Company, settings: TextSettings) -> str:
    """Return the prepared beginning of the description or, if that has too few content words, the prepared whole.

    Blanks are kept, so the beginning is prepared as it would be within the whole. Unless nearly all of the beginning is
    dropped, the encoder reads no further, so the cut changes no vector and needs no new `TextSettings.revision`.
    """
    description = company.description
    if len(description) > CHARACTERS_PREPARED:
        text = _prepared_part(beginning_of(description), company, settings)
        if has_content(text):
            return text
    return _prepared_part(description, company, settings)


def _prepared_part(text: str, company: Company, settings: TextSettings) -> str:
    if settings.drop_origin_sentences:
        text = drop_tickers(text)
    if settings.mask_names:
        text = mask_names(text, (company.name, *company.aliases))
    if settings.drop_origin_sentences:
        text = drop_origin_sentences(text)
        if settings.revision > 1:
            text = drop_other_origin_sentences(text)
    if settings.drop_places:
        text = drop_places(text)
    return " ".join(text.split())


def _says_something(text: str) -> bool:
    return re.search(r"\w", text.replace(MASK, "")) is not None
