"""The queries that find companies of a similar name in an index, and the ids and domains that a name may stand for."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from similarity.company import ID_PATTERN, Company, DeletedCompany, name_key
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex
from similarity.search.duplicates import WIDELY_SHARED
from similarity.search.names.comparison import core_of, cores_of, has_initials, is_short
from similarity.search.names.rows import MAX_FOUND, not_as_id

MAX_SHORTER_QUERIES = 4
MAX_LISTINGS = 10
# "NASDAQ:AAPL", "AAPL US", "AAPL US Equity"; Reuters writes the tickers of New York as "NKE.N" and "AAPL.O".
WITH_EXCHANGE = re.compile(
    r"(?P<code>[A-Za-z]{2,10}): ?(?P<after>[\w.-]+)"
    r"|(?P<before>[A-Z0-9]{1,6})(?: (?P<country>[A-Z]{2})(?: Equity)?|(?<=[A-Z])\.[NO])"
)
# Codes of exchanges outside the United States, as Google, TradingView and Bloomberg write them, by the suffixes with
# which ids have them. Without a suffix, an id is the ticker of a United States exchange.
CODES_OF_SUFFIX = {
    "L": "LON LSE LN", "TO": "TSX TSE CN CT", "PA": "EPA EURONEXT FP", "AS": "AMS EURONEXT NA", "BR": "EBR EURONEXT BB",
    "DE": "ETR FRA XETR GR GY", "F": "FRA GR", "MI": "BIT MIL IM", "SW": "SWX VTX SIX SW", "T": "TYO TSE JP JT",
    "HK": "HKG HKEX HK", "AX": "ASX AU AT", "NS": "NSE IN IS", "BO": "BOM BSE IN IB", "JO": "JSE SJ", "MC": "BME SM",
    "ST": "STO OMXSTO SS", "OL": "OSL NO", "CO": "CPH OMXCOP DC", "HE": "HEL OMXHEX FH", "LS": "ELI PL", "VI": "VIE AV",
    "SA": "BVMF BZ BS", "MX": "BMV MM", "KS": "KRX KS", "TW": "TPE TWSE TT", "SS": "SHA SSE CH CG", "SZ": "SHE SZSE CS",
    "SI": "SGX SP", "KL": "KLSE MYX MK", "NZ": "NZE NZX NZ", "WA": "WSE GPW PW", "IR": "ISE ID",
}  # fmt: skip
# The ticker may end with a class letter ("AMXL.MX") or a class number ("PETR4"); "RELIANCE.NS" has neither.
TICKER_IN_CAPITALS = re.compile(r"(?P<ticker>[A-Z0-9]{3,10})(?P<exchange>\.[A-Z]{1,2})|(?P<brazilian>[A-Z]{4}\d{1,2})")
TICKER = re.compile(r"\d{3,7}|[A-Za-z]\w{1,4}")
WITH_CLASS = re.compile(r"([A-Za-z]{1,5})[./ -][A-Za-z]{1,2}")
WITH_CLASS_LETTER = re.compile(r"([A-Z]{2,4})[A-Z]")
# Exchanges number share classes: VOW3.DE are preference shares of VOW.DE.
WITH_CLASS_NUMBER = re.compile(r"([A-Za-z]{2,5})\d{1,2}(\.[A-Za-z]{1,2})")
CLASS_NUMBERS = ("", *map(str, range(1, 12)))
SPLIT_WORD = re.compile("[a-z]{6,24}")
MIN_SPLIT_LETTERS, MIN_ROOT_LETTERS = 3, 3
INNER_CAPITAL = re.compile(r"([a-z])([A-Z])")


def possible_ids(name: str) -> list[str]:
    """Return the ids that `name` may stand for: in capitals, in small letters, and in capitals without punctuation.

    Most ids are tickers or words, so an id rarely mixes capitals and small letters. The code of an exchange beside a
    ticker is left out or, outside the United States, becomes the suffix of the id.

    >>> possible_ids("NASDAQ:AAPL")[0], possible_ids("LON:BA"), possible_ids("BA LN")
    ('AAPL', ['BA.L'], ['BA.L'])
    """
    typed = _without_exchange(name)
    exchange = WITH_EXCHANGE.fullmatch(name.strip())
    code = (exchange["code"] or exchange["country"] or "").upper() if exchange else ""
    if suffixes := [suffix for suffix, codes in CODES_OF_SUFFIX.items() if code in codes.split()]:
        ticker = typed.upper()
        ids = (
            f"{each.removesuffix(f'.{suffix}')}.{suffix}" for suffix in suffixes for each in (ticker, _classed(ticker))
        )
        return [each for each in dict.fromkeys(ids) if ID_PATTERN.fullmatch(each)]
    plain = "".join(character for character in typed if character.isalnum())
    return [each for each in dict.fromkeys((typed.upper(), typed.lower(), plain.upper())) if ID_PATTERN.fullmatch(each)]


def queries(name: str, core: str) -> Iterator[str]:
    """Yield queries for companies with the words of a name: its core, as written, in one word, split at capitals."""
    yield core
    if name_key(name) != core:
        yield name
    if " " in core:
        yield core.replace(" ", "")
    elif (split := INNER_CAPITAL.sub(r"\1 \2", name)) != name:
        yield split


def split_queries(core: str) -> Iterator[str]:
    """Yield the only word of a name as two words, split at each place: "coca cola" for "cocacola"."""
    if SPLIT_WORD.fullmatch(core):
        for place in range(MIN_SPLIT_LETTERS, len(core) - MIN_SPLIT_LETTERS + 1):
            yield f"{core[:place]} {core[place:]}"


def shorter_queries(core: str) -> Iterator[str]:
    """Yield queries that find more candidates: the name without one of its words, or the first half of its only word.

    The longest words are left out first.
    """
    words = core.split()
    if len(words) == 1:
        yield core[: max(3, len(core) // 2 + 1)]
        return
    for omitted in sorted(words, key=len, reverse=True)[:MAX_SHORTER_QUERIES]:
        yield " ".join(word for word in words if word != omitted)


def possible_domains(core: str) -> tuple[list[str], list[str]]:
    """Return the domains `<core>.com`, with the words joined or hyphenated, and the domains of initials.

    The initials "j and j" have the domains jnj.com and jj.com; for other names the second list is empty.
    """
    words = core.split()
    joined = "".join(words)
    initials = [f"{joined.replace('and', each)}.com" for each in ("n", "") if "and" in words and is_short(core)]
    return list(dict.fromkeys((f"{joined}.com", f"{'-'.join(words)}.com"))), initials


def with_ids(index: CompanyIndex, generation: str, ids: Sequence[str]) -> list[Company]:
    """Return the companies with these ids, in this order; ids that no company has are left out."""
    by_id = index.get(generation, ids)
    return [by_id[company_id].company for company_id in ids if company_id in by_id]


def with_id_in_capitals(index: CompanyIndex, generation: str, name: str) -> list[Company]:
    """Return the company whose id is `name` in capitals, as a list; "M&S" does not mean the id MS."""
    return with_ids(index, generation, possible_ids(name)[:1]) if "&" not in name else []


def with_words(index: CompanyIndex, generation: str, query: str) -> dict[str, Company]:
    """Return the companies whose names, domains or texts have the words of `query`, by id, best matches first."""
    found = index.find(generation, query, limit=MAX_FOUND)
    if len(found) >= MAX_FOUND:  # names with "Green" may hide the names with the word "gree"
        found += index.find(generation, f"{query} ", limit=MAX_FOUND)
    return {company.id: company for company in found}


def with_website_name(index: CompanyIndex, generation: str, core: str) -> list[Company]:
    """Return the companies with the domain `<core>.com`, with the words of the core joined or hyphenated.

    For initials such as "j and j", also those with the domain jnj.com or jj.com.
    """
    domains, short_domains = possible_domains(core)
    references = [not_as_id(domain) for domain in (*domains, *short_domains)]
    ids_of = index.resolve_many(generation, references) if core else {}
    found = (ids for ids in ids_of.values() if len(ids) < WIDELY_SHARED)
    companies = with_ids(index, generation, [company_id for ids in found for company_id in ids])
    return [
        company
        for company in companies
        if company.domain in domains or (company.domain in short_domains and has_initials(core, cores_of(company)))
    ]


def listed_as(index: CompanyIndex, generation: str, name: str) -> list[Company]:
    """Return the companies whose id is `name`, a ticker, and the suffix of an exchange: 7203.T for "7203".

    Each exchange may be meant, also if `name` has one ("TYO:7203"), because exchanges have many codes.
    """
    ticker = _without_exchange(name).upper()
    bare = with_ids(index, generation, [ticker]) if has_exchange(name) and ID_PATTERN.fullmatch(ticker) else []
    return [*bare, *_with_prefix(index, generation, f"{ticker}.")] if TICKER.fullmatch(ticker) else bare


def likely_listings(index: CompanyIndex, generation: str, name: str, schema: AttributeSchema) -> list[Company]:
    """Return the prominent companies whose website, or ticker without its exchange, is `name`."""
    by_website = with_website_name(index, generation, core_of(name))
    return [each for each in (*by_website, *listed_as(index, generation, name)) if schema.is_prominent(each)]


def other_classes(index: CompanyIndex, generation: str, name: str) -> list[Company]:
    """Return the companies whose id is `name`, a ticker, with another share class or none: BRK-A for BRK.B."""
    if ticker := WITH_CLASS_LETTER.fullmatch(name.strip()):
        return [document.company for document in index.get(generation, [ticker[1]]).values()]
    if ticker := WITH_CLASS_NUMBER.fullmatch(name.strip()):
        ids = [f"{ticker[1]}{number}{ticker[2]}".upper() for number in CLASS_NUMBERS]
        return [document.company for document in index.get(generation, ids).values()]
    ticker = WITH_CLASS.fullmatch(name.strip())
    return _with_prefix(index, generation, f"{ticker[1].upper()}-") if ticker else []


def similar_tickers(index: CompanyIndex, generation: str, name: str) -> list[Company]:
    """Return the companies whose id is the ticker `name` on another exchange; if there are none, of another class."""
    found = TICKER_IN_CAPITALS.fullmatch(name.strip())
    if not found:
        return []
    ticker = found["ticker"] or found["brazilian"]
    same = with_ids(index, generation, [ticker])
    same += [each for sign in "-." for each in _with_prefix(index, generation, f"{ticker}{sign}")]
    root = ticker.rstrip("0123456789") if ticker[-1].isdigit() else ticker[:-1]
    if same or len(root) < MIN_ROOT_LETTERS:
        return same
    classed = re.compile(rf"{root}(?:[A-Z]|\d{{1,2}})?{re.escape(found['exchange'] or '.SA')}")
    return [each for each in _with_prefix(index, generation, root) if classed.fullmatch(each.id)]


def has_exchange(name: str) -> bool:
    """Return whether `name` is a ticker beside the code of an exchange."""
    return _without_exchange(name) != name.strip()


def _without_exchange(name: str) -> str:
    exchange = WITH_EXCHANGE.fullmatch(name.strip())
    return exchange["after"] or exchange["before"] if exchange else name.strip()


def _classed(ticker: str) -> str:
    """Return a ticker with its share class as ids have it: BT-A for BT.A."""
    return re.sub(r"\.([A-Z])$", r"-\1", ticker)


def _with_prefix(index: CompanyIndex, generation: str, prefix: str) -> list[Company]:
    documents = next(index.scan(generation, after=prefix, batch_size=MAX_LISTINGS), [])
    same = takewhile(lambda document: document.id.startswith(prefix), documents)
    return [document.company for document in same if not isinstance(document, DeletedCompany)]
