"""Removes legal forms of all countries from company names.

The tables follow the list of entity legal forms of ISO 20275. A form is recognised by its letters: case, accents,
spaces and punctuation do not matter ("S.à r.l.", "SARL"). A form that could also be another part of a name ("PC") is
removed only if it is written as its table requires, and if the remaining words are not all common words.

An erasure searches for names without legal forms (`similarity.index.name_hashes`). The forms of `masking` are a subset
of these tables. They do not grow with these tables, because stored embeddings depend on them.
"""

import re
from collections.abc import Iterable, Sequence

from similarity.preparation.masking import CJK_LEGAL_FORMS, LEADING_WORDS, LEGAL_FORMS, ORDINARY_WORDS
from similarity.preparation.words import WORD, unaccented, words_of

# Before or after a name.
EITHER_SIDE = """
    Aktiebolag; Aktieselskab; Aksjeselskap; Anpartsselskab; EURL; GIE; JKP; LLC; LLP; Ltd; Osakeyhtiö; Oy;
    Oyj; SARL; SASU; TOV; UAB; VšĮ; MChJ; CTCP; Kabushiki Kaisha; Godo Kaisha; Yugen Kaisha;
    Limited Liability Company; Joint Stock Company; Open Joint Stock Company; Closed Joint Stock Company;
    Public Joint Stock Company; Private Joint Stock Company; Société anonyme;
    Société à responsabilité limitée; Société par actions simplifiée; Société en nom collectif;
    ООО; ОАО; ЗАО; ПАО; НАО; ОДО; ТОО; ТОВ; ТДВ; ПАТ; ПрАТ; ЗАТ; ФОП; ЖШС; ЖШҚ; ААТ; ТАА; МЧЖ; ДОО; ДООЕЛ;
    ЕООД; ООД; ЕАД; Общество с ограниченной ответственностью; Акционерное общество;
    Публичное акционерное общество; Закрытое акционерное общество; Открытое акционерное общество;
    Непубличное акционерное общество; Товарищество с ограниченной ответственностью;
    Индивидуальный предприниматель; Приватне підприємство; Товариство з обмеженою відповідальністю;
    Акціонерне товариство; Публічне акціонерне товариство; Приватне акціонерне товариство; სს; შპს; ՍՊԸ; ՓԲԸ; ԲԲԸ;
    سهامی خاص; سهامی عام; مسئولیت محدود;
    集团; 集團; 控股; グループ; ホールディングス; 그룹; 홀딩스;
    有限責任公司; 无限公司; 無限公司; 合名会社; 合資会社; 株式會社; 有限會社; 一般社団法人; 一般財団法人;
    유한회사; 유한책임회사; 합자회사; 합명회사
"""
LEADING = """
    Aktiebolaget; Aktieselskabet; Aksjeselskapet; Coöperatie; Coöperatieve; Coöperatief; Perusahaan Perseroan;
    Công ty Cổ phần; Công ty CP; Công ty TNHH; Công ty TNHH MTV; Công ty TNHH Một thành viên;
    Công ty Hợp danh; Công ty Trách nhiệm hữu hạn; บริษัท; ห้างหุ้นส่วนจำกัด; บมจ; บจก; หจก; شركة; شرکت; مؤسسة
"""
TRAILING = """
    G.K.;
    S.A.A.; S.A.C.I.; S.A.C.I.F.; S.A.I.C.; S.A.P.I.; S.A.P.I. de C.V.; S.A.B. de C.V.; S.A.P.I.B. de C.V.;
    S.A. de C.V.; S.A.S. de C.V.; S. de R.L.; S. de R.L. de C.V.; S.C. de R.L. de C.V.; S. de R.L. MI;
    S. en C.; S. en C. de C.V.; S. en C. por A.; S.C.L.; S.P.R. de R.L.; S.P.R. de R.L. de C.V.; S.R.C.;
    SOFOM E.N.R.; SOFOM E.R.; S.R.L. de C.V.; S.L.; S.L.L.; S.L.N.E.; S.L.P.; S.L.U.; S.Coop.; S.Coop.P.;
    Sdad. Coop.; S.Com.; S.C.C.L.; S.G.R.; Sociedad Anónima; Sociedad Anónima Cerrada;
    Sociedad Anónima de Capital Variable; Sociedad Anónima Unipersonal; Sociedad Limitada;
    Sociedad Limitada Unipersonal; Sociedad de Responsabilidad Limitada; Sociedad por Acciones;
    Sociedad por Acciones Simplificada; Sociedad Civil; Sociedad Cooperativa; y Cía; y Compañía; EIRL; EIRELI;
    EPP; Limitada;
    Sociedade Anónima; Sociedade Limitada; Unipessoal; Sociedade Unipessoal; SGPS; CRL; Ltda. ME; EIRELI ME;
    SNC; SCS; SCSp; SCRL; SCOP; SCP; SELARL; SELAS; SECS; SUARL; SARL AU; SARLU; SENCRL; SEPCAV; SICAF;
    S.à r.l.-S; SPRL; SPRLU; SCRI; ASBL; AISBL; et Cie; Cie; Ltée; limitée; incorporée; BVBA; CVBA; CVOA; VZW;
    VOF; GCV; Comm.V; Comm.VA; EBVBA; CVA; SComm; Société en commandite; besloten vennootschap;
    naamloze vennootschap;
    S.r.l.s.; S.c.a.r.l.; S.c.p.a.; S.p.A. S.B.; S.r.l. S.B.; Soc. Coop.; Soc. Coop. a r.l.; Soc. Coop. p.A.;
    Società Cooperativa; Società per Azioni; Società a responsabilità limitata; a r.l.; Società Benefit;
    Unipersonale; a socio unico; Sagl;
    gGmbH; i.L.; GesmbH; Gesellschaft mbH; Gesellschaft mit beschränkter Haftung; UG haftungsbeschränkt; OHG;
    KEG; OEG; GbR; GesbR; e.K.; e.Kfm.; e.Kfr.; PartG; PartG mbB; mbB; Kommanditgesellschaft; und Co; u. Co; und Cie;
    Genossenschaft; eingetragene Genossenschaft; VVaG; Anstalt; InvAG; Stiftung & Co. KG; Stiftung & Co. KGaA;
    REIT-AG;
    abp; Handelsbolag; Kommanditbolag; Ekonomisk Förening; Ek. för.; A.m.b.A.; F.m.b.A.; S.m.b.A.; IVS; ENK;
    NUF; Kommanditselskab; Interessentskab; Julkinen osakeyhtiö; Tmi; Osk; Ky; ohf; slf; slhf; OÜ; MTÜ; UÜ;
    Osaühing; Aktsiaselts; Akciju sabiedrība; Uždaroji akcinė bendrovė; Akcinė bendrovė;
    Sp. z o.o.; Sp. j.; Sp. k.; Sp. p.; Spółka z o.o.; Spółka jawna; Spółka komandytowa; Spółka akcyjna;
    Spółka cywilna; Spółka partnerska; Prosta spółka akcyjna; Spółka komandytowo-akcyjna;
    Spółka z ograniczoną odpowiedzialnością; spol. s r.o.; společnost s ručením omezeným; akc. spol.;
    akciová společnost; akciová spoločnosť; spoločnosť s ručením obmedzeným; v.o.s.; kom. spol.; o.p.s.;
    j.s.a.; Bt.; Kkt.; Kht.; Nonprofit Kft.; Korlátolt Felelősségű Társaság;
    Zártkörűen Működő Részvénytársaság; Nyilvánosan Működő Részvénytársaság; Részvénytársaság;
    Betéti Társaság; PFA; j.d.o.o.; d.n.o.; j.t.d.; DOOEL; EAD; OOD; ADSIC; SH.A.; SH.P.K.; а.д.; АДСИЦ; ДЗЗД;
    КДА; ХК; ХХК;
    Α.Ε.; Α.Β.Ε.Ε.; Α.Ε.Β.Ε.; Ε.Π.Ε.; Ι.Κ.Ε.; Μ.Ι.Κ.Ε.; Ο.Ε.; Ε.Ε.; Μονοπρόσωπη; Ανώνυμη Εταιρεία; A.B.E.E.;
    A.E.B.E.; M.I.K.E.; Monoprosopi;
    T.A.Ş.; Ltd. Şti.; Limited Şirketi; Şti.; Koll. Şti.; Kom. Şti.; Anonim Şirketi; Anonim Ortaklığı;
    San. ve Tic.; Sanayi ve Ticaret; San. Tic.; Sanayi Ticaret; Ticaret ve Sanayi; Tic. ve San.; Ticaret;
    Tic.; Koop.; MMC; ASC; QSC;
    Private Limited; Private Ltd.; Pvt.; Pvt. Ltd.; Pvt. Limited; P. Ltd.; P. Limited; OPC; SMC-Pvt. Ltd.;
    SMC-Private Limited; Proprietary Limited; PLT; Company Limited; Public Company Limited;
    Public Limited Company; Company Limited by Guarantee; Private Company Limited by Shares; and Company;
    Public Company; Unlimited Company; Unltd; Ultd; Limited Partnership; General Partnership;
    Limited Liability Partnership; Limited Liability Limited Partnership; Designated Activity Company;
    Community Interest Company; Teoranta; Cyfyngedig; Cyf.; CLG; ULC; PLLC; PLLP; RLLP; RLLLP; L3C; PBC;
    Public Benefit Corporation; Professional Corporation; Professional Limited Liability Company;
    National Association; Professional Service Corporation; Benefit Corporation; Limited Liability Co.;
    Ltd. Liability Company; Ltd. Liability Co.; Proprietary Ltd.; EEIG; EWIV; GEIE; AEIE; EESV; SCE; IBC; PCC;
    SEZC; ILP; OWM; CPT; Perum; No Liability; in liquidation; in administration; i likvidation;
    en liquidación; in liquidazione; v likvidaci; v likvidácii; w likwidacji; u stečaju; в ликвидации;
    Persero; KSCC; K.S.C.; W.L.L.; FZ-LLC; FZE; FZCO; FZC; DMCC; LLC-FZ; AVV;
    จำกัด; จำกัด (มหาชน); มหาชน; ش.م.م; ش.م.ع; ش.م.ع.م; ش.م.خ; ش.م.ك; ش.م.ك.ع; ش.م.ب; ش.م.ق; ش.م.ل; ذ.م.م;
    ش.ذ.م.م; المحدودة; المساهمة; المساهمة العامة; محدودة; בע״מ; प्राइवेट लिमिटेड; लिमिटेड; প্রাইভেট লিমিটেড;
    লিমিটেড
"""
# Written as one word in capitals ("AB Volvo"): with dots, as in "A.S. Watson", the letters are initials.
LEADING_IN_CAPITALS = """
    AB; AS; CV; DOO; KŪB; MB; OÜ; PAT; SA; SAS; SCI; SIA; SNC; TŪB; UD; ŽŪB; АО; АТ; АД; АҚ; ИП; ПП; ЧП; УП;
    ЕТ; СД; КД
"""
# Written in capitals or with dots.
TRAILING_IN_CAPITALS = """
    AE; AJ; ANS; AY; BA; CC; CIC; CIO; DA; DAC; EE; EPE; FIE; FZ; HB; ICAV; IKE; I/S; KB; KD; KDA; KŪB; K/S; LDC;
    MB; NPC; OE; OG; PSA; P/L; P/S; QK; RT; SAC; SAL; SAPA; SAU; SB; SCI; SHA; SIA; SKA; SPC; SPF; TŪB; TÜ; ŽŪB;
    АО; АТ; АД; АҚ; ИП; ПП; ЧП; УП; ЕТ; СД; КД
"""
# Written with dots.
TRAILING_WITH_DOTS = """
    A.C.; A.I.E.; B.A.; C.B.; C.L.; E.S.P.; E.U.; I.P.; I.K.; L.C.; M.E.; N.A.; N.L.; O.D.; P.A.; P.C.;
    P.S.; S.A.D.; S.A.M.; S.C.; S.E.C.; S.F.; S.J.; S.M.E.; S.O.C.; S.P.; S.S.; T.A.O.; T.P.; U.A.; U.C.; Z.S.
"""
# Like the ordinary words of masking, these do not identify a company. A doubtful form is not removed if only such words
# would remain.
COMMON_WORDS = frozenset(
    """advisors advisory aerospace agency agri agriculture air airlines airport airways analytics and apparel architects
    architecture asia asset assets associates association audio auto automation automotive aviation bakery biologics
    biosciences biotechnology board books brands brewing broadcasting building buildings business cable care cars
    center central centre clinic clothing cloud club coatings college commerce commercial communication communications
    components computer computers computing consultants consulting consumer control controls cosmetics defence defense
    dental design development diagnostics direct distribution dynamics east economics electrical electronic
    electronics engineers enterprise enterprises equipment estate europe events exchange experts export farm farms
    fashion film films fitness foundation freight fund funds furniture games gaming garden general genetics glass
    graphics green grid group growth home homes hospital house housing import infrastructure innovation innovations
    institute instruments interactive interiors internet label labels laboratories labs land law learning legal life
    living local machine machinery machines management manufacturing maritime market marketing markets materials
    mechanics medicine mobility multimedia music nation network networks new north nutrition of office online optical
    organic outdoor packaging partner partners pharmacy photo pictures plant plants platform press print printing
    private product production productions products professional projects public publishing quality quantum radio rail
    ratings real recruitment recycling region rental repair restaurant restaurants safety school schools sciences
    semiconductor semiconductors service social society south space sport sports staffing stock storage store stores
    strategy street studio studios supply surgery system taxi team technical telecommunications television
    therapeutics tools tourism tower towers toys training transportation travels university urban vehicles ventures
    vision waste web wellness west wireless women workshop world yachts""".split()
)

