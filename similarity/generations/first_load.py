"""`add_companies`: write a list of records or a DataFrame to an index with one call.

index = open_index("companies.db", create=True)
add_companies(index, frame.to_dict("records"))
for hit in Searcher(index).search("nike").hits:
    print(hit.company.name, hit.probability)
"""

import os
from collections.abc import Iterable, Mapping
from itertools import islice

from similarity.company import Company, utc_now, version_of
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.first import ensure_generation, promote_first
from similarity.index.bundle_store import bundle_for, keep_bundle, store_folder
from similarity.index.protocol import CompanyIndex, WriteResult
from similarity.ingest.records import Columns, VersionedCompany, parse_record
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
    record for each field. The first call creates the first generation of the index and promotes it. Stored texts are
    not encoded again. SIMILARITY_BUNDLES is needed only if the bundles are not stored next to the index.

    Raises:
        InvalidCompany: a record breaks a rule; the chunks before it are written.
        InvalidInput: an item is neither a company nor a record.
        EncoderMismatch: the index has vectors of another encoder.
    """
    now = utc_now()
    settings = Settings.from_environment(os.environ)
    store = store_folder(index.location, settings.bundles)
    encoder = encoder or TextEncoder(bundle_for(index, store, chosen=settings.bundle))
    generation = ensure_generation(index, encoder.bundle, now=now)
    keep_bundle(encoder.bundle, store)
    version = version_of(now, now=now)
    results: list[WriteResult] = []
    remaining = iter(companies)
    with WriterLease(index) as writer:
        while chunk := list(islice(remaining, CHUNK)):
            changes = [
                VersionedCompany(company=each, version=version, untimed=True)
                if isinstance(each, Company)
                else parse_record(_record(each), columns=columns or Columns(), now=now).change
                for each in chunk
            ]
            results += write_changes(writer, {encoder.encoder_id: encoder}, changes, now=now)
    promote_first(index, generation)
    return results


def _record(item: object) -> Mapping[str, object]:
    if isinstance(item, Mapping):
        return item
    raise InvalidInput(
        f"{item!r:.40} is neither a company nor a record; pass add_companies a list of Company or of dicts "
        'with id, name and description, such as frame.to_dict("records")'
    )
