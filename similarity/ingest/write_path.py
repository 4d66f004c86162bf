"""The one write path: all records and messages of new, changed or deleted companies go through `write_changes`.

    record -- parse_record --> VersionedCompany | DeletedCompany
           -- embed_changes --> EmbeddedCompany | DeletedCompany -- write_changes --> WriteResult

The command line, the pipelines and the service all call `write_changes`. Only a re-embed, an import of vectors and an
erasure write documents themselves. If the text of a company has not changed, its stored vector is reused and the
encoder is not called. The complete document is still written, with its new version. A webhook after a write of the
service belongs in `services/search/writes/`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
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
from similarity.errors import EncoderMismatch, EncodingFailed, NoLiveGeneration, UnknownGeneration
from similarity.index.protocol import CompanyIndex, Generation, GenerationState, WriteOutcome, WriteResult
from similarity.ingest.former_names import remember_changed_names, remember_names_of_erased
from similarity.ingest.late_changes import received_before_erasure
from similarity.ingest.records import Change
from similarity.ingest.writer_leases import WriterLease
from similarity.model.encoder_protocol import Encoder
from similarity.preparation.language import detect_language
from similarity.text import NO_TEXT, text_hash, text_to_rank_by

MAX_VERSION_RETRIES = 3
"""Maximum number of times that writes which conflict with a stored version are repeated with a higher version."""
VERSION_CONFLICTS = (WriteOutcome.SUPERSEDED, WriteOutcome.REJECTED)
"""Outcomes if a newer version is stored, or the same version with other content.

