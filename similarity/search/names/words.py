"""The rarity of the words of company names, and the share of a name that a part of it covers."""

import math
from collections import Counter
from collections.abc import Sequence

from similarity.index.cjk import is_cjk
from similarity.preparation.masking import LEGAL_FORMS

NAMES = 46_616
"""Companies whose names were counted: those that `benchmarks.matching` reads."""
LEAST = 10
"""Words in fewer names are not listed: such counts are too uncertain to tell rare words apart."""

# The words of letters a-z that are in at least LEAST of the names, by the least number of names. Legal forms are left
# out. An index of a thousand companies cannot tell that "national" is common, so words are not counted in the index.
_WORDS_BY_COUNT = {
    1280: """
        and group holdings technology
    """,
    640: """
        energy holding industries international resources technologies
    """,
    320: """
        bank china financial global gold india investment new systems
    """,
    160: """
        ai bancorp capital chemical class company de development electric electronics engineering estate finance
        health industrial industry media medical metals minerals mining of ord pharmaceutical pharmaceuticals
        power real sa services shanghai shenzhen solutions steel tech therapeutics trust ve zhejiang
    """,
    80: """
        a ab advanced american asia b bancshares beijing bio biosciences biotech brands chemicals co commercial
        communications construction digital e education electronic enterprise enterprises entertainment
        environmental equipment exploration first food foods gas green grp guangdong h healthcare hldgs inc
        indonesia information infrastructure insurance intl investments jiangsu joint labs life logistics ltd
        machinery management materials national network nippon oil pacific partners petroleum pharma precision
        products properties property public realty reit sanayi science securities shs silver software stock
        ticaret united ventures
    """,
    40: """
        ag agro air al alliance america anhui as asset auto automotive banco biopharma biotechnology blue
        business c care cement central city coltd communication community companies copper corp corporation
        credit data design equity for fujian fund general golden great growth grupo guangzhou hangzhou heavy hi
        high home hong hotel hotels i income innovation intelligent interactive iron japan laboratories land
        leasing lithium m manufacturing marine material metal mills mines mobile motor na natural networks
        ningbo nv one ortakligi packaging paper participacoes red res research resource retail river s sciences
        security semiconductor service shandong shipping sichuan smart socimi solar southern star sun suzhou
        system taiwan telecom thai thailand universal us water works world worldwide yatirim yc
    """,
    20: """
        adr aerospace agri agriculture airlines allied alpha aluminium apollo applied asian assets australia
        australian automation aviation ba banking bankshares battery beverage bharat biologics biomedical
        bioscience bk black blockchain brasil building cable california canada canadian cannabis cap carbon
        cayman cell center century ceylon chain chem chengdu chongqing cla clean club coal commerce compagnie
        companhia compania computer consolidated consulting consumer control cooperative creative culture d del
        delta deutsche diagnostics diamond diversified do drilling du eagle earth east eastern eco el electrical
        empire en energia environment et etc european exchange exports express fashion federal fgn fine finl
        future g games gaming gayrimenkul gdr genomics glass grand groupe henan hldg homes hospital hospitality
        house housing hubei hunan hyundai immobilien in ind indo infra innovations institute integrated internet
        invest investors israel jiangxi kogyo kong korea l la lake leasehold li liberty lifestyle limited link
        machine malaysia marketing markets medicine metro mfg micro microelectronics mineral mitsubishi modern
        mortgage motors mountain multi nam nanjing net next nickel nihon nordic north northern nova nusantara
        ocean office offshore on online orient oriental overseas p pan park parts petrochemical pharm pharmac
        pharmaceut phoenix plant plantations plastic plastics plc plus point port premier prima prime printing
        projects protection qatar qingdao quantum railway renewable resorts road robotics rock royal rp rubber
        san sanayii sangyo saudi sci scientific sgps shanxi shree singapore sino sociedad societe south spa
        space sparebank special sponsored sports st standard store strategic street sugar summit supply sys t
        tea technical textile textiles the tianjin tokyo tourism trade trading transport transportation travel
        tv union uranium urban usa valley value venture vision wellness west western wine wire wireless wuhan
        wuxi x xiamen xinjiang y zy
    """,
    10: """
        access ace acquisition advance aeon africa african agricole agricultural airport aktier alfa all alloy
        alloys aluminum an animal anonima ap arena arrow art arts asa asahi associates asuransi atlantic atlas
        automobile axis banca bancorporation bangkok bay beach bearings beauty bell best beteiligungs better big
        biological biopharmaceuticals biotechnologies biotherapeutics bitcoin blackrock boston brand brewery
        bridge bright broadcast brookfield brothers bumi by caisse celik centers ceramics champion changzhou
        chile chinese chuo cimento circuit citic citizens clear cloud cobalt coca coffee cola comercio comm
        communities composites concepts concrete consultants container continental controls core corporacion
        corporate cos cosco cosmetics country create creek crown crystal cultural da daily dairy dalian
        decoration deep defense denki dental department des developers developments devices di diamonds direct
        discovery display distribuidora distribution dong dongguan dr dragon drugs dynamics each ecology edge
        educational egypt elektrik emerging empreendimentos empresa empresas energi enerji engineers estates
        euro europe expressway eye f factory far farm farmers farms fashions fastigheter fertilizers fiber fibra
        film films fin financiere financiero fintech fire flex flow focus fonciere forge formerly fortune fox
        france free freehold fria frontier fu fuel fuji furniture fusion galaxy gansu garden generation genetics
        gida globe go good gp grande graphite grid guangxi guizhou gujarat gulf hainan harbin harvest hebei hemp
        heritage hill hindustan hing horizon human hwa image imaging impact imperial incdl indah indian inds
        industri industria info infotech inmobiliaria inner innovative instruments intelligence inter
        internasional inv inversiones investama is island it j jade james jaya jewellery jilin jindal john
        jpmorgan jupiter k kaisha kantonalbank karya king kl lab lakshmi landscape lanka laser le leaf learning
        lease lee legend leisure lestari liaoning lifesciences light lighting line lines lion living lng long
        lotus machines makmur man maritime market marshall mart master matrix max mechanical med medicines mega
        merchants meridian mid midstream milk mind ming misr mitra mitsui mixed mng mobility money mongolia
        music mutual mutuel n nan nano natl navigation neo nevada nexus ningxia noble nom nutrition o oak
        oilfield old oncology open opportunities optical optics optoelectronic optoelectronics optronics ore
        organic organics outdoor oyj paint paints paragon payment payments peak pearl peoples performance
        perpetual persero pet petro petrochemicals pharmacy physical pinnacle pioneer pipe pipes planet platinum
        poly polymer potash precious preferred press private pro product production publ publishing pulse pure q
        quest r rail rare raya re recovery recycling refractories regional regionale reinsurance reliance
        renewables repr residential restaurant restaurants ridge rio royalties royalty rural safety santa
        savings sd se seafood secure seed select seng series seven sh shaanxi share shares sheng shenyang shin
        shopping showa siam sierra silicon silk sky small smith social soft solution sons source sp specialty
        speed spinning spirit spirits square sri state steels sterling storage stores studio studios sugars
        sumitomo sunshine super superior surgical sustainable sweden synergy tai tata tbk team techn techno
        techs tek tekstil telecommunication telecommunications television terminal terra texas therap therapeut
        therapeutdl thermal tibet time times tire titan titanium to tokai tong tool tools top total tower toyo
        trans tree trinity tungsten turizm turk u uk und uni universe up uretim utama utilities v victoria
        victory vzo w wah wall waste way wealth well white wind xian yantai york young yunnan zealand zhuhai
        zinc zone
    """,
}
_COUNTS = {word: count for count, words in _WORDS_BY_COUNT.items() for word in words.split()}


