"""Bodies that a route reads itself: of several media types, or line by line."""

from typing import Any

from fastapi import Depends, Request

from . import problems
from .problem_documents import Problem


def body_of(*media_types: str) -> Any:
    """The dependency that gives a route its body as bytes, if it is of one of these types."""

    async def body(request: Request) -> bytes:
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given not in media_types:
            raise Problem(
                problems.WRONG_MEDIA_TYPE,
                f"the body is said to be {given[:80]!a}; send it with Content-Type: {' or '.join(media_types)}",
            )
        return await request.body()

    return Depends(body)


def described_body(media_type: str, schema: dict[str, Any], example: Any = None) -> dict[str, Any]:
    """The OpenAPI entry of a body that the route reads itself."""
    content = {"schema": schema} if example is None else {"schema": schema, "example": example}
    return {"requestBody": {"required": True, "content": {media_type: content}}}
