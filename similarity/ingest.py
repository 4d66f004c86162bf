"""From raw records to documents in an index: pure steps that the command line, pipelines and API share.

    record -- parse_record --> VersionedCompany | DeletedCompany
           -- embed_changes --> EmbeddedCompany | DeletedCompany -- write_changes --> WriteResult

An unchanged text skips only the encoder: its stored vector is reused, and the document is written
whole at its new version all the same.
"""

import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import (
    AttributeValue,
    Company,
    DeletedCompany,
    EmbeddedCompany,
    Vector,
    check_id,
    normalize_domain,
    version_above,
    version_of,
)
from similarity.errors import (
    EncoderMismatch,
    EncodingFailed,
    InvalidCompany,
    InvalidInput,
    NoLiveGeneration,
    UnknownGeneration,
)
from similarity.former_names import remember_lost_names
from similarity.index.numbers import is_finite, number_of
from similarity.index.protocol import CompanyIndex, Generation, GenerationState, WriteOutcome, WriteResult
from similarity.language import detect_language
from similarity.text import TextSettings, embedding_text, text_hash
from similarity.writers import Writer

Record: TypeAlias = Mapping[str, object]

TEXT_FIELDS = ("id", "name", "description", "country", "industry")
LIST_FIELDS = ("aliases", "tags")
COMPANY_FIELDS = (*TEXT_FIELDS, *LIST_FIELDS, "domain", "event_time", "deleted")
RAISES = 3
GAVE_WAY = (WriteOutcome.SUPERSEDED, WriteOutcome.REJECTED)
"""Another version is stored, or the same one with other content."""
# Where a record has no column of the field's own name.
OTHER_COLUMNS = {"domain": "website"}


