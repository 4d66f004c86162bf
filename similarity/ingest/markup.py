"""Remove HTML from texts: feeds and exports of websites often leave it in."""

import html
import re

# A tag ends before the next "<", so that a text full of "<" is searched in linear time.
TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)\b[^<>]*>|<!--[^<>]*-->")
HIDDEN = frozenset({"script", "style"})
INLINE = frozenset({"a", "abbr", "b", "em", "font", "i", "mark", "small", "span", "strong", "sub", "sup", "u"})


def without_markup(text: str) -> str:
    """Return the visible text: without tags, scripts and styles, and with entities decoded.

    >>> without_markup("<p>Makes <b>nuts</b> &amp; bolts.</p><script>x()</script>")
    'Makes nuts & bolts.'
    """
    if "<" not in text:
        return _unescaped(text) if "&" in text else text
    parts: list[str] = []
    position, hidden, hidden_from = 0, "", 0
    for tag in TAG.finditer(text):
        if not hidden:
            parts.append(text[position : tag.start()])
        position = tag.end()
        name = (tag["name"] or "").lower()
        if name in HIDDEN:
            hidden, hidden_from = ("", 0) if tag["close"] else (name, position)
        elif name not in INLINE:
            parts.append(" ")
    parts.append(text[hidden_from if hidden else position :])  # what is not closed is not hidden
    return " ".join(_unescaped("".join(parts)).split()) if parts and position else _unescaped(text)


def _unescaped(text: str) -> str:
    """Return the text with entities decoded; unchanged if one is a number that is too long for Python."""
    try:
        return html.unescape(text)
    except ValueError:
        return text
