"""ETags: whoever has an answer already is told so in a few bytes."""

import re
from hashlib import blake2b

from fastapi import Request, Response

NOT_MODIFIED = 304
_TAG = re.compile(r'(?:W/)?"[^"]*"')


def etag_of(body: bytes) -> str:
    """Equal for equal answers. Weak, because how long an answer took does not count."""
    before, _, after = body.rpartition(b'"took_ms":')
    # What follows the last one is its number; names and texts cannot hold it, for their quotes are escaped.
    kept = before + after.lstrip(b"0123456789.e+-") if before else body
    return f'W/"{blake2b(kept, digest_size=12).hexdigest()}"'


def with_etag(request: Request, response: Response) -> Response:
    """`response` with its ETag; 304 without a body if a GET's `If-None-Match` names that."""
    tag = etag_of(bytes(response.body))
    response.headers["ETag"] = tag
    if request.method != "GET" or not _names(request.headers.get("if-none-match", ""), tag):
        return response
    kept = {name: value for name, value in response.headers.items() if name in {"etag", "vary"}}
    return Response(status_code=NOT_MODIFIED, headers=kept)


def _names(if_none_match: str, tag: str) -> bool:
    return if_none_match.strip() == "*" or tag.removeprefix("W/") in {
        each.removeprefix("W/") for each in _TAG.findall(if_none_match)
    }
