"""Takes a company's own names out of its description.

The encoder is fooled by names: it ranks two companies called Wuhan-something as neighbours. Every
own name therefore becomes "The company", with or without its legal form, whatever the legal form's
language. Short and ordinary words are masked with care: a company called Gap must not lose the
word "gap".
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import TypeAlias

MASK = "The company"

# Legal forms, without dots and in lower case, that may end a name ("Ltd.", "S.p.A.", "Tbk"). A change here changes
# embeddings; the forms that only an erasure knows are in `preparation.legal_forms`.
LEGAL_FORMS = frozenset(
    """ab ad ag aktiengesellschaft akcyjna aktiebolag anonim anonyme aps as asa berhad bhd bsc bv ca cia cjsc co company
    corp corporation cv dd doo eg ehf eood ev gmbh hf inc incorporated incorporation jsc kft kg kgaa kk ks kscp lda
    limited llc lllp llp lp ltd ltda mbh nl nv nyrt oao ojsc ooo oy oyj pao pjsc plc psc pte pty publ qpsc sa sab sae
    saoc saog sarl sas sca sdn se sicav sirketi societe société spa spolka spółka srl sro tbk ug zao zrt şirketi
    partnership""".split()
)
# These end a legal form of several words: "S.A.B. de C.V.", "Public Company Limited".
LEGAL_FORM_LINKS = frozenset({"de", "public", "joint", "stock", "and", "&", "capital", "variable"})
LEADING_LEGAL_FORMS = ("pt", "pjsc", "ojsc", "jsc", "cjsc", "pao", "oao", "ooo", "the")
CJK_LEGAL_FORMS = (
    "股份有限公司",
    "有限责任公司",
    "有限公司",
    "株式会社",
    "合同会社",
    "有限会社",
    "주식회사",
    "(주)",
    "㈜",
)
GROUP_WORDS = frozenset({"group", "holding", "holdings"})
# Alone, these say what a company does, not which company it is; they are masked only with a legal form.
ORDINARY_WORDS = frozenset(
    """bank banking beauty beer biotech capital cement chemical chemicals coal coffee construction credit data digital
    education electric energy engineering entertainment finance financial food foods fuel gas global gold health
    healthcare holding holdings hotel hotels industrial industries industry insurance international investment
    investments leasing logistics marine media medical metal metals mining mobile motor motors national oil paper
    petroleum pharma pharmaceutical pharmaceuticals plastics power properties property railway research resources retail
    robotics science security services shipping silver software solar solutions steel sugar systems tea technologies
    technology telecom textile textiles tobacco trading transport travel trust uranium utilities video water wind wine
    wood the company""".split()
)

_TOKEN = re.compile(r"\.(?:com|io|ai|co|net|org)\b|(?:(?!\.(?:com|io|ai|co|net|org)\b)[^\s,()（）\-–])+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CJK_HEADING = "|".join(map(re.escape, CJK_LEGAL_FORMS))
# A legal form in front of a name; searched for in what precedes it.
_HEADING = re.compile(rf"(?<!\w)(?:{'|'.join(LEADING_LEGAL_FORMS)})\s+\Z", re.IGNORECASE)
_HEADING_CHARACTERS = 40
_BRACKETS = re.compile(r"\s*[(（][^)）]*[)）]")
_SENTENCE_GOES_ON = re.compile(r"\s*[^\sA-Z]|[^\s]")
# Of a folded text. All below 256: one character above makes Python compile the class much more slowly.
_SEPARATOR = r"[\s,.()\-]{1,3}"
# Legal forms as texts write them; the first letters' case matters, for "as" and "co" are words too.
_LEGAL_TAIL = re.compile(
    r"(?:[\s,]*(?:& )?\(?(?:"
    r"[Ii]n[Cc]|INC|Incorporated|Incorporation|C[Oo]rp|CORP|Corporation|C[Oo]|Company|Public|Partnership|"
    r"L[Tt][Dd]|ltd|Limited|LIMITED|L\.?L\.?C|LLLP|LLP|L\.?P|[Pp][Ll][Cc]|JSC|PJSC|OJSC|SAOG|Q\.?P\.?S\.?C|"
    r"AG|SE|GmbH|mbH|KG|KGaA|Aktiengesellschaft|AB|\(publ\.?\)|publ|Oyj|Oy|ASA|AS|A/S|ApS|hf|Nyrt|Zrt|s\.r\.o|a\.s|"
    r"S\.?A\.?B\.? de C\.?V|S\.?A|C\.?V|S\.?A\.?S|SARL|S\.?p\.?A|S\.?r\.?l|N\.?V|B\.?V|SCA|Soci[eé]t[eé] [Aa]nonyme|"
    r"A\.[SŞ]|[SŞ]irketi|Ltda|S\.?A\.?E|Tbk|B[Hh][Dd]|Berhad|Sdn|Pte|Pty|K\.?K)"
    rf"(?!\w)\)?\.?|\s*(?:{_CJK_HEADING}))+"
)


class Kind(Enum):
    """How strictly an occurrence of a name is judged before it is masked."""

    NAME = auto()
    """Masked unless the text has it all in lower case ("gap")."""
    LOWER_CASE = auto()
    """The name itself is in lower case ("adidas"), or its script has no case."""
    LETTER = auto()
    """One letter: only where a sentence starts, or with a legal form."""
    ORDINARY = auto()
    """Ordinary words only ("Energy"): only with a legal form."""


Cores: TypeAlias = tuple[tuple[str, Kind], ...]


def mask_names(text: str, names: Iterable[str]) -> str:
    """`text` with every occurrence of `names` replaced by "The company", legal forms included.

    Names are found without regard to case, accents and spacing, but an all lower-case word is taken
    for a name only if the name itself is written so. Longer names are replaced first.
    """
    cores = _cores_of(names)
    if not cores:
        return text
    folded = _fold(text)
    pieces: list[str] = []
    position = 0
    for match in _pattern(cores).finditer(folded):
        start, end = match.span()
        words, kind = cores[int(match.lastindex or 1) - 1]
        heading = _HEADING.search(folded, max(0, start - _HEADING_CHARACTERS), start)
        if heading is not None and not _CJK.search(words):
            start = heading.start()
        tail = _LEGAL_TAIL.match(text, end)
        if start < position or not _is_name(kind, text, start, end, has_legal_form=tail is not None):
            continue
        end = tail.end() if tail else end
        # A full stop that ends the sentence as well as the legal form stays.
        if text[end - 1] == "." and _SENTENCE_GOES_ON.match(text, end) is None:
            end -= 1
        pieces += [text[position:start], MASK]
        position = end
    return "".join([*pieces, text[position:]])


def forms_of_name(name: str) -> dict[str, bool]:
    """The name, and its forms without legal form, brackets or "Group"; True for those that tell the company alone.

    One letter, one ideograph or ordinary words ("Energy") do not: texts hold them for other reasons.
    """
    forms = [(name, _kind(_TOKEN.findall(name))), *_cores(name)]
    return {form: kind not in {Kind.LETTER, Kind.ORDINARY} for form, kind in forms}


def _is_name(kind: Kind, text: str, start: int, end: int, *, has_legal_form: bool) -> bool:
    if has_legal_form or kind is Kind.LOWER_CASE:
        return True
    if kind is Kind.ORDINARY:
        return False
    if kind is Kind.LETTER:
        return start == 0 or text[:start].rstrip().endswith((".", "!", "?"))
    return not text[start:end].islower()


def _pattern(cores: Cores) -> re.Pattern[str]:
    return re.compile("|".join(f"({_alternative(words)})" for words, _ in cores), re.IGNORECASE)


def _alternative(words: str) -> str:
    body = _SEPARATOR.join(re.escape(token) for token in _TOKEN.findall(_fold(words)))
    body = body.replace(_SEPARATOR + r"\.", r"\.")
    if _CJK.search(words):
        return rf"(?:{_CJK_HEADING})?{body}"
    closing = r"\)?" if _SEPARATOR in body else ""
    return rf"(?<!\w){body}(?!\w){closing}"


def _cores_of(names: Iterable[str]) -> Cores:
    """The forms of all names that a text may use, longest first."""
    # A name may be nothing but an accent, of which folding leaves a space: such a name would be found everywhere.
    cores = {core for name in names for core in _cores(name) if _TOKEN.search(_fold(core[0]))}
    return tuple(sorted(cores, key=lambda core: (-len(core[0]), core[0])))


def _cores(name: str) -> Iterator[tuple[str, Kind]]:
    """The forms of one name without its legal form: all of it, without brackets, without "Group"."""
    for form in dict.fromkeys((name, _BRACKETS.sub("", name))):
        tokens = without_legal_form(_TOKEN.findall(_without_cjk_form(form)))
        while tokens:
            yield " ".join(tokens), _kind(tokens)
            if tokens[-1].lower() not in GROUP_WORDS and not tokens[-1].startswith("."):
                break
            tokens = tokens[:-1]


def _kind(tokens: list[str]) -> Kind:
    words = " ".join(tokens)
    if all(_plain(token) in ORDINARY_WORDS for token in tokens):
        return Kind.ORDINARY
    if _CJK.search(words):
        return Kind.ORDINARY if len(words) == 1 else Kind.LOWER_CASE
    if len(words) == 1:
        return Kind.LETTER
    return Kind.LOWER_CASE if words.islower() else Kind.NAME


def _without_cjk_form(name: str) -> str:
    for form in CJK_LEGAL_FORMS:
        name = name.replace(form, " ")
    return name.strip() or name


def without_legal_form(tokens: list[str]) -> list[str]:
    """The words of a name without the legal form at its end or its beginning; at least one stays."""
    kept = list(tokens)
    while len(kept) > 1 and _plain(kept[-1]) in LEGAL_FORMS:
        kept.pop()
        while len(kept) > 1 and _plain(kept[-1]) in LEGAL_FORM_LINKS:
            kept.pop()
    while len(kept) > 1 and _plain(kept[0]) in LEADING_LEGAL_FORMS:
        kept.pop(0)
    return kept


def _plain(token: str) -> str:
    return token.lower().replace(".", "").replace("/", "")


def _fold(text: str) -> str:
    """Accents removed and dashes and brackets made plain, one character for one: positions still fit the original."""
    if text.isascii():
        return text
    folded = (unicodedata.normalize("NFKD", character)[0] for character in text)
    return "".join(folded).replace("–", "-")
