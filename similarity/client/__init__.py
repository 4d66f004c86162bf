"""A client of the search service, with and without `async`.

    from similarity.client import Client

    with Client("http://127.0.0.1:8080") as service:
        for hit in service.similar("Nike", "Adidas", country="Germany").hits:
            ...

`Client` and `AsyncClient` have the same methods; docs/client.md shows them.
"""

from importlib.util import find_spec

if find_spec("httpx2") is None:
    raise ImportError("the client needs httpx2: pip install 'company-similarity[client]'")

from similarity.client.clients import AsyncClient, Client
from similarity.client.problems import (
    ContestedName,
    CursorExpired,
    Forbidden,
    InternalFailure,
    InvalidRequest,
    Problem,
    RateLimited,
    TimedOut,
    Unauthorized,
    Unavailable,
    UnknownCompany,
    UnknownList,
    Unreachable,
    UnreadableAnswer,
)
from similarity.client.question import Anchor, Question
from similarity.client.retries import Retries
from similarity.company import Company
from similarity.index.filters import FieldFilter

__all__ = [
    "Anchor",
    "AsyncClient",
    "Client",
    "Company",
    "ContestedName",
    "CursorExpired",
    "FieldFilter",
    "Forbidden",
    "InternalFailure",
    "InvalidRequest",
    "Problem",
    "Question",
    "RateLimited",
    "Retries",
    "TimedOut",
    "Unauthorized",
    "Unavailable",
    "UnknownCompany",
    "UnknownList",
    "Unreachable",
    "UnreadableAnswer",
]
