"""`add_companies`: write a list of records or a DataFrame to an index with one call.

index = open_index("companies.db", create=True)
add_companies(index, frame.to_dict("records"))
for hit in Searcher(index).search("nike").hits:
    print(hit.company.name, hit.probability)
"""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice

from similarity.company import Company, EmbeddedCompany, utc_now, version_of
from similarity.encoder import TextEncoder
from similarity.errors import InvalidCompany, InvalidInput
from similarity.generations.new import ensure_generation, promote_first
from similarity.index.bundle_store import bundle_for, keep_bundle, store_folder
from similarity.index.protocol import CompanyIndex, WriteOutcome, WriteResult
from similarity.ingest.file_columns import FileColumns, KnownAttributes, first_companies, match_columns
from similarity.ingest.records import (
    Columns,
    ParsedRecord,
    Record,
    VersionedCompany,
    column_names_of,
    parse_record,
    removed_fields,
)
from similarity.ingest.renewed_leases import LoadLease
from similarity.ingest.write_path import write_changes
from similarity.ingest.writer_leases import WriterLease
from similarity.settings import Settings

CHUNK = 1_024


def add_companies(
    index: CompanyIndex,
    companies: Iterable[Company | Mapping[str, object]],
    *,
    encoder: TextEncoder | None = None,
    columns: Columns | None = None,
) -> list[WriteResult]:
    """Embed and write companies, or records with the fields of a company; return one result for each, in order.

    `encoder`: by default the encoder of the index, else the one that ships with the project. `columns`: the key of a
    record for each field and attribute, and the types of attributes, which the index then declares. Other keys are
    matched as the columns of a file are: to fields, ignoring case, and to attributes that the index declares or that
    its companies have. The reason of a result says which values and keys were ignored, which stored values the record
    removed because it lacks them, and which later record with the same id replaced it. A record that breaks a rule is
    rejected: its result has the reason, a warning counts such records, and the others are written. A company that is
    stored with the same content is unchanged. The first call creates the first generation of the index and promotes
    it. Stored texts are not encoded again. SIMILARITY_BUNDLES is needed only if the bundles are not stored next to the
    index.

    Raises:
        InvalidInput: an item is neither a company nor a record, or several of its keys could be one field.
        EncoderMismatch: the index has vectors of another encoder.
        LeaseHeld: another load of this index runs; nothing was written.
        LeaseLost: this process slept past its lease, and another load may have run; earlier companies are written.
    """
    with LoadLease(index) as lease, WriterLease(index) as writer:
        now = utc_now()
        columns = columns or Columns()
        chunks = _Records(columns, KnownAttributes.of_index(index), now).chunks(companies)
        first = next(chunks, None)
        if first is None:
            return []
        settings = Settings.from_environment(os.environ)
        store = store_folder(index.location, settings.bundles)
        encoder = encoder or TextEncoder(bundle_for(index, store, chosen=settings.bundle))
        generation = ensure_generation(index, encoder.bundle, now=now)
        keep_bundle(encoder.bundle, store)
        for warning in index.attributes().retyped_by(columns.schema, first_companies(index)):
            warnings.warn(warning, stacklevel=2)
        index.declare(columns.schema)
        results: list[WriteResult] = []
        for items in chain([first], chunks):
            lease.held()
            parsed = [each for each in items if isinstance(each, ParsedRecord)]
            changes = [each.change for each in parsed]
            before: dict[str, EmbeddedCompany] = {}
            written = write_changes(
                writer,
                {encoder.encoder_id: encoder},
                changes,
                now=now,
                skip_unchanged=True,
                on_stored=before.update,
            )
            outcomes = (
                replace(result, reason="; ".join(filter(None, (result.reason, *each.warnings, _removed(each, before)))))
                for each, result in zip(parsed, written, strict=True)
            )
            results += [each if isinstance(each, WriteResult) else next(outcomes) for each in items]
        promote_first(index, generation)
    if rejected := [result for result in results if result.outcome is WriteOutcome.REJECTED]:
        text = (
            f"{len(rejected)} of {len(results)} companies were not written, the first because of {rejected[0].reason}"
        )
        warnings.warn(text, stacklevel=2)
    return _with_replaced(results)


