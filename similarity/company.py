"""The company record, its version, and the records that an index stores and returns.

All records are frozen. `Company` checks its fields, but does not change them: `similarity.ingest.records.parse_record`
turns a raw row into a record (stripping, Unicode form, domains).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidCompany
from similarity.formats.normal_forms import normalized

Vector: TypeAlias = NDArray[np.float32]
AttributeValue: TypeAlias = str | int | float | bool

ID_PATTERN = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# Clients and proxies remove these from a path (RFC 3986, 5.2.4): /companies/.. is another URL.
DOT_SEGMENTS = frozenset({".", ".."})
# Underscores are not allowed in host names by RFC 1123, but real websites have them.
DOMAIN_PATTERN = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+")
ATTRIBUTE_NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
SHARED_HOSTS = frozenset(
    "facebook.com linkedin.com instagram.com twitter.com x.com youtube.com github.com github.io medium.com t.me "
    "tiktok.com linktr.ee sites.google.com wordpress.com wixsite.com blogspot.com weebly.com squarespace.com "
    "crunchbase.com wikipedia.org en.wikipedia.org bloomberg.com etsy.com angel.co apps.apple.com "
    "play.google.com finance.yahoo.com ycombinator.com pitchbook.com xing.com vk.com bit.ly example.com none.com "
    "pinterest.com producthunt.com f6s.com wellfound.com trustpilot.com glassdoor.com zoominfo.com "
    # of mail, which a list may have instead of websites
    "gmail.com googlemail.com yahoo.com yahoo.co.jp hotmail.com outlook.com live.com msn.com icloud.com aol.com "
    "gmx.de gmx.net gmx.com web.de t-online.de orange.fr wanadoo.fr free.fr libero.it proton.me protonmail.com "
    "mail.ru yandex.ru qq.com 163.com 126.com naver.com hanmail.net".split()
)
"""Hosts of the pages, and of the mail, of many companies: they identify none of them, but for the owner."""
MAX_WEBSITE_READ = 2_048
"""How many characters of a website are read; the host name is at the beginning."""
MAX_HOST_CHARACTERS = 253
MAX_LABEL_CHARACTERS = 63
FULL_STOPS = re.compile("[.\u3002]")
"""The full stops between the labels of a host name in NFKC; the second one is ideographic."""
MAX_NAME_CHARACTERS = 512
MAX_DESCRIPTION_CHARACTERS = 200_000
MAX_LIST_ITEMS = 100
MAX_ALIAS_CHARACTERS, MAX_ALIASES_CHARACTERS = 200, 5_000
"""The limits of one alias and of all aliases of a company. The service refuses longer ones, and the search for similar
names ignores them (`Company.compared_names`). In 46,616 real companies, the largest values are 92 and 184."""
CLOCK_SKEW_ALLOWANCE = timedelta(minutes=5)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_TIME = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """A company, as it describes itself.

    `id`: 1-128 of `[A-Za-z0-9._:-]`, case-sensitive (`check_id` has a further rule for new ids). `domain`: a bare host
    name (`example.com`, see `normalize_domain`). `attributes`: scalar values, for filters on `attributes.<name>`.

    Raises:
        InvalidCompany: a field breaks a rule; the message names the field.
    """

    id: str
    name: str
    description: str
    aliases: tuple[str, ...] = ()
    domain: str = ""
    country: str = ""
    industry: str = ""
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_stored_id(self.id)
        _check_text("name", self.name, MAX_NAME_CHARACTERS, required=True)
        _check_text("description", self.description, MAX_DESCRIPTION_CHARACTERS, required=True)
        _check_text("country", self.country, MAX_NAME_CHARACTERS)
        _check_text("industry", self.industry, MAX_NAME_CHARACTERS)
        _check_list("aliases", self.aliases)
        _check_list("tags", self.tags)
        if self.domain and not DOMAIN_PATTERN.fullmatch(self.domain):
            raise InvalidCompany("domain", f"{self.domain!r} is not a bare host name such as 'example.com'")
        _check_attributes(self.attributes)

    def compared_names(self) -> list[str]:
        """Return the name and the aliases that the search for similar names compares.

        Aliases that are longer than MAX_ALIAS_CHARACTERS, or exceed MAX_ALIASES_CHARACTERS in all, are left out. Such
        aliases come from files and earlier releases.
        """
        names, left = [self.name], MAX_ALIASES_CHARACTERS
        for alias in self.aliases:
            if len(alias) <= min(MAX_ALIAS_CHARACTERS, left):
                names.append(alias)
                left -= len(alias)
        return names

    def characters(self) -> int:
        """Return the number of characters of the id, name, description, aliases, tags and attributes."""
        facts = (f"{name}{value}" for name, value in self.attributes.items())
        return sum(map(len, (self.id, self.name, self.description, *self.aliases, *self.tags, *facts)))

    def content(self) -> dict[str, Any]:
        """Return all fields except the id, as JSON values."""
        return {
            "name": self.name,
            "description": self.description,
            "aliases": list(self.aliases),
            "domain": self.domain,
            "country": self.country,
            "industry": self.industry,
            "tags": list(self.tags),
            "attributes": dict(self.attributes),
        }

    def content_text(self) -> str:
        """Return `content` as JSON. Equal content has equal text; 1, 1.0 and true are not equal."""
        return json.dumps(self.content(), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedCompany:
    """The document that an index stores: a company with its version and its vector.

    `vector`: float32 `[dimension]` with unit norm, made by the encoder `encoder_id` from the text with the hash
    `text_hash`. Zeros mean no vector: the description has too few words to rank by, `text_hash` is `text.NO_TEXT`, and
    the company is in no ranking. `language`: an ISO 639 code, or `und` if the text is too short or mixed.
    """

    company: Company
    version: int
    text_hash: str
    encoder_id: str
    vector: Vector
    embedded_at: datetime
    language: str = "und"

    @property
    def id(self) -> str:
        return self.company.id

    @property
    def has_vector(self) -> bool:
        return bool(self.vector.any())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedCompany:
    """A tombstone: the document of a company that was deleted at `version`.

    It has no text and no vector. It prevents a late, older write from restoring the company. `untimed`: as in
    `similarity.ingest.records.VersionedCompany`; no index stores it.
    """

    id: str
    version: int
    untimed: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        check_stored_id(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCompany:
    """One neighbour: a company and the exact cosine of its vector and the query vector, in [-1, 1]."""

    company: Company
    score: float
    version: int
    embedded_at: datetime
    language: str = "und"


def check_id(company_id: str) -> None:
    """Raise InvalidCompany unless a new company may have this id: 1-128 of `[A-Za-z0-9._:-]`, but not `.` or `..`."""
    check_stored_id(company_id)
    if company_id in DOT_SEGMENTS:
        raise InvalidCompany("id", f"{company_id!r} cannot be part of a URL; choose an id with a letter or digit")


def check_stored_id(company_id: str) -> None:
    """Raise InvalidCompany unless a stored company can have this id.

    Earlier releases accepted `.` and `..`: such companies can still be read and deleted.
    """
    if not isinstance(company_id, str) or not ID_PATTERN.fullmatch(company_id):
        raise InvalidCompany(
            "id", f"{company_id!r:.140} must be 1-128 characters of letters, digits, '.', '_', ':' or '-'"
        )


def version_of(event_time: datetime, *, now: datetime, deleted: bool = False) -> int:
    """Return the version of a change: 2 x event time in UTC microseconds, + 1 for a delete (which wins a tie).

    `now`: the current time, to refuse event times that are too far ahead; a batch run gives its start time.

    Raises:
        InvalidCompany: the event time is naive, before 1970, or more than 5 minutes after `now`.
    """
    if event_time.tzinfo is None:
        raise InvalidCompany("event_time", f"{event_time} has no time zone; write it with an offset or 'Z'")
    if event_time < EPOCH:
        raise InvalidCompany("event_time", f"{event_time} is before 1970")
    if event_time > now + CLOCK_SKEW_ALLOWANCE:
        raise InvalidCompany("event_time", f"{event_time} is more than 5 minutes in the future")
    return lowest_version_at(event_time) + int(deleted)


def lowest_version_at(event_time: datetime) -> int:
    """Return the lowest version that a change at this time can have; every earlier change has a lower version."""
    return 2 * ((event_time - EPOCH) // timedelta(microseconds=1))


def version_above(version: int, *, deleted: bool) -> int:
    """Return the lowest version above `version` that a write (even) or a delete (odd) can have."""
    following = version + 1
    return following if following % 2 == deleted else following + 1


def time_of_version(version: int) -> datetime:
    """Return the event time of a version, in UTC, but at most LAST_TIME, the last time that Python can represent."""
    # A message can give any version up to 2^62 (`similarity.ingest.messages`).
    return EPOCH + min(timedelta(microseconds=version // 2), LAST_TIME - EPOCH)


def utc_now() -> datetime:
    """Return the current time. Only composition roots call it; other code has times as arguments."""
    return datetime.now(UTC)


def normalize_domain(website: str) -> str:
    """Return the bare host name of a website or domain: `https://www.Example.com/x` gives `example.com`.

    An empty text gives an empty text. International names are converted to ASCII (IDNA).

    Raises:
        InvalidCompany: the text contains no host name.
    """
    text = website[:MAX_WEBSITE_READ].strip()
    if not text:
        return ""
    try:
        host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
        domain = _ascii_host(host).removeprefix("www.").rstrip(".")
    except ValueError:
        domain = ""
    if not DOMAIN_PATTERN.fullmatch(domain):
        raise InvalidCompany("domain", f"{website!r:.140} contains no host name such as 'example.com'")
    return domain


def _ascii_host(host: str) -> str:
    """Return a host name in ASCII (IDNA). Raises ValueError if DNS allows no name or label of this length.

    The length of the normal form NFKC is checked first, because Python's encoder is slow: 30 ms for 500 characters.
    """
    name = normalized("NFKC", host).rstrip(".")
    if len(name) > MAX_HOST_CHARACTERS or any(len(label) > MAX_LABEL_CHARACTERS for label in FULL_STOPS.split(name)):
        raise ValueError("the host name is too long")
    return host.encode("idna").decode("ascii")


def name_key(name: str) -> str:
    """Return the form in which names and aliases are compared: NFKC, case-folded, single spaces."""
    return " ".join(normalized("NFKC", name).casefold().split())


def _check_text(field_name: str, text: str, limit: int, *, required: bool = False) -> None:
    if not isinstance(text, str):
        raise InvalidCompany(field_name, f"must be text, not {type(text).__name__}")
    if required and not text.strip():
        raise InvalidCompany(field_name, "is empty")
    if len(text) > limit:
        raise InvalidCompany(field_name, f"has {len(text):,} characters; the limit is {limit:,}")
    if "\0" in text:
        raise InvalidCompany(field_name, "contains a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidCompany(
            field_name, "contains broken Unicode (a lone surrogate); text must be UTF-8 (in Excel: save as CSV UTF-8)"
        ) from None


def _check_list(field_name: str, items: tuple[str, ...]) -> None:
    if not isinstance(items, tuple):
        raise InvalidCompany(field_name, "must be a tuple of texts")
    if len(items) > MAX_LIST_ITEMS:
        raise InvalidCompany(field_name, f"has {len(items)} entries; the limit is {MAX_LIST_ITEMS}")
    for item in items:
        _check_text(field_name, item, MAX_NAME_CHARACTERS, required=True)


def _check_attributes(attributes: Mapping[str, AttributeValue]) -> None:
    if len(attributes) > MAX_LIST_ITEMS:
        raise InvalidCompany("attributes", f"has {len(attributes)} entries; the limit is {MAX_LIST_ITEMS}")
    for name, value in attributes.items():
        if not isinstance(name, str) or not ATTRIBUTE_NAME_PATTERN.fullmatch(name):
            raise InvalidCompany("attributes", f"{name!r:.80} is not a name of letters, digits and '_'")
        if isinstance(value, str):
            _check_text(f"attributes.{name}", value, MAX_NAME_CHARACTERS)
        elif not isinstance(value, bool | int | float):
            raise InvalidCompany(
                f"attributes.{name}", f"must be text, a number or true/false, not {type(value).__name__}"
            )
        elif isinstance(value, float) and not np.isfinite(value):
            raise InvalidCompany(f"attributes.{name}", "must be a finite number")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidCompany(f"attributes.{name}", "must be a whole number of 64 bits; send it as text")
