"""The one write path: every new, changed or deleted company reaches an index through `write_changes`.

    record -- parse_record --> VersionedCompany | DeletedCompany
           -- embed_changes --> EmbeddedCompany | DeletedCompany -- write_changes --> WriteResult

The command line, the pipelines and the service all call it. If a text has not changed, its stored vector is
reused and the encoder is not called; the complete document is still written with its new version.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import (
    Company,
    DeletedCompany,
    EmbeddedCompany,
    Vector,
    version_above,
)
from similarity.errors import (
    EncoderMismatch,
    EncodingFailed,
    NoLiveGeneration,
    UnknownGeneration,
)
from similarity.index.protocol import CompanyIndex, Generation, GenerationState, WriteOutcome, WriteResult
from similarity.ingest.former_names import remember_changed_names, remember_names_of_erased
from similarity.ingest.records import Change
from similarity.ingest.writer_leases import WriterLease
from similarity.model.encoder_protocol import Encoder
from similarity.preparation.language import detect_language
from similarity.text import embedding_text, text_hash

MAX_VERSION_RETRIES = 3
VERSION_CONFLICT = (WriteOutcome.SUPERSEDED, WriteOutcome.REJECTED)
"""A newer version is stored, or the same version with other content."""
Documents: TypeAlias = list[EmbeddedCompany | DeletedCompany]


def embed_changes(
    changes: Sequence[Change],
    stored: Mapping[str, EmbeddedCompany],
    encoder: Encoder,
    *,
    now: datetime,
) -> Documents:
    """Return the documents to write, in order. Each text that `stored` does not hold is encoded, once.

    `stored`: the documents of these ids in the generations of `encoder`, by id.

    Raises:
        EncodingFailed: the encoder raised on the texts; none of these changes is embedded.
    """
    vectors: dict[str, Vector] = {}
    texts: dict[str, str] = {}
    hashes: dict[int, str] = {}
    for position, change in enumerate(changes):
        if isinstance(change, DeletedCompany):
            continue
        known = stored.get(change.id)
        if known is not None and _has_same_text(known.company, change.company):
            hashes[position] = known.text_hash
            vectors[known.text_hash] = known.vector
            continue
        text = embedding_text(change.company, encoder.text_settings)
        hashes[position] = text_hash(text)
        if known is not None and known.text_hash == hashes[position]:
            vectors[known.text_hash] = known.vector
        texts[hashes[position]] = text
    missing = {key: text for key, text in texts.items() if key not in vectors}
    vectors |= zip(missing, _encode(encoder, list(missing.values())), strict=True)
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
    writer: WriterLease,
    encoders: Mapping[str, Encoder],
    changes: Sequence[Change],
    *,
    now: datetime,
    bump_above: int = 0,
) -> list[WriteResult]:
    """Embed the changes and write them to every generation that must have them; return one result per change.

    Each result is that of the live generation, or of the newest candidate if there is no live generation. If any
    generation did not accept a change, its result is FAILED and the caller must send it again. A text is encoded
    once for all generations of one encoder.

    If an untimed change conflicts with a stored version above `bump_above`, it is written again to every generation
    with the next higher version, at most MAX_VERSION_RETRIES times. If other writers change the same company each
    time, its result is still SUPERSEDED or REJECTED, and the caller must send it again.

    Raises:
        NoLiveGeneration: there is no generation to write to.
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
            remember_changed_names(writer.index.ledger, changes, stored)
            documents[encoder_id] = embed_changes(changes, stored, encoders[encoder_id], now=now)
            # Other processes may have written these companies while texts were encoded.
            remember_changed_names(writer.index.ledger, changes, _changed_since(writer.index, targets, stored, ids))
        targets = _live_last(writer.targets())  # a generation may have been added while texts were encoded
    results = _write(writer.index, targets, documents)
    for _ in range(MAX_VERSION_RETRIES):
        bumped = _bumped_versions(changes, results, above=bump_above)
        if not bumped:
            break
        replaced = writer.index.get(targets[-1].name, {changes[position].id for position in bumped})
        remember_changed_names(writer.index.ledger, [changes[position] for position in bumped], replaced)
        again = {
            encoder_id: [replace(embedded[position], version=version) for position, version in bumped.items()]
            for encoder_id, embedded in documents.items()
        }
        for position, result in zip(bumped, _write(writer.index, targets, again), strict=True):
            results[position] = result
    remember_names_of_erased(writer.index.ledger, changes)
    return [_one_result(of_change) for of_change in results]


def _changed_since(
    index: CompanyIndex, targets: Sequence[Generation], stored: Mapping[str, EmbeddedCompany], ids: Collection[str]
) -> dict[str, EmbeddedCompany]:
    """Return the companies among `ids` whose version in the last of `targets` is not that of `stored`."""
    name = targets[-1].name
    versions = index.stored_versions(name, ids)
    return index.get(name, [each for each in versions if each not in stored or stored[each].version != versions[each]])


def require_encoder(encoders: Mapping[str, Encoder], generation: Generation) -> None:
    """Raise EncoderMismatch if the encoder of the generation is not among `encoders`."""
    if generation.encoder_id not in encoders:
        raise EncoderMismatch(
            f"generation {generation.name} ({generation.state}) holds vectors of encoder {generation.encoder_id}, but "
            f"only these are available: {', '.join(encoders) or 'none'}; put its bundle into the index's bundle folder "
            "(SIMILARITY_BUNDLES), or retire the generation if nobody needs it"
        )


def _encode(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    try:
        return encoder.encode(texts)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the tokenizer, which is written in Rust, is not an Exception
        raise EncodingFailed(f"the encoder failed on {len(texts):,} texts: {error!r:.300}") from error


def _live_last(targets: Sequence[Generation]) -> list[Generation]:
    return sorted(targets, key=lambda target: (target.state is GenerationState.LIVE, target.created_at))


def _stored(index: CompanyIndex, targets: Sequence[Generation], ids: Collection[str]) -> dict[str, EmbeddedCompany]:
    """Return the newest stored document of each id among generations of one encoder."""
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
    """Return one tuple per document with its result in each of `targets`. `documents` is keyed by encoder id."""
    results = []
    for target in targets:
        with suppress(UnknownGeneration):  # retired meanwhile
            results.append(index.upsert(target.name, documents[target.encoder_id]))
    if not results:
        raise NoLiveGeneration("the index has no generation to write to; create one and register it first")
    return list(zip(*results, strict=True))


def _bumped_versions(
    changes: Sequence[Change], results: Sequence[Sequence[WriteResult]], *, above: int
) -> dict[int, int]:
    """Return {position: new version} for the untimed changes that conflict with a stored version above `above`."""
    bumped: dict[int, int] = {}
    newest: dict[str, int] = {}
    for position, (change, of_change) in enumerate(zip(changes, results, strict=True)):
        stored = max((result.version or 0 for result in of_change if result.outcome in VERSION_CONFLICT), default=0)
        if change.untimed and stored > above:
            version = version_above(max(stored, newest.get(change.id, 0)), deleted=isinstance(change, DeletedCompany))
            bumped[position] = newest[change.id] = version
    return bumped


def _one_result(results: Sequence[WriteResult]) -> WriteResult:
    """Return the result of one change from its results per generation, the live one last: FAILED if any is FAILED."""
    return next((result for result in results if result.outcome is WriteOutcome.FAILED), results[-1])


def _has_same_text(known: Company, company: Company) -> bool:
    """Return whether both companies have the same embedding text, which depends on these three fields only."""
    return (known.name, known.aliases, known.description) == (company.name, company.aliases, company.description)