def _with_replaced(results: Sequence[WriteResult]) -> list[WriteResult]:
    """Return the results; if a later record has replaced a company, the reason of its result says so."""
    last = {result.id: position for position, result in enumerate(results) if result.outcome is WriteOutcome.APPLIED}
    return [
        replace(result, reason="; ".join(filter(None, (f"replaced by companies[{last[result.id]}]", result.reason))))
        if result.outcome is WriteOutcome.APPLIED and last[result.id] > position
        else result
        for position, result in enumerate(results)
    ]


class _Records:
    """Turns companies and records into changes; finds the fields once for each set of keys."""

    def __init__(self, columns: Columns, known: KnownAttributes, now: datetime) -> None:
        self._columns = columns
        self._known = known
        self._now = now
        self._found: dict[tuple[object, ...], FileColumns] = {}

    def chunks(self, companies: Iterable[Company | Mapping[str, object]]) -> Iterator[list[ParsedRecord | WriteResult]]:
        numbered = enumerate(companies)
        while chunk := list(islice(numbered, CHUNK)):
            yield [self._parsed(position, each) for position, each in chunk]

    def _parsed(self, position: int, item: object) -> ParsedRecord | WriteResult:
        """Return the change of an item, or the result of one that breaks a rule."""
        if isinstance(item, Company):
            version = version_of(self._now, now=self._now)
            return ParsedRecord(change=VersionedCompany(company=item, version=version, untimed=True))
        if not isinstance(item, Mapping):
            raise InvalidInput(
                f"companies[{position}], {item!r:.40}, is neither a company nor a record; pass add_companies a list of "
                'Company or of dicts with id, name and description, such as frame.to_dict("records")'
            )
        found = self._found_columns(position, item)
        try:
            parsed = parse_record(item, columns=found.columns, now=self._now)
        except InvalidCompany as error:
            company_id = found.columns.value(item, "id")
            reason = f"{error}, in companies[{position}] (id {company_id!r:.140})"
            return WriteResult(id=str(company_id or "")[:140], outcome=WriteOutcome.REJECTED, reason=reason)
        return replace(parsed, warnings=(*parsed.warnings, *_ignored(found)))

    def _found_columns(self, position: int, record: Record) -> FileColumns:
        keys = (*record, *column_names_of(record))
        if keys not in self._found:
            names = column_names_of({key: value for key, value in record.items() if isinstance(key, str)})
            try:
                found = match_columns(names, self._columns, known=self._known, option=_argument)
            except InvalidInput as error:
                raise InvalidInput(f"companies[{position}]: {error}") from None
            others = [str(key) for key in record if not isinstance(key, str)]
            self._found[keys] = replace(found, ignored=[*found.ignored, *others])
        return self._found[keys]


def _ignored(found: FileColumns) -> list[str]:
    """Return one text that lists the ignored keys and says how to keep one; no text if no key is ignored."""
    if not found.ignored:
        return []
    return [f"ignored: {found.ignored_text}; keep one as an attribute with {_argument('attribute', 'NAME')}"]


def _removed(parsed: ParsedRecord, before: Mapping[str, EmbeddedCompany]) -> str:
    """Return a text that names the stored values that a record removes, because it lacks them; empty without any."""
    change = parsed.change
    if not isinstance(change, VersionedCompany) or change.id not in before:
        return ""
    removed = removed_fields(before[change.id].company, change.company, {}, Columns())
    return f"removed, because the record lacks them: {', '.join(removed)}" if removed else ""


def _argument(kind: str, name: str) -> str:
    """Return the argument of `add_companies` that names a column."""
    return f"columns=Columns({'attributes' if kind == 'attribute' else 'fields'}={{{name!r}: KEY}})"
