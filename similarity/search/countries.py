"""Spellings of countries: "USA", "U.S." and "United States" are one country."""

import re
from functools import lru_cache

from similarity.company import name_key
from similarity.formats.normal_forms import normalized, without_marks

# ISO 3166-1: both codes and the usual English name, then other spellings that lists use.
_SPELLINGS = """
AD|AND|Andorra; AE|ARE|United Arab Emirates|UAE; AF|AFG|Afghanistan; AG|ATG|Antigua and Barbuda; AI|AIA|Anguilla;
AL|ALB|Albania; AM|ARM|Armenia; AO|AGO|Angola; AR|ARG|Argentina; AT|AUT|Austria|Österreich|Autriche;
AU|AUS|Australia; AW|ABW|Aruba; AZ|AZE|Azerbaijan; BA|BIH|Bosnia and Herzegovina; BB|BRB|Barbados;
BD|BGD|Bangladesh; BE|BEL|Belgium|België|Belgique|Belgien; BF|BFA|Burkina Faso; BG|BGR|Bulgaria; BH|BHR|Bahrain;
BI|BDI|Burundi; BJ|BEN|Benin; BM|BMU|Bermuda; BN|BRN|Brunei Darussalam|Brunei; BO|BOL|Bolivia;
BR|BRA|Brazil|Brasil|Brasilien; BS|BHS|Bahamas; BT|BTN|Bhutan; BW|BWA|Botswana; BY|BLR|Belarus; BZ|BLZ|Belize;
CA|CAN|Canada; CD|COD|Democratic Republic of the Congo|DR Congo; CF|CAF|Central African Republic; CG|COG|Congo;
CH|CHE|Switzerland|Schweiz|Suisse|Svizzera|Suiza; CI|CIV|Côte d'Ivoire|Ivory Coast; CL|CHL|Chile; CM|CMR|Cameroon;
CN|CHN|China|PRC|PR China|People's Republic of China|Mainland China|中国; CO|COL|Colombia; CR|CRI|Costa Rica;
CU|CUB|Cuba; CV|CPV|Cabo Verde|Cape Verde; CW|CUW|Curaçao; CY|CYP|Cyprus; CZ|CZE|Czechia|Czech Republic|Česko;
DE|DEU|Germany|Deutschland|Allemagne|Alemania; DJ|DJI|Djibouti; DK|DNK|Denmark|Danmark|Dänemark;
DM|DMA|Dominica; DO|DOM|Dominican Republic; DZ|DZA|Algeria; EC|ECU|Ecuador; EE|EST|Estonia; EG|EGY|Egypt;
ER|ERI|Eritrea; ES|ESP|Spain|España|Spanien|Espagne; ET|ETH|Ethiopia; FI|FIN|Finland|Suomi|Finnland; FJ|FJI|Fiji;
FK|FLK|Falkland Islands; FO|FRO|Faroe Islands; FR|FRA|France|Frankreich|Francia; GA|GAB|Gabon;
GB|GBR|United Kingdom|UK|Great Britain|Britain|England|Scotland|Wales|Northern Ireland|Großbritannien|
Vereinigtes Königreich|Royaume-Uni|Reino Unido;
GD|GRD|Grenada; GE|GEO|Georgia; GF|GUF|French Guiana; GG|GGY|Guernsey; GH|GHA|Ghana; GI|GIB|Gibraltar;
GL|GRL|Greenland; GM|GMB|Gambia; GN|GIN|Guinea; GP|GLP|Guadeloupe; GQ|GNQ|Equatorial Guinea;
GR|GRC|Greece|Hellas|Griechenland; GT|GTM|Guatemala; GU|GUM|Guam; GW|GNB|Guinea-Bissau; GY|GUY|Guyana;
HK|HKG|Hong Kong|Hong Kong SAR|Hongkong; HN|HND|Honduras; HR|HRV|Croatia; HT|HTI|Haiti; HU|HUN|Hungary|Magyarország;
ID|IDN|Indonesia; IE|IRL|Ireland|Republic of Ireland|Éire; IL|ISR|Israel; IM|IMN|Isle of Man; IN|IND|India|Bharat;
IQ|IRQ|Iraq; IR|IRN|Iran; IS|ISL|Iceland; IT|ITA|Italy|Italia|Italien|Italie; JE|JEY|Jersey; JM|JAM|Jamaica;
JO|JOR|Jordan; JP|JPN|Japan|日本|Nippon; KE|KEN|Kenya; KG|KGZ|Kyrgyzstan; KH|KHM|Cambodia;
KN|KNA|Saint Kitts and Nevis; KP|PRK|North Korea; KR|KOR|South Korea|Korea|Republic of Korea|Korea South|Korea, South;
KW|KWT|Kuwait; KY|CYM|Cayman Islands; KZ|KAZ|Kazakhstan; LA|LAO|Laos; LB|LBN|Lebanon; LC|LCA|Saint Lucia;
LI|LIE|Liechtenstein; LK|LKA|Sri Lanka; LR|LBR|Liberia; LS|LSO|Lesotho; LT|LTU|Lithuania; LU|LUX|Luxembourg;
LV|LVA|Latvia; LY|LBY|Libya; MA|MAR|Morocco; MC|MCO|Monaco; MD|MDA|Moldova; ME|MNE|Montenegro; MG|MDG|Madagascar;
MK|MKD|North Macedonia|Macedonia; ML|MLI|Mali; MM|MMR|Myanmar|Burma; MN|MNG|Mongolia; MO|MAC|Macao|Macau;
MQ|MTQ|Martinique; MR|MRT|Mauritania; MT|MLT|Malta; MU|MUS|Mauritius; MV|MDV|Maldives; MW|MWI|Malawi;
MX|MEX|Mexico|México|Mexiko; MY|MYS|Malaysia; MZ|MOZ|Mozambique; NA|NAM|Namibia; NC|NCL|New Caledonia; NE|NER|Niger;
NG|NGA|Nigeria; NI|NIC|Nicaragua; NL|NLD|Netherlands|Holland|Nederland|Niederlande|Pays-Bas;
NO|NOR|Norway|Norge|Norwegen; NP|NPL|Nepal; NZ|NZL|New Zealand|Aotearoa; OM|OMN|Oman; PA|PAN|Panama; PE|PER|Peru;
PF|PYF|French Polynesia; PG|PNG|Papua New Guinea; PH|PHL|Philippines; PK|PAK|Pakistan; PL|POL|Poland|Polska|Polen;
PR|PRI|Puerto Rico; PS|PSE|Palestine; PT|PRT|Portugal; PY|PRY|Paraguay; QA|QAT|Qatar; RE|REU|Réunion;
RO|ROU|Romania|România; RS|SRB|Serbia; RU|RUS|Russian Federation|Russia; RW|RWA|Rwanda; SA|SAU|Saudi Arabia|KSA;
SB|SLB|Solomon Islands; SC|SYC|Seychelles; SD|SDN|Sudan; SE|SWE|Sweden|Sverige|Schweden; SG|SGP|Singapore;
SI|SVN|Slovenia; SK|SVK|Slovakia; SL|SLE|Sierra Leone; SM|SMR|San Marino; SN|SEN|Senegal; SO|SOM|Somalia;
SR|SUR|Suriname; SS|SSD|South Sudan; SV|SLV|El Salvador; SX|SXM|Sint Maarten; SY|SYR|Syria;
SZ|SWZ|Eswatini|Swaziland; TC|TCA|Turks and Caicos Islands; TD|TCD|Chad; TG|TGO|Togo; TH|THA|Thailand;
TJ|TJK|Tajikistan; TL|TLS|Timor-Leste; TM|TKM|Turkmenistan; TN|TUN|Tunisia; TO|TON|Tonga; TR|TUR|Türkiye|Turkey;
TT|TTO|Trinidad and Tobago; TW|TWN|Taiwan|Republic of China|ROC; TZ|TZA|Tanzania; UA|UKR|Ukraine; UG|UGA|Uganda;
US|USA|United States|USA|United States of America|America|Vereinigte Staaten|États-Unis|Estados Unidos;
UY|URY|Uruguay; UZ|UZB|Uzbekistan; VA|VAT|Vatican City; VC|VCT|Saint Vincent and the Grenadines; VE|VEN|Venezuela;
VG|VGB|British Virgin Islands|BVI; VI|VIR|US Virgin Islands; VN|VNM|Vietnam; VU|VUT|Vanuatu; WS|WSM|Samoa;
YE|YEM|Yemen; ZA|ZAF|South Africa|RSA; ZM|ZMB|Zambia; ZW|ZWE|Zimbabwe
"""
_CHINA = frozenset({"CN", "HK", "MO"})
_DOMICILES = frozenset({"BM", "GG", "IM", "JE", "KY", "VG"})
"""Places where many companies are registered that work elsewhere."""


