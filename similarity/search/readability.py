"""Warnings on texts that the encoder cannot read. No probability is given for them; the order of hits stays."""

from collections.abc import Collection

from similarity.preparation.language import UNDECIDED, is_readable


def language_warning(what: str, text: str, language: str, languages: Collection[str]) -> str | None:
    """Return a warning if an encoder of `languages` cannot read `text`; None if it can.

    `what`: "description" or "text". `language`: its language as `detect_language` returns it.
    """
    if is_readable(text, language, languages):
        return None
    if set(languages) == {"en"}:
        named = "" if language in {"en", UNDECIDED} else f" ({language!r})"
        return (
            f"The {what} is not in English{named}, the only language that the encoder reads: its cosines mean little. "
            "No probability is given for it."
        )
    return (
        f"The {what} is in a language ({language!r}) that the encoder does not read: its cosines mean little. No "
        f"probability is given for it. It reads {', '.join(languages)}."
    )
