"""From changes to documents in an index: pure steps that the command line, pipelines and API share.

    record -- parse_record --> VersionedCompany | DeletedCompany
           -- embed_changes --> EmbeddedCompany | DeletedCompany -- write_changes --> WriteResult

An unchanged text skips only the encoder: its stored vector is reused, and the document is written
whole at its new version all the same.
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
from similarity.ingest.former_names import remember_lost_names
from similarity.ingest.records import Change
from similarity.ingest.writers import Writer
from similarity.model.encoder_protocol import Encoder
from similarity.preparation.language import detect_language
from similarity.text import embedding_text, text_hash

RAISES = 3
GAVE_WAY = (WriteOutcome.SUPERSEDED, WriteOutcome.REJECTED)
"""Another version is stored, or the same one with other content."""
Documents: TypeAlias = list[EmbeddedCompany | DeletedCompany]


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
