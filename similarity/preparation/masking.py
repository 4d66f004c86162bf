"""Replaces the names of a company in its description by "The company".

Company names bias the vectors: two companies whose names begin with "Wuhan" get a high cosine even if their businesses
differ. Each occurrence of a name is replaced, with or without a common legal form. Names that are also
ordinary words are replaced only under stricter rules (see `MaskingRule`): the text of a company called Gap may contain
the word "gap".
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import TypeAlias

MASK = "The company"
MASKED_CHARACTERS = 10_000
# The time of the search grows with the product of these two limits; it is at most 0.1 s. The names that descriptions of
# real companies contain have at most 200 characters in all.
MASKED_NAME_CHARACTERS = 1_000

# Legal forms at the end of a name ("Ltd.", "S.p.A.", "Tbk"), in lower case and without dots. A change here changes
# embeddings; `preparation.legal_forms` has more forms, which are used for erasures only.
LEGAL_FORMS = frozenset(
    """ab ad ag aktiengesellschaft akcyjna aktiebolag anonim anonyme aps as asa berhad bhd bsc bv ca cia cjsc co company
    corp corporation cv dd doo eg ehf eood ev gmbh hf inc incorporated incorporation jsc kft kg kgaa kk ks kscp lda
    limited llc lllp llp lp ltd ltda mbh nl nv nyrt oao ojsc ooo oy oyj pao pjsc plc psc pte pty publ qpsc sa sab sae
    saoc saog sarl sas sca sdn se sicav sirketi societe société spa spolka spółka srl sro tbk ug zao zrt şirketi
    partnership""".split()
)
# Words that join or begin a legal form of several words: "de" in "S.A.B. de C.V.", "public" in "Public Company
# Limited". They are removed only directly before a legal form.
LEGAL_FORM_LINKS = frozenset({"de", "public", "joint", "stock", "and", "&", "capital", "variable"})
LEADING_WORDS = ("pt", "pjsc", "ojsc", "jsc", "cjsc", "pao", "oao", "ooo", "the")
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
MAX_GROUP_WORDS = 8
GROUP_WORDS = frozenset({"group", "holding", "holdings"})
# A name that has no other words describes a business and identifies no company; it is masked only with a legal form.
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
_CJK_LEGAL_FORM = "|".join(map(re.escape, CJK_LEGAL_FORMS))
# A legal form or "the" directly before a name; searched for in the _LEADING_FORM_WINDOW characters before the name.
_LEADING_FORM = re.compile(rf"(?<!\w)(?:{'|'.join(LEADING_WORDS)})\s+\Z", re.IGNORECASE)
_LEADING_FORM_WINDOW = 40
_BRACKETS = re.compile(r"(?<!\s)\s*[(（][^)）]*[)）]")
_SENTENCE_GOES_ON = re.compile(r"\s*[^\sA-Z]|[^\s]")
# Matches folded text (see `_fold`). Only code points below 256: with a larger one, `re.compile` is much slower.
_SEPARATOR = r"[\s,.()\-]{1,3}"
_SEPARATORS = re.compile(r"[\s,.()\-]+")
# Legal forms as they are written in texts. The case of the first letters matters, because "as" and "co" are also words.
# At most eight forms: in a text that only repeats "inc", the search for the end of each run would be quadratic.
_LEGAL_TAIL = re.compile(
    r"(?:[\s,]*(?:& )?\(?(?:"
    r"[Ii]n[Cc]|INC|Incorporated|Incorporation|C[Oo]rp|CORP|Corporation|C[Oo]|Company|Public|Partnership|"
    r"L[Tt][Dd]|ltd|Limited|LIMITED|L\.?L\.?C|LLLP|LLP|L\.?P|[Pp][Ll][Cc]|JSC|PJSC|OJSC|SAOG|Q\.?P\.?S\.?C|"
    r"AG|SE|GmbH|mbH|KG|KGaA|Aktiengesellschaft|AB|\(publ\.?\)|publ|Oyj|Oy|ASA|AS|A/S|ApS|hf|Nyrt|Zrt|s\.r\.o|a\.s|"
    r"S\.?A\.?B\.? de C\.?V|S\.?A|C\.?V|S\.?A\.?S|SARL|S\.?p\.?A|S\.?r\.?l|N\.?V|B\.?V|SCA|Soci[eé]t[eé] [Aa]nonyme|"
    r"A\.[SŞ]|[SŞ]irketi|Ltda|S\.?A\.?E|Tbk|B[Hh][Dd]|Berhad|Sdn|Pte|Pty|K\.?K)"
    rf"(?!\w)\)?\.?|\s*(?:{_CJK_LEGAL_FORM})){{1,8}}"
)


class MaskingRule(Enum):
    """The rule that decides whether a name without a legal form is replaced; a name with one always is."""

    NAME = auto()
    """Replaced unless the text has it in lower case ("gap")."""
    LOWER_CASE = auto()
    """Always replaced: the name is written in lower case ("adidas"), or its script has no case."""
    LETTER = auto()
    """A single letter: replaced only at the start of a sentence."""
    ORDINARY = auto()
    """Ordinary words only ("Energy"), or a single ideograph: never replaced."""


NameForms: TypeAlias = tuple[tuple[str, MaskingRule], ...]
"""(form of a name without its legal form, rule) pairs"""


def mask_names(text: str, names: Iterable[str]) -> str:
    """Return `text` with every occurrence of `names`, including its legal form, replaced by "The company".

    Case, accents and spacing do not matter, except that a lower-case word without a legal form is replaced only if the
    name itself is written in lower case. Longer names are replaced first. Only the first MASKED_CHARACTERS are
    searched: the encoder reads less, and the search takes long if many names resemble the text. If the names that occur
    in the text have more than MASKED_NAME_CHARACTERS, the longest are not replaced.
    """
    folded = _fold(text)
    forms = _occurring(_forms_of_names(names), folded[:MASKED_CHARACTERS])
    if not forms:
        return text
    pieces: list[str] = []
    position = 0
    for match in _pattern(forms).finditer(folded, 0, MASKED_CHARACTERS):
        start, end = match.span()
        words, rule = forms[int(match.lastindex or 1) - 1]
        leading_form = _LEADING_FORM.search(folded, max(0, start - _LEADING_FORM_WINDOW), start)
        if leading_form is not None and not _CJK.search(words):
            start = leading_form.start()
        tail = _LEGAL_TAIL.match(text, end)
        if start < position or not _is_name(rule, text, start, end, has_legal_form=tail is not None):
            continue
        end = tail.end() if tail else end
        # If the full stop of the legal form also ends the sentence ("by Acme Inc."), keep it.
        if text[end - 1] == "." and _SENTENCE_GOES_ON.match(text, end) is None:
            end -= 1
        pieces += [text[position:start], MASK]
        position = end
    return "".join([*pieces, text[position:]])


def forms_of_name(name: str) -> dict[str, bool]:
    """Return a name and its forms without legal form, brackets or "Group"; True: the form alone identifies the company.

    A single letter, a single ideograph or ordinary words ("Energy") do not identify a company.
    """
    forms = [(name, _rule_of(_TOKEN.findall(name))), *_forms_without_legal_form(name)]
    return {form: rule not in {MaskingRule.LETTER, MaskingRule.ORDINARY} for form, rule in forms}


def _is_name(rule: MaskingRule, text: str, start: int, end: int, *, has_legal_form: bool) -> bool:
    if has_legal_form or rule is MaskingRule.LOWER_CASE:
        return True
    if rule is MaskingRule.ORDINARY:
        return False
    if rule is MaskingRule.LETTER:
        return start == 0 or text[:start].rstrip().endswith((".", "!", "?"))
    return not text[start:end].islower()


def _pattern(forms: NameForms) -> re.Pattern[str]:
    return re.compile("|".join(f"({_alternative(words)})" for words, _ in forms), re.IGNORECASE)


def _alternative(words: str) -> str:
    body = _SEPARATOR.join(re.escape(token) for token in _TOKEN.findall(_fold(words)))
    body = body.replace(_SEPARATOR + r"\.", r"\.")
    if _CJK.search(words):
        return rf"(?:{_CJK_LEGAL_FORM})?{body}"
    closing = r"\)?" if _SEPARATOR in body else ""
    return rf"(?<!\w){body}(?!\w){closing}"


def _forms_of_names(names: Iterable[str]) -> NameForms:
    """Return the forms of all names, longest first."""
    # Skip names that fold to white space, such as a lone accent: their pattern would match everywhere.
    forms = {form for name in names for form in _forms_without_legal_form(name) if _TOKEN.search(_fold(form[0]))}
    return tuple(sorted(forms, key=lambda form: (-len(form[0]), form[0])))


def _occurring(forms: NameForms, folded: str) -> NameForms:
    """Return the forms whose letters are in the folded text, in order; if they are too long in all, the shortest."""
    letters, left = _letters(folded), MASKED_NAME_CHARACTERS
    kept = []
    for words, rule in reversed(forms):
        if _letters(_fold(words)) in letters:
            left -= len(words)
            if left < 0:
                break
            kept.append((words, rule))
    return tuple(reversed(kept))


def _letters(folded: str) -> str:
    """Return a text without separators and case. Like a regular expression, it takes a dotless i for an i."""
    return _SEPARATORS.sub("", folded).casefold().replace("ı", "i")


def _forms_without_legal_form(name: str) -> Iterator[tuple[str, MaskingRule]]:
    """Yield the forms of one name without legal form: in full, without brackets, without "Group" or "Holdings"."""
    for form in dict.fromkeys((name, _without_brackets(name))):
        tokens = without_legal_form(_TOKEN.findall(_without_cjk_form(form)))
        for _ in range(min(len(tokens), MAX_GROUP_WORDS + 1)):
            yield " ".join(tokens), _rule_of(tokens)
            if tokens[-1].lower() not in GROUP_WORDS and not tokens[-1].startswith("."):
                break
            tokens = tokens[:-1]


def _without_brackets(name: str) -> str:
    # A search for closing brackets after the last one would be quadratic.
    end = max(name.rfind(")"), name.rfind("）")) + 1
    return _BRACKETS.sub("", name[:end]) + name[end:]


def _rule_of(tokens: list[str]) -> MaskingRule:
    words = " ".join(tokens)
    if all(_normalised(token) in ORDINARY_WORDS for token in tokens):
        return MaskingRule.ORDINARY
    if _CJK.search(words):
        return MaskingRule.ORDINARY if len(words) == 1 else MaskingRule.LOWER_CASE
    if len(words) == 1:
        return MaskingRule.LETTER
    return MaskingRule.LOWER_CASE if words.islower() else MaskingRule.NAME


def _without_cjk_form(name: str) -> str:
    for form in CJK_LEGAL_FORMS:
        name = name.replace(form, " ")
    return name.strip() or name


def without_legal_form(tokens: list[str]) -> list[str]:
    """Return the words of a name without the legal form at its end or beginning; at least one word remains."""
    words = list(tokens)
    while len(words) > 1 and _normalised(words[-1]) in LEGAL_FORMS:
        words.pop()
        while len(words) > 1 and _normalised(words[-1]) in LEGAL_FORM_LINKS:
            words.pop()
    while len(words) > 1 and _normalised(words[0]) in LEADING_WORDS:
        words.pop(0)
    return words


def _normalised(token: str) -> str:
    return token.lower().replace(".", "").replace("/", "")


def _fold(text: str) -> str:
    """Replace accented letters by base letters, and full-width brackets and en dashes by ASCII ones.

    The result has the same length, so positions in it are valid in the original text.
    """
    if text.isascii():
        return text
    folded = {ord(character): unicodedata.normalize("NFKD", character)[0] for character in set(text)}
    return text.translate(folded).replace("–", "-")
