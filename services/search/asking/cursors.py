"""Cursors: the signed position at which a page ended.

cursor = base64url(JSON [generation, digest of the question, last score, last id, rank] + HMAC)
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass

from similarity.search.ranking_page import Position

from ..wire import problems
from ..wire.problem_documents import Problem

SIGNATURE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Cursors:
    """Writes and reads cursors signed with `key`. Processes with the same key accept each other's cursors."""

    key: bytes

    def write(self, position: Position) -> str:
        """Return the cursor of a position."""
        told = [position.generation, position.digest, position.score, position.id, position.rank]
        payload = json.dumps(told, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(payload + self._signature(payload)).decode().rstrip("=")

    def read(self, cursor: str, *, digest: str) -> Position:
        """Return the position in a cursor of the query with this `digest`.

        Raises:
            Problem: the cursor is not signed with `key`, or belongs to another query.
        """
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raw = b""
        payload, signature = raw[:-SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:]
        if not payload or not hmac.compare_digest(signature, self._signature(payload)):
            raise Problem(
                problems.WRONG_CURSOR,
                "this process did not write that cursor; send next_cursor unchanged, or ask again without it",
            )
        generation, of_question, score, company_id, rank = json.loads(payload)
        if of_question != digest:
            raise Problem(
                problems.WRONG_CURSOR,
                "that cursor belongs to another query; only k, reasons and fields may change from page to page",
            )
        return Position(generation=generation, digest=digest, score=score, id=company_id, rank=rank)

    def _signature(self, payload: bytes) -> bytes:
        return hmac.digest(self.key, payload, hashlib.sha256)[:SIGNATURE_BYTES]
