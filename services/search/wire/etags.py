"""ETags: a client that has the answer already gets 304 without a body.

The only conditional write is `If-None-Match: *` for a new list.
"""

import re
from hashlib import blake2b

from fastapi import Request, Response

from . import problems
from .problem_documents import Problem

NOT_MODIFIED = 304
READS = ("GET", "HEAD")
PRECONDITIONS = ("If-Match", "If-None-Match", "If-Unmodified-Since")
_TOOK = b'"took_ms":'
_NUMBER = re.compile(rb"[0-9.e+-]*")
_TAG = re.compile(r'(?:W/)?"[^"]*"')


def etag_of(body: bytes) -> str:
    """Return the ETag of an answer. Weak: the time that the answer took is ignored."""
    # The last occurrence is the member itself: in names and texts the quotes would be escaped.
    start = body.rfind(_TOOK)
    time_taken = _NUMBER.match(body, start + len(_TOOK)) if start >= 0 else None
    # Views, because an answer may have 200 MB, and slices would be copies.
    whole = memoryview(body)
    tag = blake2b(whole[:start] if time_taken else whole, digest_size=12)
    if time_taken:
        tag.update(whole[time_taken.end() :])
    return f'W/"{tag.hexdigest()}"'


def with_etag(request: Request, response: Response) -> Response:
    """Return `response` with its ETag; 304 without a body if the `If-None-Match` of a GET matches it."""
    tag = etag_of(bytes(response.body))
    response.headers["ETag"] = tag
    if request.method != "GET" or not _names(request.headers.get("if-none-match", ""), tag):
        return response
    kept = {name: value for name, value in response.headers.items() if name in {"etag", "vary"}}
    return Response(status_code=NOT_MODIFIED, headers=kept)


async def refuse_preconditions(request: Request) -> None:
    """Refuse a conditional write, because it would be done whether the condition holds or not. A dependency of routes.

    `PUT /lists/{name}` knows `If-None-Match: *`.

    Raises:
        Problem: the request changes something and has a header of PRECONDITIONS.
    """
    given = [name for name in PRECONDITIONS if name in request.headers]
    is_list = request.url.path.startswith("/lists/")
    if is_list and request.method == "PUT" and request.headers.get("If-None-Match") in {"", "*"}:
        given.remove("If-None-Match")
    if given and request.method not in READS:
        advice = (
            "PUT of a list takes If-None-Match: *, and then replaces none; POST /lists/NAME/companies adds to a list "
            "and loses no change of others"
            if is_list
            else "Of several writes of a company the one with the newest event_time wins"
        )
        raise Problem(
            problems.OTHER_REFUSAL,
            f"{request.method} does not support {' and '.join(given)} here, so nothing was changed; send it without. "
            f"{advice}",
        )


def _names(if_none_match: str, tag: str) -> bool:
    return if_none_match.strip() == "*" or tag.removeprefix("W/") in {
        each.removeprefix("W/") for each in _TAG.findall(if_none_match)
    }