REJECTED can also have another cause. Then the result has no version, and nothing is retried.
"""
Documents: TypeAlias = list[EmbeddedCompany | DeletedCompany]
OnStored: TypeAlias = Callable[[Mapping[str, EmbeddedCompany]], None]
"""Called before the write, once for each encoder, with the stored companies, by id, that the changes may replace."""


def embed_changes(
    changes: Sequence[Change],
    stored: Mapping[str, EmbeddedCompany],
    encoder: Encoder,
    *,
    now: datetime,
) -> Documents:
    """Return one document per change, in order; a text whose vector is not in `stored` is encoded, and only once.

    `stored`: the stored documents of these companies with vectors of this encoder, by company id. A text with too few
    content words is not encoded; its vector is zeros.

    Raises:
        EncodingFailed: the encoder raised on the texts; no change is embedded.
    """
    vectors: dict[str, Vector] = {}  # by text hash
    texts: dict[str, str] = {}  # by text hash
    hashes: dict[int, str] = {}  # by position of the change
    for position, change in enumerate(changes):
        if isinstance(change, DeletedCompany):
            continue
        previous = stored.get(change.id)
        if previous is not None and _has_same_text(previous.company, change.company):
            hashes[position] = previous.text_hash
            vectors[previous.text_hash] = previous.vector
            continue
        text = text_to_rank_by(change.company, encoder.text_settings)
        hashes[position] = text_hash(text)
        if previous is not None and previous.text_hash == hashes[position]:
            vectors[previous.text_hash] = previous.vector
        texts[hashes[position]] = text
    missing = {key: text for key, text in texts.items() if text and key not in vectors}
    encoded = _encode(encoder, list(missing.values()))
    vectors |= zip(missing, encoded, strict=True)
    vectors[NO_TEXT] = np.zeros(encoded.shape[1], dtype=np.float32)
    documents: Documents = []
    for position, change in enumerate(changes):
        if isinstance(change, DeletedCompany):
            documents.append(change)
            continue
        key = hashes[position]
        previous = stored.get(change.id)
        unchanged = previous if previous is not None and previous.text_hash == key else None
        documents.append(
            EmbeddedCompany(
                company=change.company,
                version=change.version,
                text_hash=key,
                encoder_id=encoder.encoder_id,
                vector=vectors[key],
                embedded_at=unchanged.embedded_at if unchanged else now,
                language=unchanged.language if unchanged else detect_language(change.company.description),
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
    skip_unchanged: bool = False,
    on_stored: OnStored = lambda stored: None,
) -> list[WriteResult]:
    """Embed the changes, write them to every target generation of `writer`, and return one result per change.

    The result of a change is its result in the live generation or, without a live generation, in the newest candidate.
    But if the write to any generation failed, the result is FAILED, and the caller must send the change again.
    `encoders`: encoders by id. Generations of the same encoder share its vectors.

    An untimed change (its record had no event time) has the time of receipt as its version. A conflict with a stored
    version up to `bump_above` is final: the stored company stays. After a conflict with a higher one, the change is
    written again to every generation with the next higher version, at most MAX_VERSION_RETRIES times, unless it was
    received before an erasure of the company. If other writers change the same company each time, its result is
    SUPERSEDED or REJECTED, and the caller must send it again. A load passes the highest version that a correct clock
    can produce, so that it overwrites only versions from a wrong clock.

    `skip_unchanged`: an untimed change with the stored content is not written, and keeps the stored version. Its
    result is UNCHANGED. Use it only for a load: nobody can say whether its rows are older or newer than other writes.

    Raises:
        NoLiveGeneration: there is no generation to write to.
        EncoderMismatch: the encoder of a generation is not among `encoders`.
        EncodingFailed: an encoder raised on the texts.
        IndexUnavailable: the lease cannot be renewed, or the index cannot be read.

    After EncoderMismatch and EncodingFailed, nothing was written, unless a generation was added during the write.
    """
    if skip_unchanged and (unchanged := _unchanged(writer, changes)):
        others = [change for position, change in enumerate(changes) if position not in unchanged]
        results_of_others = (
            write_changes(writer, encoders, others, now=now, bump_above=bump_above, on_stored=on_stored)
            if others
            else ()
        )
        written = iter(results_of_others)
        remember_names_of_erased(writer.index.ledger, [changes[position] for position in unchanged])
        return [unchanged[position] if position in unchanged else next(written) for position in range(len(changes))]
    targets, documents = _embed_for_targets(writer, encoders, changes, now=now, on_stored=on_stored)
    results = _write(writer.index, targets, documents)
    for _ in range(MAX_VERSION_RETRIES):
        bumped = _bumped_versions(changes, results, above=bump_above)
        late = received_before_erasure(writer.index.ledger, changes) if bumped else frozenset()
        bumped = {position: version for position, version in bumped.items() if position not in late}
        if not bumped:
            break
        # Another writer has replaced the company since it was read, so the names that it stored are remembered too.
        replaced = _stored(writer.index, targets[-1:], {changes[position].id for position in bumped})
        remember_changed_names(writer.index.ledger, [changes[position] for position in bumped], replaced)
        bumped_documents = {
            encoder_id: [replace(embedded[position], version=version) for position, version in bumped.items()]
            for encoder_id, embedded in documents.items()
        }
        for position, result in zip(bumped, _write(writer.index, targets, bumped_documents), strict=True):
            results[position] = result
    remember_names_of_erased(writer.index.ledger, changes)
    combined = [_combined_result(target_results) for target_results in results]
    if {target.name for target in writer.targets()} - {target.name for target in targets}:
        # The process slept past its lease during the write, so a re-embed did not wait for it, and missed the changes.
        again = write_changes(writer, encoders, changes, now=now, bump_above=bump_above)
        return [_first_or(repeated, before=each) for repeated, each in zip(again, combined, strict=True)]
    return combined


def _unchanged(writer: WriterLease, changes: Sequence[Change]) -> dict[int, WriteResult]:
    """Return an UNCHANGED result, by position, for each untimed change whose content every generation already stores.

    All target generations must store it in the same version. If the changes of a company differ in content, none of
    them is unchanged: the newest may be the one with the stored content.
    """
    ids = {change.id for change in changes}
    stored: list[tuple[dict[str, int], dict[str, EmbeddedCompany]]] = []
    for target in writer.targets():
        with suppress(UnknownGeneration):
            versions = writer.index.stored_versions(target.name, ids)
            stored.append((versions, writer.index.get(target.name, versions)))
    contents: dict[str, set[str]] = {company_id: set() for company_id in ids}
    for change in changes:
        contents[change.id].add(_content_of(change))
    results: dict[int, WriteResult] = {}
    for position, change in enumerate(changes):
        held = {versions.get(change.id) for versions, _ in stored}
        if not change.untimed or len(held) != 1 or None in held:
            continue
        companies = [companies.get(change.id) for _, companies in stored]
        if all({_content_of(company)} == contents[change.id] for company in companies):
            results[position] = WriteResult(id=change.id, outcome=WriteOutcome.UNCHANGED, version=held.pop())
    return results


def _content_of(change: Change | EmbeddedCompany | None) -> str:
    """Return the content of a company as text; empty for a deleted one."""
    return "" if change is None or isinstance(change, DeletedCompany) else change.company.content_text()


def _embed_for_targets(
    writer: WriterLease,
    encoders: Mapping[str, Encoder],
    changes: Sequence[Change],
    *,
    now: datetime,
    on_stored: OnStored,
) -> tuple[list[Generation], dict[str, Documents]]:
    """Return the target generations, the live one last, and the documents to write, by the id of their encoder."""
    ids = {change.id for change in changes}
    documents: dict[str, Documents] = {}
    targets = _live_last(writer.targets())
    while missing := [target for target in targets if target.encoder_id not in documents]:
        for target in missing:
            require_encoder(encoders, target)
        for encoder_id in dict.fromkeys(target.encoder_id for target in missing):
            stored = _stored(writer.index, [target for target in targets if target.encoder_id == encoder_id], ids)
            on_stored(stored)
            remember_changed_names(writer.index.ledger, changes, stored)
            documents[encoder_id] = embed_changes(changes, stored, encoders[encoder_id], now=now)
            # Other processes may have written some of these companies while texts were encoded.
            since = _changed_since(writer.index, targets, stored, ids)
            remember_changed_names(writer.index.ledger, [each for each in changes if each.id in since], since)
        # While the texts were encoded, a generation of another encoder may have become a target.
        targets = _live_last(writer.targets())
    return targets, documents


def _changed_since(
    index: CompanyIndex, targets: Sequence[Generation], stored: Mapping[str, EmbeddedCompany], ids: Collection[str]
) -> dict[str, EmbeddedCompany]:
    """Return the companies among `ids` whose version in the last of `targets` differs from `stored`."""
    name = targets[-1].name
    with suppress(UnknownGeneration):
        versions = index.stored_versions(name, ids)
        changed = [each for each in versions if each not in stored or stored[each].version != versions[each]]
        return index.get(name, changed)
    return {}


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
    # Not `Exception`: a panic of the tokenizer, which is written in Rust, is a BaseException.
    except BaseException as error:
        raise EncodingFailed(f"the encoder failed on {len(texts):,} texts: {error!r:.300}") from error


def _live_last(targets: Sequence[Generation]) -> list[Generation]:
    """Return the generations sorted by age, the live one last, so that it is written to after all others."""
    return sorted(targets, key=lambda target: (target.state is GenerationState.LIVE, target.created_at))


def _stored(index: CompanyIndex, targets: Sequence[Generation], ids: Collection[str]) -> dict[str, EmbeddedCompany]:
    """Return the newest stored document of each id in these generations, which have the same encoder.

    If several have the same version, the result is from the last generation: the live one, if it is among them.
    """
    newest: dict[str, EmbeddedCompany] = {}
    for target in reversed(targets):
        with suppress(UnknownGeneration):
            for company_id, document in index.get(target.name, ids).items():
                if company_id not in newest or document.version > newest[company_id].version:
                    newest[company_id] = document
    return newest


def _write(
    index: CompanyIndex, targets: Sequence[Generation], documents: Mapping[str, Documents]
) -> list[tuple[WriteResult, ...]]:
    """Write `documents` (by encoder id) to their targets; return for each document its results, one per target.

    A generation that was retired in the meantime has no results.
    """
    results = []
    for target in targets:
        with suppress(UnknownGeneration):
            results.append(index.upsert(target.name, documents[target.encoder_id]))
    if not results:
        raise NoLiveGeneration(
            "the index has no generation to write to; create the first one with: similarity ingest FILE"
        )
    return list(zip(*results, strict=True))


def _bumped_versions(
    changes: Sequence[Change], results: Sequence[Sequence[WriteResult]], *, above: int
) -> dict[int, int]:
    """Return the next higher version of each untimed change that conflicts with a stored version above `above`.

    Later untimed changes of the same company get higher versions, so that the last change stays. The result is by
    position in `changes`. `results`: for each change its results, one per target.
    """
    bumped: dict[int, int] = {}
    newest: dict[str, int] = {}
    for position, (change, target_results) in enumerate(zip(changes, results, strict=True)):
        conflicts = [result.version or 0 for result in target_results if result.outcome in VERSION_CONFLICTS]
        stored = max(conflicts, default=0)
        if change.untimed and (stored > above or change.id in newest):
            version = version_above(max(stored, newest.get(change.id, 0)), deleted=isinstance(change, DeletedCompany))
            bumped[position] = newest[change.id] = version
    return bumped


def _combined_result(results: Sequence[WriteResult]) -> WriteResult:
    """Return a failed result if there is one, otherwise the last result.

    The last result is from the live generation or, if none is live, from the newest candidate.
    """
    return next((result for result in results if result.outcome is WriteOutcome.FAILED), results[-1])


def _first_or(repeated: WriteResult, *, before: WriteResult) -> WriteResult:
    """Return the result of a change that was written twice: the second write finds what the first one applied."""
    was_applied = before.outcome is WriteOutcome.APPLIED and repeated.outcome is WriteOutcome.UNCHANGED
    return before if was_applied else repeated


def _has_same_text(previous: Company, company: Company) -> bool:
    """Return whether both companies have the same embedding text, which depends on these three fields only."""
    return (previous.name, previous.aliases, previous.description) == (
        company.name,
        company.aliases,
        company.description,
    )
