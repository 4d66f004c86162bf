"""Saying "too busy" for next to nothing: from the bytes of a request, before even the server parses them.

Parsing a request costs about a third of answering a cheap one. Under three times the load that a
process can bear, refusing that way would take most of its time. So the connection asks `refusal`
first; only a request whose bytes leave no doubt is refused here, the rest goes the usual way and is
refused by `concurrency.Shedding`.
"""

import json
import re
from collections.abc import Callable
from urllib.parse import unquote

from services.search.guards.concurrency import BUSY_BODY, BUSY_HEADERS, Gates
from services.search.guards.rate_limits import is_free

# No body may follow and no second request: else what comes next would be taken for a request of its own.
PLAIN_GET = re.compile(rb"GET (?P<path>/[^ ?\r\n]*)[^ \r\n]* HTTP/1\.1\r\n(?:[^\r\n]+\r\n)+\r\n")
BODY_FOLLOWS = re.compile(rb"\r\n(?:content-length|transfer-encoding|upgrade|expect)[ \t]*:", re.IGNORECASE)

HEAD = b"HTTP/1.1 503 Service Unavailable\r\n" + b"".join(
    name + b": " + value + b"\r\n" for name, value in BUSY_HEADERS
)


def early_refusal(gates: Gates, shed: Callable[[], None]) -> Callable[[bytes], bytes | None]:
    """What to answer to the bytes of a request, if it must be refused; `shed` is told of each."""

    def refusal(data: bytes) -> bytes | None:
        if not (gates.quick.full or gates.heavy.full):
            return None
        plain = PLAIN_GET.fullmatch(data)
        if plain is None or BODY_FOLLOWS.search(data):
            return None
        path = unquote(plain["path"].decode("latin-1"))
        if is_free(path) or not gates.of({"path": path, "method": "GET"}).full:
            return None
        shed()
        body = BUSY_BODY % json.dumps(path).encode()
        return b"%scontent-length: %d\r\n\r\n%s" % (HEAD, len(body), body)

    return refusal