def names_with(word: str) -> int:
    """Return about how many of NAMES have this word, rounded down; half of LEAST for a word that fewer have."""
    return _COUNTS.get(word, LEAST // 2)


def coverage(core: str, cores: Sequence[str]) -> float:
    """Return the share of a name that its part `core` covers, 0 to 1: the highest among the names `cores`.

    The weight of a word is its information: rare words count more than words such as "group". Chinese, Japanese and
    Korean names have no spaces and are measured in letters.
    """
    return max((_share(core, other) for other in cores), default=0.0)


def _share(core: str, other: str) -> float:
    letters, all_letters = core.replace(" ", ""), other.replace(" ", "")
    if letters not in all_letters:
        return 0.0
    if is_cjk(letters):
        return len(letters) / len(all_letters)
    rest = _rest(core, other)
    covered = sum(map(_information, core.split()))
    # Names of securities go on with legal forms and numbers: "META PLATFORMS INC. DL-,01".
    left = sum(_information(word) for word in rest if word not in LEGAL_FORMS and not any(map(str.isdigit, word)))
    return covered / (covered + left)


def _rest(core: str, other: str) -> list[str]:
    """Return the words of `other` that are not in `core`, whose words may be joined in `other`."""
    words, letters = other.split(), core.replace(" ", "")
    for count in range(1, len(words)):
        if "".join(words[:count]) == letters:
            return words[count:]
    return list((Counter(words) - Counter(core.split())).elements())


def _information(word: str) -> float:
    """Return the information in a word, in bits: -log2 of the share of names that have it."""
    return math.log2(NAMES / names_with(word))