_PLAIN_LETTERS = str.maketrans("łøđı", "lodi")  # letters that Unicode does not decompose: "Spolka", "Ortakligi"
_QUOTES = str.maketrans(dict.fromkeys('"«»“”„‟″״', " "))
_SLASH = re.compile(r"(?<=\b\w)/(?=\w\b)")  # "A/S" is one word
_BRACKETED = re.compile("[(](?:주|유|株|有|同|合|名|資|社|財)[)]")
# Romanian "Societate Comercială"; removed only if the name also ends with a form: in "S.C. Johnson" it is initials.
_SOCIETATE = re.compile(r"\AS\.? ?C\.? (?=.*\b(?:S\.? ?R\.? ?L|S\.? ?A|S\.? ?N\.? ?C)\.?\Z)")
_SEPARATORS = " \t,;:(-–&+/"


def _letters(words: Iterable[str]) -> str:
    """Return the letters by which a form is recognised."""
    return "".join(words).casefold()


def _table(*forms: str) -> frozenset[str]:
    letters = {_letters(words_of(form)) for form in forms}
    return frozenset(letters | {each.translate(_PLAIN_LETTERS) for each in letters})


_LEADING = _table(*EITHER_SIDE.split(";"), *LEADING.split(";"), *LEADING_WORDS, *CJK_LEGAL_FORMS)
_TRAILING = _table(*EITHER_SIDE.split(";"), *TRAILING.split(";"), *LEGAL_FORMS, *CJK_LEGAL_FORMS)
_LEADING_IN_CAPITALS = _table(*LEADING_IN_CAPITALS.split(";"))
_TRAILING_IN_CAPITALS = _table(*TRAILING_IN_CAPITALS.replace("/", "").split(";"))
_TRAILING_WITH_DOTS = _table(*TRAILING_WITH_DOTS.split(";"))
_LONGEST = max(map(len, _LEADING | _TRAILING))


