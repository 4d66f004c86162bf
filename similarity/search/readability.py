"""Warnings on texts that the encoder cannot read. No probability is given for them; the order of hits stays."""

from similarity.preparation.language import READ_LANGUAGES, is_readable


def language_warning(what: str, text: str, language: str) -> str | None:
    """Return a warning if the encoder cannot read `text`; None if it can.

    `what`: "description" or "text". `language`: its language as `detect_language` returns it.
    """
    if is_readable(text, language):
        return None
    named = "" if language in READ_LANGUAGES else f" ({language!r})"
    return (
        f"The {what} is not in English{named}, the only language that the encoder reads: its cosines mean little. No "
        "probability is given for it."
    )
