"""`add_companies`: write a list of records or a DataFrame to an index with one call.

index = open_index("companies.db", create=True)
add_companies(index, frame.to_dict("records"))
for hit in Searcher(index).search("nike").hits:
    print(hit.company.name, hit.probability)
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice

from similarity.company import Company, utc_now, version_of
from similarity.encoder import TextEncoder
from similarity.errors import InvalidCompany, InvalidInput
from similarity.generations.first import ensure_generation, promote_first
from similarity.index.attributes import AttributeSchema
from similarity.index.bundle_store import bundle_for, keep_bundle, store_folder
from similarity.index.protocol import CompanyIndex, WriteResult
from similarity.ingest.records import Columns, ParsedRecord, VersionedCompany, parse_record
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
    record for each field; attributes that the index declares are kept without being named. The reason of a result says
    which values were ignored. The first call creates the first generation of the index and promotes it. Stored texts
    are not encoded again. SIMILARITY_BUNDLES is needed only if the bundles are not stored next to the index.

    Raises:
        InvalidCompany: a record breaks a rule; the message has its position and id. The chunks before it are written.
        InvalidInput: an item is neither a company nor a record.
        EncoderMismatch: the index has vectors of another encoder.
    """
    now = utc_now()
    chunks = _chunks(companies, _with_declared(columns or Columns(), index.attributes()), now)
    first = next(chunks, None)
    if first is None:
        return []
    settings = Settings.from_environment(os.environ)
    store = store_folder(index.location, settings.bundles)
    encoder = encoder or TextEncoder(bundle_for(index, store, chosen=settings.bundle))
    generation = ensure_generation(index, encoder.bundle, now=now)
    keep_bundle(encoder.bundle, store)
    results: list[WriteResult] = []
    with WriterLease(index) as writer:
        for parsed in chain([first], chunks):
            written = write_changes(writer, {encoder.encoder_id: encoder}, [each.change for each in parsed], now=now)
            results += [
                replace(result, reason=result.reason or "; ".join(each.warnings))
                for each, result in zip(parsed, written, strict=True)
            ]
    promote_first(index, generation)
    return results


def _with_declared(columns: Columns, declared: AttributeSchema) -> Columns:
    """Return the columns with the attributes that the index declares."""
    named = {name: name for name in declared.types}
    return replace(columns, attributes=named | dict(columns.attributes), schema=declared.updated(columns.schema))


def _chunks(
    companies: Iterable[Company | Mapping[str, object]], columns: Columns, now: datetime
) -> Iterator[list[ParsedRecord]]:
    version = version_of(now, now=now)
    numbered = enumerate(companies)
    while chunk := list(islice(numbered, CHUNK)):
        yield [
            ParsedRecord(change=VersionedCompany(company=each, version=version, untimed=True))
            if isinstance(each, Company)
            else _parsed(position, each, columns, now)
            for position, each in chunk
        ]


def _parsed(position: int, item: object, columns: Columns, now: datetime) -> ParsedRecord:
    if not isinstance(item, Mapping):
        raise InvalidInput(
            f"companies[{position}], {item!r:.40}, is neither a company nor a record; pass add_companies a list of "
            'Company or of dicts with id, name and description, such as frame.to_dict("records")'
        )
    try:
        return parse_record(item, columns=columns, now=now)
    except InvalidCompany as error:
        company_id = columns.value(item, "id")
        raise InvalidCompany(
            error.field, f"{error.reason}, in companies[{position}] (id {company_id!r:.140})"
        ) from None
