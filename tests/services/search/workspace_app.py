"""The workspace's routes alone, as an application, and who asks it."""

from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.testclient import TestClient
from starlette.middleware.base import RequestResponseEndpoint

from services.search.asking.service import SearchService
from services.search.guards.callers import CALLER, Caller, Scope
from services.search.wire.failures import answer_failures
from services.search.workspace.feedback import FeedbackService
from services.search.workspace.feedback_next import NextService
from services.search.workspace.feedback_routes import feedback_routes
from services.search.workspace.lists import ListsService
from services.search.workspace.lists_routes import lists_routes
from similarity.feedback.protocol import Workspace
from similarity.index.protocol import CompanyIndex
from similarity.search.searcher import Searcher

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
EVERYTHING = frozenset({Scope.READ, Scope.FEEDBACK})


class StandingClock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def workspace_client(index: CompanyIndex, workspace: Workspace, clock: StandingClock) -> TestClient:
    """A client of the routes; the header `Test-User` says who asks, `Test-Scopes` what they may (else everything)."""
    app = FastAPI()
    answer_failures(app)
    search = SearchService(Searcher(index), workspace)
    app.include_router(feedback_routes(FeedbackService(search, workspace, clock=clock), NextService(search, workspace)))
    app.include_router(lists_routes(ListsService(search, workspace, clock=clock)))

    @app.middleware("http")
    async def authenticate(request: Request, call_next: RequestResponseEndpoint) -> Response:
        scopes = request.headers.get("Test-Scopes")
        allowed = EVERYTHING if scopes is None else frozenset(Scope(each) for each in scopes.split())
        request.scope[CALLER] = Caller(name=request.headers.get("Test-User", "ann"), scopes=allowed)
        return await call_next(request)

    return TestClient(app, raise_server_exceptions=False)


def given(hit: str = "boots", verdict: str = "competitor", **members: Any) -> dict[str, Any]:
    """A verdict on a hit of `acme`, as it is sent."""
    return {"anchor": "acme", "hit": hit, "verdict": verdict, **members}
