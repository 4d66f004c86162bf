"""Checks and error messages that all indexes share: documents, names, vectors, encoders, states, leases."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from similarity.company import CLOCK_SKEW_ALLOWANCE, ID_PATTERN, DeletedCompany, EmbeddedCompany, Vector, name_key
from similarity.errors import (
    EncoderMismatch,
    GenerationConflict,
    IndexUnavailable,
    InvalidFilter,
    InvalidInput,
    NoLiveGeneration,
    UnknownGeneration,
)
from similarity.formats.normal_forms import normalized, without_marks
from similarity.index.cjk import with_bigrams
from similarity.index.protocol import Generation, GenerationState, Lease
from similarity.model.ranker import Ranker, ranker_from_json
from similarity.text import NO_TEXT

GENERATION_NAME_PATTERN = re.compile(r"[a-z0-9-]{1,64}")
WRITTEN_STATES = (GenerationState.CANDIDATE, GenerationState.LIVE, GenerationState.PREVIOUS)
MAX_RESOLVED = 300
"""The most companies of one domain or name that `CompanyIndex.resolve` returns."""
MAX_VERSION = 2**63 - 1
NORM_TOLERANCE = 1e-3
MAX_CHARACTERS_FOUND = 50_000_000
"""The limit of the characters of all companies that one search returns: they are in memory together, at up to 4 bytes a
character. 200 of the longest descriptions fit."""
LONGEST_LEASE_SECONDS = 3_600


class UnstorableDocument(Exception):
    """A document that cannot be stored; its message is the reason of a rejected WriteResult."""


def check_document(document: EmbeddedCompany | DeletedCompany, *, dimension: int) -> None:
    """Raise UnstorableDocument if its version, time or vector is unusable.

    The vector must be float32 `[dimension]` with norm 1, or zeros if `text_hash` is NO_TEXT.
    """
    if not 0 <= document.version <= MAX_VERSION:
        raise UnstorableDocument(f"version {document.version} is not between 0 and 2^63 - 1")
    if isinstance(document, DeletedCompany):
        return
    if document.embedded_at.tzinfo is None:
        raise UnstorableDocument("embedded_at has no time zone; use datetime.now(UTC)")
    problem = vector_problem(document.vector, dimension=dimension, may_be_zeros=document.text_hash == NO_TEXT)
    if problem:
        raise UnstorableDocument(problem)


def unreadable(company_id: str, error: Exception) -> IndexUnavailable:
    """Return the error for a stored company that breaks a rule: it is damaged, or another program wrote it."""
    return IndexUnavailable(
        f"the stored company {company_id!r} cannot be read ({error!s:.200}); restore a backup, or make the index anew"
    )


def vector_problem(vector: Vector, *, dimension: int, may_be_zeros: bool = False) -> str:
    """Return why a vector cannot be used; empty if it is float32 `[dimension]` with norm 1, or zeros if it may be."""
    if not isinstance(vector, np.ndarray) or vector.dtype != np.float32:
        return f"the vector is {getattr(vector, 'dtype', type(vector).__name__)}; it must be a float32 array"
    if vector.shape != (dimension,):
        return f"the vector has shape {list(vector.shape)}; this generation holds [{dimension}]"
    norm = float(np.sqrt(np.dot(vector, vector)))
    if abs(norm - 1) <= NORM_TOLERANCE or (may_be_zeros and norm == 0):
        return ""
    if not np.isfinite(vector).all():
        return "the vector holds values that are not finite numbers"
    return f"the vector has norm {norm:.4g}; divide it by its norm"


def same_version_reason(version: int) -> str:
    """Return the reason for a document whose version is stored with other content."""
    return f"version {version} is stored with other content; send this content with a newer version"


def check_query(vector: Vector, *, k: int, dimension: int) -> None:
    """Raise InvalidInput if k is below 1, or the query is not a unit vector of the generation's dimension."""
    problem = vector_problem(vector, dimension=dimension)
    if problem or k < 1:
        raise InvalidInput(problem or f"k is {k}; ask for at least one neighbour")


def check_characters_found(characters: int) -> None:
    """Raise InvalidInput if the companies that a search has read have too many characters in all."""
    if characters > MAX_CHARACTERS_FOUND:
        raise InvalidInput(
            f"the nearest companies have more than {MAX_CHARACTERS_FOUND:,} characters in all; use a smaller k, an "
            "earlier page, or filters"
        )


def check_batch_size(batch_size: int) -> None:
    """Raise InvalidInput if it is below 1."""
    if batch_size < 1:
        raise InvalidInput(f"batch_size is {batch_size}; read at least one document at a time")


def stored_ranker(generation: str, content: object) -> Ranker | None:
    """Return the ranker of a stored generation. Raises IndexUnavailable if this release cannot read it."""
    try:
        return ranker_from_json(content)
    except (ValueError, TypeError) as error:
        raise IndexUnavailable(
            f"the ranker of generation {generation!r:.80} cannot be read ({error}): if a newer release wrote it, "
            "upgrade this installation; otherwise restore a backup or snapshot",
            reason="the ranker of a generation cannot be read; the service's log says what to do",
        ) from error


def check_new_generation(generation: Generation) -> None:
    """Raise InvalidInput if its name, dimension or state cannot be stored."""
    if not GENERATION_NAME_PATTERN.fullmatch(generation.name):
        raise InvalidInput(f"generation name {generation.name!r:.80} must be 1-64 of a-z, 0-9 and '-'")
    if generation.dimension < 1:
        raise InvalidInput(f"a generation needs a dimension of at least 1, not {generation.dimension}")
    if generation.state is not GenerationState.BUILDING:
        raise InvalidInput(f"a new generation is building, not {generation.state}; register and promote it later")


