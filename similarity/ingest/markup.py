"""Remove HTML from texts: feeds and exports of websites often leave it in."""

import html
import re

# A tag ends before the next "<", so that a text full of "<" is searched in linear time.
TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9:]*)(?=[\s/>])[^<>]*>|<!--[^<>]*-->")
# Elements of HTML (https://html.spec.whatwg.org/multipage/indices.html), also obsolete ones, and elements of vector
# graphics and Microsoft Word. Any other "<word ...>" is text: "profit <EUR 5m and sales >EUR 2m", "List<String>".
ELEMENTS = frozenset(
    """
    a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br
    button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed
    fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe
    image img input ins isindex kbd keygen label legend li link listing main map mark marquee math menu menuitem meta
    meter multicol nav nobr noembed noframes noscript object ol optgroup option output p param picture plaintext pre
    progress q rb rp rt rtc ruby s samp script search section select slot small source spacer span strike strong style
    sub summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr xmp
    circle defs ellipse g line path polygon polyline rect use o:p w:wrap v:shape st1:place st1:city st1:country-region
    """.split()
)
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
        name = (tag["name"] or "").lower()
        if name and name not in ELEMENTS:
            continue
        if not hidden:
            parts.append(text[position : tag.start()])
        position = tag.end()
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