def without_legal_forms(name: str) -> str:
    """Return the name without accents, quotes, and leading and trailing legal forms; at least one word remains."""
    text = _BRACKETED.sub(" ", _SLASH.sub("", unaccented(name).translate(_QUOTES))).strip()
    text = _SOCIETATE.sub("", text)
    found = list(WORD.finditer(text))
    words = [each.group() for each in found]
    first, last = 0, len(words)
    while size := _trailing(words[first:last]):
        last -= size
    while size := _leading(words[first:last]):
        first += size
    if (first, last) == (0, len(words)):
        return text
    end = found[last].start() if last < len(words) else len(text)
    return text[found[first].start() : end].rstrip(_SEPARATORS)


def _trailing(words: Sequence[str]) -> int:
    """Return the number of words at the end that are a legal form."""
    for size in range(min(len(words) - 1, _LONGEST), 0, -1):
        if (letters := _letters(words[-size:])) in _TRAILING:
            return size
        is_doubtful = letters in _TRAILING_WITH_DOTS and size > 1
        is_doubtful |= letters in _TRAILING_IN_CAPITALS and (size > 1 or words[-1].isupper())
        if is_doubtful and not _is_common(words[:-size]):
            return size
    return 0


def _leading(words: Sequence[str]) -> int:
    """Return the number of words at the beginning that are a legal form."""
    letters, longest = "", 0
    for size, word in enumerate(words[: min(len(words) - 1, _LONGEST)], 1):
        letters += word.casefold()
        if len(letters) > _LONGEST:
            break
        if letters in _LEADING:
            longest = size
    if longest:
        return longest
    is_doubtful = len(words) > 1 and words[0].isupper() and _letters(words[:1]) in _LEADING_IN_CAPITALS
    return 1 if is_doubtful and not _is_common(words[1:]) else 0


def _is_common(words: Sequence[str]) -> bool:
    return all(word.casefold() in COMMON_WORDS or word.casefold() in ORDINARY_WORDS for word in words)