def refuse_other_encoders(generation: Generation, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> None:
    """Raise EncoderMismatch if a document's vector is of another encoder than the generation's."""
    for document in documents:
        if isinstance(document, EmbeddedCompany) and document.encoder_id != generation.encoder_id:
            raise EncoderMismatch(
                f"{document.id!r} was embedded by {document.encoder_id!r}, but generation {generation.name!r} holds "
                f"vectors of {generation.encoder_id!r}; embed it again, or write to a generation of its encoder"
            )


def name_taken(name: str) -> GenerationConflict:
    """Return the error for a generation name that is in use."""
    return GenerationConflict(f"generation {name!r} exists already; choose another name or retire it")


def unknown_generation(name: str, known: Sequence[str]) -> UnknownGeneration:
    """Return the error for a generation that does not exist (any more)."""
    return UnknownGeneration(f"there is no generation {name!r:.80}; this index holds: {', '.join(known) or 'none'}")


def no_live_generation() -> NoLiveGeneration:
    """Return the error for an index without a live generation."""
    return NoLiveGeneration("this index has no live generation yet; ingest companies, or promote a filled generation")


def require_state(generation: Generation, state: GenerationState, step: str) -> None:
    """Raise GenerationConflict unless the generation is in this state; `step` reads "be promoted"."""
    if generation.state is not state:
        raise GenerationConflict(f"generation {generation.name!r} is {generation.state}; only a {state} one can {step}")


def live_retired(name: str) -> GenerationConflict:
    """Return the error for retiring the live generation."""
    return GenerationConflict(f"generation {name!r} is live; promote another or roll back before retiring it")


def nothing_before(live: str) -> GenerationConflict:
    """Return the error for a rollback without a previous generation."""
    return GenerationConflict(f"no generation was live before {live!r}; there is nothing to go back to")


def lagging_behind(target: str, live: str, count: int, ids: Sequence[str]) -> GenerationConflict:
    """Return the error for a rollback to a generation that lacks `count` changes, of companies such as `ids`."""
    named = ", ".join(ids) + (", ..." if count > len(ids) else "")
    return GenerationConflict(
        f"generation {target!r} lacks the newest version of {count:,} documents of {live!r} ({named}); write them to "
        "it first, or roll back with force to serve the older ones"
    )


def generations_changed() -> GenerationConflict:
    """Return the error for a rollback while another process changes the generations."""
    return GenerationConflict("another process promoted or rolled back meanwhile; list the generations again")


def ranges_would_miss(generation: str) -> InvalidFilter:
    """Return the error for a range filter on a generation with companies whose numbers are not indexed."""
    return InvalidFilter(
        f"generation {generation!r} holds companies written by a release without range filters, and at_least and "
        "at_most would miss them; stop all processes of that release and copy the generation (similarity generations "
        "copy, which encodes nothing), or remove the range"
    )


def check_lease_request(name: str, holder: str, seconds: float) -> None:
    """Raise InvalidInput unless name and holder are 1-128 of `[A-Za-z0-9._:-]` and 0 < seconds <= an hour."""
    for what, text in (("lease", name), ("holder", holder)):
        if not ID_PATTERN.fullmatch(text):
            raise InvalidInput(f"the {what} {text!r:.140} must be 1-128 letters, digits, '.', '_', ':' or '-'")
    if not 0 < seconds <= LONGEST_LEASE_SECONDS:
        raise InvalidInput(
            f"a lease lasts more than 0 and at most {LONGEST_LEASE_SECONDS:,} seconds, not {seconds}; ask for a few "
            "minutes and renew it"
        )


def is_held(lease: Lease, *, now: datetime) -> bool:
    """Return whether a lease has not expired.

    A lease that ends later than any lease can comes from a wrong clock, and counts as expired.
    """
    latest = now + timedelta(seconds=LONGEST_LEASE_SECONDS) + CLOCK_SKEW_ALLOWANCE
    return now < lease.expires_at <= latest


def lease_held_text(lease: Lease) -> str:
    """Return the message for a lease that another holder has."""
    return (
        f"the lease {lease.name!r} is held by {lease.holder!r} until {lease.expires_at:%Y-%m-%d %H:%M:%S} UTC; "
        "wait until that process is done, or until then if it died"
    )


def lease_lost_text(lease: Lease) -> str:
    """Return the message for a lease that is not held any more."""
    return (
        f"{lease.holder!r} does not hold the lease {lease.name!r} any more: it was released, or it expired and "
        "another process may have taken it; start again"
    )


def storable(text: str) -> str:
    """Return the text without characters that stores cannot hold: NUL characters and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", errors="replace").decode("utf-8")


def has_whole_words(query: str) -> bool:
    """Return whether the last word of a query of `find` is complete: a blank follows it."""
    return query[-1:].isspace()


def filter_key(value: str) -> str:
    """Return the form of a filter's value in which it is compared with stored values."""
    return name_key(storable(value))


def fold(text: str) -> str:
    """Return the form in which words are compared: case-folded, without accents, in NFC, CJK text as bigrams."""
    return with_bigrams(normalized("NFC", without_marks(normalized("NFKD", text.casefold()))))
