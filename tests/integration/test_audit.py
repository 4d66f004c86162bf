"""The audit record of the real service in a process of its own, and what is left when it is killed."""

import json
import threading
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from services.search.guards.callers import Scope
from services.search.keys import add
from similarity.upkeep.audit import hashed
from tests.services.search.serving import Service, running
from tests.similarity.cli.test_main import Shell
from tests.tiny_bundle import write_tiny_bundle

pytestmark = pytest.mark.integration

WRITERS = 4


def acknowledged(service: Service, secret: str, writer: int) -> list[tuple[str, str]]:
    """Company and request of each write that was answered 200, until the service is gone."""
    done: list[tuple[str, str]] = []
    body = json.dumps({"name": "Acme", "description": "anvils boats"})
    with closing(HTTPConnection("127.0.0.1", service.port, timeout=20)) as connection:
        while True:
            company, request = f"w{writer}-{len(done)}", f"{writer:08x}{len(done):08x}"
            headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json", "X-Request-Id": request}
            try:
                connection.request("PUT", f"/companies/{company}", body, headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, HTTPException):
                return done
            if answer.status == 503:  # the encoder is still being loaded
                continue
            assert (answer.status, answer.headers["X-Request-Id"]) == (200, request)
            done.append((company, request))


def test_every_acknowledged_write_is_on_record_when_the_service_is_killed(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "tiny")
    shell = Shell(tmp_path)
    rows = [("acme", "Acme", "anvils anvils", "", "")]
    shell("ingest", shell.write("companies.csv", rows), "--bundle", "tiny")
    secret = add(tmp_path / "keys.json", "ann", [Scope.WRITE])
    done: list[tuple[str, str]] = []
    with running(tmp_path / "similarity.db", tmp_path, keys=tmp_path / "keys.json", rate=0) as service:

        def write(writer: int) -> None:
            done.extend(acknowledged(service, secret, writer))

        writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for each in writers:
            each.start()
        writers[0].join(timeout=3)
        service.process.kill()
        for each in writers:
            each.join()
    entries = [json.loads(line) for line in shell("audit", "--action", "write", "--format", "json").splitlines()]
    assert len(done) > 20
    assert {entry["who"] for entry in entries} == {"key:ann"}
    recorded = {(entry["company_sha256"], entry["request_id"]) for entry in entries if entry["outcome"] == "applied"}
    assert {(hashed(company), request) for company, request in done} <= recorded
