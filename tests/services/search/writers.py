"""The write routes on an application of their own, so that tests of writing need nothing else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from services.search.guards.envelope import Envelope
from services.search.wire.failures import answer_failures
from services.search.writes.write_routes import erasure_routes, write_routes
from services.search.writes.write_service import WriteMode
from services.search.writes.write_setup import Writing, set_up_writing
from similarity.feedback.protocol import Workspace
from similarity.index.protocol import CompanyIndex
from similarity.model.encoder_protocol import Encoder

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
AFTERNOON = datetime(2025, 3, 1, 15, tzinfo=UTC)
ANVILS = {"name": "Acme, Inc.", "description": "Makes iron anvils."}


def direct_writing(index: CompanyIndex, encoders: Mapping[str, Encoder], workspace: Workspace | None = None) -> Writing:
    return set_up_writing(WriteMode.DIRECT, index=index, encoders=encoders, workspace=workspace)


def client_of(writing: Writing) -> TestClient:
    app = FastAPI(redirect_slashes=False)
    app.add_middleware(Envelope)
    answer_failures(app)
    app.include_router(write_routes(writing.writes))
    app.include_router(erasure_routes(writing.erasures))
    return TestClient(app)


@contextmanager
def writing_client(index: CompanyIndex, encoders: Mapping[str, Encoder]) -> Iterator[TestClient]:
    """A client of direct writing, which ends with it."""
    writing = direct_writing(index, encoders)
    yield client_of(writing)
    writing.writes.close()


def put(client: TestClient, company_id: str = "acme", /, **body: Any) -> Any:
    return client.put(f"/companies/{company_id}", json=ANVILS | body)


def bulk(client: TestClient, *lines: str | bytes) -> Any:
    content = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    return client.post("/companies/bulk", content=content, headers={"Content-Type": "application/x-ndjson"})
