"""The registry's document on the cluster: read by id, and changed only if it is unchanged since it was read."""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from elasticsearch import ApiError, ConflictError, NotFoundError, TransportError

from similarity.backoff import backoff
from similarity.errors import IndexUnavailable
from similarity.index.elastic.connection import BUSY, Cluster
from similarity.index.elastic.mapping import small_index
from similarity.index.elastic.registry import Registry, from_source, to_source

DOCUMENT = "registry"
ATTEMPTS = 40
FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 1.0
CHANGES_REMEMBERED = 64
BODY = small_index({"registry": {"type": "object", "enabled": False}})


@dataclass(frozen=True, slots=True)
class _Stored:
    """The document as read. `changes`: the marks of the last changes. `place`: its sequence number and primary term,
    for a conditional write; None if there is no document yet.
    """

    registry: Registry
    changes: tuple[str, ...]
    place: tuple[int, int] | None


class RegistryStore:
    """Reads and changes the registry in `<name>-registry`."""

    def __init__(self, cluster: Cluster, *, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._index = f"{cluster.settings.name}-registry"
        self._clock = clock

    def read(self) -> Registry:
        """Return the current registry; empty if none was written yet."""
        return self._read().registry

    def change(self, step: Callable[[Registry], Registry]) -> Registry:
        """Apply a step to the newest registry and write the result, atomically.

        If another process changes the registry meanwhile, the step runs again on the newest one. Its exceptions are
        passed on. A write whose response was lost is recognised by its mark, so no step is applied twice.

        Raises:
            IndexUnavailable: the cluster did not accept the write.
        """
        mark = uuid.uuid4().hex
        trouble = ""
        for pause in islice(backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS), ATTEMPTS):
            stored = self._read_to_change()
            if mark in stored.changes:
                return stored.registry
            changed = step(stored.registry).without_old_leases(now=self._clock())
            if changed == stored.registry:
                return changed
            trouble = self._write(changed, stored, mark)
            if not trouble:
                return changed
            time.sleep(pause)
        raise IndexUnavailable(
            f"the registry of {self._cluster.settings.place} could not be changed in {ATTEMPTS} attempts; try again "
            f"(last error: {trouble})"
        )

    def _read(self) -> _Stored:
        with self._cluster.explained():
            try:
                found = self._cluster.retrying.get(index=self._index, id=DOCUMENT)
            except NotFoundError:
                return _Stored(Registry(), (), None)
        source = found["_source"]["registry"]
        return _Stored(from_source(source), tuple(source["changes"]), (found["_seq_no"], found["_primary_term"]))

    def _read_to_change(self) -> _Stored:
        """Return the stored registry; if another process is creating its index, wait for it."""
        try:
            return self._read()
        except IndexUnavailable as error:
            if not _is_starting(error.__cause__):
                raise
        self._cluster.create_index(self._index, **BODY)  # it exists: this waits for its primary shard
        return self._read()

    def _write(self, changed: Registry, stored: _Stored, mark: str) -> str:
        """Write the registry; return an empty text on success, else the problem: then read the registry again."""
        if stored.place is None:
            self._cluster.create_index(self._index, **BODY)
        changes = [*stored.changes, mark][-CHANGES_REMEMBERED:]
        condition: Mapping[str, Any] = (
            {"op_type": "create"}
            if stored.place is None
            else {"if_seq_no": stored.place[0], "if_primary_term": stored.place[1]}
        )
        try:
            self._cluster.client.index(
                index=self._index,
                id=DOCUMENT,
                # The client writes times in ISO 8601.
                document={"registry": {**to_source(changed), "changes": changes}},
                **condition,
            )
        except ConflictError:
            return "another process changed it at the same moment"
        except ApiError as error:
            problem = self._cluster.api_problem(error)
            if error.status_code in BUSY or error.status_code >= 500:
                return str(problem)
            raise problem from error
        except TransportError as error:
            return str(self._cluster.unreachable(error))
        return ""


def _is_starting(error: BaseException | None) -> bool:
    return isinstance(error, ApiError) and error.error == "no_shard_available_action_exception"