def country_code(text: str) -> str:
    """Return the ISO code of a country in any of its spellings, ignoring case; empty if `text` names none.

    >>> country_code("U.S.") == country_code("united states") == "US"
    True
    """
    return _CODES.get(_key(text), "")


@lru_cache(maxsize=4096)
def country_key(text: str) -> str:
    """Return a text that is equal for all spellings of one country: the ISO code, or the text as names are compared.

    >>> country_key("USA") == country_key("united states") != country_key("Kosovo") == country_key("KOSOVO")
    True
    """
    return country_code(text) or name_key(text)


def spellings(text: str) -> tuple[str, ...]:
    """Return all spellings of the country that `text` names, its ISO codes included; none if it names no country.

    >>> "United States" in spellings("usa")
    True
    """
    return _SPELLINGS_OF.get(country_code(text), ())


def is_same_country(one: str, other: str) -> bool:
    """Return whether two texts name one country, or differ only in case, accents and punctuation; False if empty."""
    code, key = country_code(one), _key(one)
    return bool(key) and (key == _key(other) or (code != "" and code == country_code(other)))


def countries_differ(one: str, other: str) -> bool:
    """Return whether two texts certainly name different countries.

    False if one of them is not recognised, or is a place where companies of other countries are registered. China,
    Hong Kong and Macau count as one country, because sources disagree on which of them a company is in.
    """
    codes = {country_code(one), country_code(other)}
    return len(codes) == 2 and "" not in codes and not codes & _DOMICILES and not codes <= _CHINA


def _key(text: str) -> str:
    letters = re.sub("[.'’]", "", without_marks(normalized("NFKD", text).casefold()))
    return " ".join(re.sub(r"[\W_]+", " ", letters).split()).removeprefix("the ")


def _spellings_of() -> dict[str, tuple[str, ...]]:
    lines = (tuple(" ".join(each.split()) for each in line.split("|")) for line in _SPELLINGS.split(";"))
    return {spelt[0]: (*spelt, *(other for each in spelt for other in _other_forms(each))) for spelt in lines}


def _other_forms(spelling: str) -> tuple[str, ...]:
    """Return "U.S." and "U.S" for "US", "The Netherlands" for "Netherlands", and "Turkiye" for "Türkiye"."""
    if spelling.isupper() and len(spelling) <= 3:
        dotted = ".".join(spelling)
        return f"{dotted}.", dotted
    return f"The {spelling}", without_marks(normalized("NFKD", spelling))


_SPELLINGS_OF = _spellings_of()
_CODES = {_key(each): code for code, spelt in _SPELLINGS_OF.items() for each in spelt}
