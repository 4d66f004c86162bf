"""Warnings on texts that the encoder cannot read. No probability is given for them; the order of hits stays."""

from collections.abc import Collection

from similarity.preparation.language import UNDECIDED, is_readable


def language_warning(what: str, text: str, language: str, languages: Collection[str]) -> str | None:
    """Return a warning if an encoder of `languages` cannot read `text`; None if it can.

    `what`: "description" or "text". `language`: of `text`, as `detect_language` returns it.
    """
    if is_readable(text, language, languages):
        return None
    named = "" if language in {"en", UNDECIDED} else f" ({language!r})"
    if set(languages) == {"en"}:
        found = f"is not in English{named}, the only language that the encoder reads"
        advice = "in English, or re-embed the index with an encoder that reads this language"
    else:
        found = f"is in a language{named} that the encoder does not read; it reads {', '.join(languages)}"
        advice = "in one of these languages"
    return (
        f"The {what} {found}: its cosines mean little. No probability is given for it. Describe the company {advice}."
    )
