"""Removes sentences on founding and head office in German, French, Spanish, Swedish, Japanese and Chinese.

`preparation.sentences` removes English ones. Here a sentence is removed only if it says nothing else: every word is on
founding or head office, a filler, a number or a place. So "gegründet 1998 in Ulm" is removed, and "gegründet 1998 als
Hersteller von Pumpen" is kept.
"""

import re

# A sentence on the origin has at least one of these words, so a text without them is returned at once.
_ORIGIN = {
    "de": "gegründet|gegründete|hauptsitz|firmensitz|sitz|stammsitz|ansässig|firmiert|firmierte|hieß|umbenannt",
    "fr": "fondé|fondée|créé|créée|constitué|constituée|siège|établi|établie|basé|basée|rebaptisé|rebaptisée|nommait",
    "es": "fundó|fundada|fundado|constituyó|constituida|creó|creada|sede|domicilio|llamaba|denominaba",
    "sv": "grundades|grundat|bildades|startades|huvudkontor|huvudkontoret|säte|hette|hemvist",
}
_FILLERS = {
    "de": """das die der den dem ein eine es sie wurde wird ist hat ihr ihren ihre sein seinen unternehmen gesellschaft
        firma konzern gruppe im in am bei nahe und mit befindet liegt sich von jahr jahre früher zuvor ursprünglich
        unter namen dem seit heute januar februar märz april mai juni juli august september oktober november
        dezember""",
    "fr": """le la les l' un une elle il est a été se s' trouve situé située son sa entreprise société groupe compagnie
        en à au aux dans de du des d' et depuis sous nom précédemment auparavant autrefois social janvier février mars
        avril mai juin juillet août septembre octobre novembre décembre""",
    "es": """el la los las un una ella es está fue se su sus tiene empresa compañía sociedad grupo firma en de del y
        desde con central social ubicada situada encuentra anteriormente antes nombre bajo año enero febrero marzo abril
        mayo junio julio agosto septiembre octubre noviembre diciembre""",
    "sv": """den det de en ett är har hade sitt sin sina bolaget företaget koncernen gruppen i på och av med år ligger
        finns tidigare under namnet sedan ursprungligen januari februari mars april maj juni juli augusti september
        oktober november december""",
}
# All German nouns begin with a capital, so such a word is a place only after one of these, or after another place.
_BEFORE_PLACE = frozenset({"in", "bei", "nahe", "im"})
_EUROPEAN = {
    language: (frozenset(words.split("|")), frozenset(_FILLERS[language].split()))
    for language, words in _ORIGIN.items()
}
_CJK_PLACE = r"[^，、,。]{1,24}"
_CJK_NAME = r"[^，、,。]{1,60}"
_CJK_SUBJECT = r"(?:The company|当社|同社|弊社|会社|公司|本公司|集团|我们|企业)?(?:は|が|の)?\s*"
_CJK_DATE = r"(?:[12]\d{3}年)?(?:\d{1,2}月)?(?:\d{1,2}日)?"
_CJK_CLAUSE = re.compile(
    rf"{_CJK_SUBJECT}(?:"
    rf"{_CJK_DATE}(?:に|、)?(?:{_CJK_PLACE}で)?(?:設立|創業|創立)(?:され|し|した|されました|しました|されており|されて)?"
    rf"|(?:本社|本店|本拠|本拠地)(?:は|を|所在地は)?{_CJK_PLACE}"
    rf"|旧(?:社名|称)は?{_CJK_NAME}"
    rf"|(?:成立|创立|创办|创建|设立|注册成立)于{_CJK_PLACE}"
    rf"|(?:其)?总部(?:位于|设于|设在|在){_CJK_PLACE}"
    rf"|(?:原名|前身为|曾用名){_CJK_NAME}"
    rf"|于?{_CJK_DATE}(?:更为现名|更名为{_CJK_NAME}|改为现名)"
    r")\s*"
)
_TRIGGER = re.compile(
    rf"\b(?:{'|'.join(_ORIGIN.values())})\b|設立|創業|創立|本社|本店|本拠|成立|创立|创办|创建|设立|总部", re.IGNORECASE
)
_TRIGGER_WORDS = frozenset("|".join(_ORIGIN.values()).split("|"))
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])\s*")
_WORD = re.compile(r"[ldsLDS]['’]|[^\W_][\w.'’\-]*")
_ENDINGS = "。.!?！？"


def drop_other_origin_sentences(text: str) -> str:
    """Return `text` without sentences that are only about founding or head office, in six languages.

    The company's names must be masked already.

    >>> drop_other_origin_sentences("The company braut Bier. Der Hauptsitz befindet sich in Ulm, Deutschland.")
    'The company braut Bier.'
    """
    # Most texts are English. In ASCII, comparing whole words gives the result of _TRIGGER, five times as fast.
    if text.isascii() and _TRIGGER_WORDS.isdisjoint(re.findall(r"\w+", text.lower())):
        return text
    if _TRIGGER.search(text) is None:
        return text
    sentences = _SENTENCE_END.split(text)
    kept = [sentence for sentence in sentences if not _tells_origin_only(sentence)]
    if len(kept) == len(sentences):
        return text
    return "".join(f"{each} " if each.endswith((".", "!", "?")) else each for each in kept).strip()


def _tells_origin_only(sentence: str) -> bool:
    if _TRIGGER.search(sentence) is None:
        return False
    clauses = re.split("[，、,]", sentence.strip().rstrip(_ENDINGS))
    if all(_CJK_CLAUSE.fullmatch(clause.strip()) or _is_latin_place(clause) for clause in clauses):
        return True
    words = _WORD.findall(sentence.replace("The company", " "))
    return any(_only_of(words, language) for language in _EUROPEAN)


def _is_latin_place(clause: str) -> bool:
    # White space between words is required, and a word is not divided: a run of n capitals would have n^4 divisions.
    return re.fullmatch(r"\s*+[A-Z][\w.'’\-]*+(?:\s++[A-Z][\w.'’\-]*+){0,3}\s*", clause) is not None


def _only_of(words: list[str], language: str) -> bool:
    """Return whether each word is an origin word, a filler, a number or a place, and at least one an origin word."""
    origin, fillers = _EUROPEAN[language]
    found, after_place = False, False
    for position, word in enumerate(words):
        plain = word.lower().rstrip(".").replace("’", "'")
        is_filler = plain in fillers or plain[:1].isdigit()
        if plain in origin:
            found = True
        elif not is_filler and (position == 0 or not word[0].isupper() or (language == "de" and not after_place)):
            return False
        after_place = plain in _BEFORE_PLACE or (after_place and not is_filler and plain not in origin)
    return found
