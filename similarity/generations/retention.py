"""Removal of old generations: each holds the whole corpus on disk, and is written to until it is retired."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from similarity.errors import GenerationConflict, InvalidInput, LeaseHeld, UnknownGeneration
from similarity.generations.plan import previous_generations
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.ingest.former_names import remember_names_only_in
from similarity.ingest.renewed_leases import REEMBED, RETIRE, RenewedLease


def prune(index: CompanyIndex, *, keep: int, older_than: timedelta, now: datetime, dry_run: bool = False) -> list[str]:
    """Retire old generations and return their names (with `dry_run`, only return the names).

    It retires previous generations that were replaced at least `older_than` ago, except the `keep` most recent. It also
    retires building generations that were created that long ago, unless a re-embed runs, which may be filling one. The
    live generation and candidates are kept. With `keep` 0 there may be no generation left for a rollback.

    Raises:
        InvalidInput: `keep` or `older_than` is negative.
        LeaseHeld: another process removes a generation that was live.
    """
    if keep < 0 or older_than < timedelta(0):
        raise InvalidInput(f"keep and older_than must not be negative: {keep}, {older_than}")
    before = now - older_than
    replaced = _replaced(index, keep=keep, before=before)
    if dry_run:
        busy = any(lease.name == REEMBED for lease in index.leases())
        return replaced + ([] if busy else _abandoned(index, before=before))
    retired = _retire(index, replaced)
    with suppress(LeaseHeld), RenewedLease(index, REEMBED):
        retired += _retire(index, _abandoned(index, before=before))
    return retired


def _replaced(index: CompanyIndex, *, keep: int, before: datetime) -> list[str]:
    """Return previous generations replaced before a time, except the `keep` most recent; newest first."""
    generations = index.generations()
    surplus = previous_generations(index)[keep:]
    return [generation.name for generation in surplus if _replaced_at(generation, generations) <= before]


def _abandoned(index: CompanyIndex, *, before: datetime) -> list[str]:
    return [
        generation.name
        for generation in index.generations()
        if generation.state is GenerationState.BUILDING and generation.created_at <= before
    ]


def _replaced_at(generation: Generation, generations: Sequence[Generation]) -> datetime:
    """Return when the next generation went live or, if that one was retired, when a later one did.

    In the second case `generation` is kept longer.
    """
    later = [other.promoted_at for other in generations if other.promoted_at and other.promotion > generation.promotion]
    return min(later, default=generation.promoted_at or generation.created_at)


def _retire(index: CompanyIndex, names: Sequence[str]) -> list[str]:
    retired = []
    for name in names:
        # Another process may have rolled back to it, or retired it, since the generations were read.
        with suppress(GenerationConflict, UnknownGeneration), RenewedLease(index, RETIRE):
            remember_names_only_in(index, name)
            index.retire(name)
            retired.append(name)
    return retired
