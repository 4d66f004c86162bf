"""Answers of the service as the client's tests need them."""

import json
from typing import Any

from similarity.client.call import Reply

MODEL = {"encoder_id": "encoder-1", "bundle_id": "bundle-1"}


def hit(rank: int, company_id: str, **members: Any) -> dict[str, Any]:
    return {"rank": rank, "score": 1 - rank / 10, "company": {"id": company_id, "name": company_id.title()}, **members}


def ranking(*ids: str, **members: Any) -> dict[str, Any]:
    hits = [hit(rank, company_id) for rank, company_id in enumerate(ids, 1)]
    return {"hits": hits, "generation": "first", "model": MODEL, **members}


def problem(status: int, kind: str, detail: str = "no", **members: Any) -> dict[str, Any]:
    return {"type": f"/docs#{kind}", "title": kind, "status": status, "detail": detail, "instance": "/", **members}


def reply(status: int = 200, members: Any = None, /, *, request_id: str = "r-1", **headers: str) -> Reply:
    return Reply(
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        body=json.dumps(members).encode(),
        request_id=request_id,
    )