class Encoder(Protocol):
    """What ingestion needs of a text encoder; `similarity.encoder.TextEncoder` is one."""

    @property
    def encoder_id(self) -> str: ...

    @property
    def text_settings(self) -> TextSettings: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32 `[len(texts), dimension]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedCompany:
    """A company as of one event, not yet embedded.

    `untimed`: the change came without an event time, so its version is the time of receipt, and may be
    raised above a stored one (see `write_changes`).
    """

    company: Company
    version: int
    untimed: bool = field(default=False, compare=False)

    @property
    def id(self) -> str:
        return self.company.id


Change: TypeAlias = VersionedCompany | DeletedCompany
Documents: TypeAlias = list[EmbeddedCompany | DeletedCompany]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which column of a record holds which field; a field not named here has its own name.

    `attributes` maps attribute names to columns; they are kept as free filters. Those in `numbers` are
    read as numbers, so that ranges find them; a CSV file says of no cell that it is one.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()

    @classmethod
    def from_pairs(cls, columns: Sequence[str], attributes: Sequence[str]) -> "Columns":
        """The mapping that FIELD=COLUMN and NAME[:number][=COLUMN] spell out.

        Raises:
            InvalidInput: one does not read so.
        """
        fields: dict[str, str] = {}
        for pair in columns:
            name, equals, column = pair.partition("=")
            if not (name and equals and column):
                raise InvalidInput(f"--column {pair!r} must read FIELD=COLUMN, for example --column id=ticker")
            fields[name] = column
        named: dict[str, str] = {}
        numbers: set[str] = set()
        for pair in attributes:
            typed, _, column = pair.partition("=")
            name, colon, kind = typed.partition(":")
            if colon and kind != "number":
                raise InvalidInput(f"--attribute {pair!r} must read NAME[:number][=COLUMN], as employees:number=staff")
            named[name] = column or name
            numbers |= {name} if colon else set()
        return cls(fields=fields, attributes=named, numbers=frozenset(numbers))

    def value(self, record: Record, field_name: str) -> object:
        """The raw value of a field; None if the record has no such column."""
        if field_name in self.fields:
            return record.get(self.fields[field_name])
        value = record.get(field_name)
        # Only where there is a second name: a file may have a column without one.
        return value or record.get(OTHER_COLUMNS[field_name]) if field_name in OTHER_COLUMNS else value


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRecord:
    """A record's change, and what was left out of it because it could not be used."""

    change: Change
    warnings: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """The fields that the warnings are of."""
        return tuple(warning.partition(":")[0] for warning in self.warnings)


def parse_record(record: Record, *, columns: Columns, now: datetime) -> ParsedRecord:
    """A raw record as a checked change: trimmed, in Unicode NFC, with a bare domain.

    `now` is the version of records that carry no `event_time` (the start of a batch run, or the time
    a message was received). A record whose `deleted` is true needs only its id. A website that holds
    no host name, or a number that is none, is left out with a warning: that is no reason to lose the company.

    Raises:
        InvalidCompany: the record breaks a rule; the message names the field.
    """
    text = {name: clean_text(columns.value(record, name), name) for name in TEXT_FIELDS}
    deleted = _flag(columns.value(record, "deleted"))
    event_time = _event_time(columns.value(record, "event_time"))
    version = version_of(event_time or now, now=now, deleted=deleted)
    untimed = event_time is None
    if deleted:
        return ParsedRecord(change=DeletedCompany(id=text["id"], version=version, untimed=untimed))
    check_id(text["id"])
    domain, warnings = _domain(columns.value(record, "domain"))
    attributes, no_numbers = _attributes(record, columns)
    company = Company(
        **text,
        aliases=clean_list(columns.value(record, "aliases"), "aliases"),
        tags=clean_list(columns.value(record, "tags"), "tags"),
        domain=domain,
        attributes=attributes,
    )
    change = VersionedCompany(company=company, version=version, untimed=untimed)
    return ParsedRecord(change=change, warnings=warnings + no_numbers)


def embed_changes(
    changes: Sequence[Change],
    stored: Mapping[str, EmbeddedCompany],
    encoder: Encoder,
    *,
    now: datetime,
) -> Documents:
    """The documents to write, in order. Only texts that `stored` does not hold yet are encoded, once each.

    `stored` are the documents that the index holds for these ids, of this encoder's generation.

    Raises:
        EncodingFailed: the encoder raised on the texts; nothing of these changes is embedded.
    """
    vectors: dict[str, Vector] = {}
    texts: dict[str, str] = {}
    hashes: dict[int, str] = {}
    for position, change in enumerate(changes):
        if isinstance(change, DeletedCompany):
            continue
        known = stored.get(change.id)
        if known is not None and _reads_the_same(known.company, change.company):
            hashes[position] = known.text_hash
            vectors[known.text_hash] = known.vector
            continue
        text = embedding_text(change.company, encoder.text_settings)
        hashes[position] = text_hash(text)
        if known is not None and known.text_hash == hashes[position]:
            vectors[known.text_hash] = known.vector
        texts[hashes[position]] = text
    missing = {key: text for key, text in texts.items() if key not in vectors}
    vectors |= zip(missing, _encoded(encoder, list(missing.values())), strict=True)
    documents: Documents = []
    for position, change in enumerate(changes):
        if isinstance(change, DeletedCompany):
            documents.append(change)
            continue
        key = hashes[position]
        known = stored.get(change.id)
        reused = known if known is not None and known.text_hash == key else None
        documents.append(
            EmbeddedCompany(
                company=change.company,
                version=change.version,
                text_hash=key,
                encoder_id=encoder.encoder_id,
                vector=vectors[key],
                embedded_at=reused.embedded_at if reused else now,
                language=reused.language if reused else detect_language(change.company.description),
            )
        )
    return documents


def write_changes(
    writer: Writer,
    encoders: Mapping[str, Encoder],
    changes: Sequence[Change],
    *,
    now: datetime,
    raise_above: int = 0,
) -> list[WriteResult]:
    """Embeds and writes changes to every generation that must have them; one result per change.

    The results are the live generation's, or the newest candidate's where none is live yet; but a
    change that any generation did not take is FAILED, and has to be sent again. A text is encoded
    once for all generations of one encoder.

    An untimed change does not give way to a stored version above `raise_above`: it is written again, to
    every generation, right above that version. If others write the same company at every attempt, its
    result is still SUPERSEDED or REJECTED, and it has to be sent again.

    Raises:
        NoLiveGeneration: there is nothing to write to.
        EncoderMismatch: a generation's encoder is not among `encoders` (by id); nothing was written.
        EncodingFailed: an encoder raised on these texts; nothing was written.
    """
    ids = {change.id for change in changes}
    documents: dict[str, Documents] = {}
    targets = _live_last(writer.targets())
    while missing := [target for target in targets if target.encoder_id not in documents]:
        for target in missing:
            require_encoder(encoders, target)
        for encoder_id in dict.fromkeys(target.encoder_id for target in missing):
            stored = _stored(writer.index, [target for target in targets if target.encoder_id == encoder_id], ids)
            remember_lost_names(writer.index.ledger, changes, stored)
            documents[encoder_id] = embed_changes(changes, stored, encoders[encoder_id], now=now)
        targets = _live_last(writer.targets())  # encoding took its time; another may have been added
    results = _write(writer.index, targets, documents)
    for _ in range(RAISES):
        raised = _raised(changes, results, above=raise_above)
        if not raised:
            break
        again = {
            encoder_id: [replace(embedded[position], version=version) for position, version in raised.items()]
            for encoder_id, embedded in documents.items()
        }
        for position, result in zip(raised, _write(writer.index, targets, again), strict=True):
            results[position] = result
    return [_one_result(of_change) for of_change in results]


def require_encoder(encoders: Mapping[str, Encoder], generation: Generation) -> None:
    """Raises EncoderMismatch unless the generation's encoder is at hand."""
    if generation.encoder_id not in encoders:
        raise EncoderMismatch(
            f"generation {generation.name} ({generation.state}) holds vectors of encoder {generation.encoder_id}, but "
            f"the bundles at hand are {', '.join(encoders) or 'none'}; put its bundle into the index's bundle folder "
            f"(SIMILARITY_BUNDLES), or retire the generation if nobody needs it"
        )


def clean_text(value: object, field_name: str) -> str:
    """A text field: trimmed, NFC; numbers become text; None becomes empty, and NaN, which stands for it in tables.

    Raises:
        InvalidCompany: it is a list, an object, an infinite number or the like.
    """
    if value is None or _is_nan(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidCompany(field_name, f"must be text, not {type(value).__name__}")
    if isinstance(value, float) and not is_finite(value):
        raise InvalidCompany(field_name, "is an infinite number")
    return unicodedata.normalize("NFC", str(value)).strip()


def clean_list(value: object, field_name: str) -> tuple[str, ...]:
    """A list field: a list of texts, or one text with its entries separated by `;` or `|`."""
    if value is None:
        return ()
    entries = value if isinstance(value, list | tuple) else clean_text(value, field_name).replace("|", ";").split(";")
    cleaned = (clean_text(entry, field_name) for entry in entries)
    return tuple(dict.fromkeys(entry for entry in cleaned if entry))


def _encoded(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    try:
        return encoder.encode(texts)
    except Exception as error:
        raise EncodingFailed(f"the encoder failed on {len(texts):,} texts: {error!r:.300}") from error


def _live_last(targets: Sequence[Generation]) -> list[Generation]:
    return sorted(targets, key=lambda target: (target.state is GenerationState.LIVE, target.created_at))


def _stored(index: CompanyIndex, targets: Sequence[Generation], ids: Collection[str]) -> dict[str, EmbeddedCompany]:
    """The newest stored document of each id among generations of one encoder."""
    newest: dict[str, EmbeddedCompany] = {}
    for target in targets:
        with suppress(UnknownGeneration):
            for company_id, document in index.get(target.name, ids).items():
                if company_id not in newest or document.version > newest[company_id].version:
                    newest[company_id] = document
    return newest


def _write(
    index: CompanyIndex, targets: Sequence[Generation], documents: Mapping[str, Documents]
) -> list[tuple[WriteResult, ...]]:
    """For each document, its result in every target, in their order. `documents` are by encoder."""
    results = []
    for target in targets:
        with suppress(UnknownGeneration):  # retired meanwhile, so nobody needs it
            results.append(index.upsert(target.name, documents[target.encoder_id]))
    if not results:
        raise NoLiveGeneration("the index has no generation to write to; create one and register it first")
    return list(zip(*results, strict=True))


def _raised(changes: Sequence[Change], results: Sequence[Sequence[WriteResult]], *, above: int) -> dict[int, int]:
    """A new version, by position, for each untimed change that gave way to a stored version above `above`."""
    raised: dict[int, int] = {}
    newest: dict[str, int] = {}
    for position, (change, of_change) in enumerate(zip(changes, results, strict=True)):
        stored = max((result.version or 0 for result in of_change if result.outcome in GAVE_WAY), default=0)
        if change.untimed and stored > above:
            version = version_above(max(stored, newest.get(change.id, 0)), deleted=isinstance(change, DeletedCompany))
            raised[position] = newest[change.id] = version
    return raised


def _one_result(results: Sequence[WriteResult]) -> WriteResult:
    """What became of one change that went to several generations, the live one last."""
    return next((result for result in results if result.outcome is WriteOutcome.FAILED), results[-1])


def _reads_the_same(known: Company, company: Company) -> bool:
    """Whether two records give the same text without preparing it: the preparation reads only these."""
    return (known.name, known.aliases, known.description) == (company.name, company.aliases, company.description)


def _domain(value: object) -> tuple[str, tuple[str, ...]]:
    try:
        return normalize_domain(clean_text(value, "domain")), ()
    except InvalidCompany as error:
        return "", (f"{error}; left empty",)


def _attributes(record: Record, columns: Columns) -> tuple[dict[str, AttributeValue], tuple[str, ...]]:
    """The attributes, and a warning for each that should be a number, is none, and was left out."""
    attributes: dict[str, AttributeValue] = {}
    warnings: list[str] = []
    for name, column in columns.attributes.items():
        value = record.get(column)
        if isinstance(value, bool | int | float) and not _is_nan(value):
            attributes[name] = value
        elif text := clean_text(value, f"attributes.{name}"):
            if name not in columns.numbers:
                attributes[name] = text
            elif (number := number_of(text)) is not None and _is_storable(number):
                attributes[name] = number
            else:
                warnings.append(f"attributes.{name}: {text!r:.40} is no number; left out")
    return attributes, tuple(warnings)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_storable(number: float) -> bool:
    """Whether a company may have it as an attribute: finite, a whole one of 64 bits."""
    return is_finite(number) if isinstance(number, float) else -(2**63) <= number < 2**63


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = clean_text(value, "deleted").casefold()
    if text in {"", "0", "false", "no"}:
        return False
    if text in {"1", "true", "yes"}:
        return True
    raise InvalidCompany("deleted", f"{value!r:.40} is neither true nor false")


def _event_time(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    text = clean_text(value, "event_time")
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidCompany("event_time", f"{text!r:.60} is not ISO 8601 such as 2026-01-31T12:00:00Z") from None


def utc_now() -> datetime:
    """The clock of composition roots; below them, times are arguments."""
    return datetime.now(UTC)
