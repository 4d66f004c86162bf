"""A load of the same file again alters nothing in any store, and says so."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from similarity.index.protocol import CompanyIndex, WriteOutcome
from similarity.ingest.load import load_file
from similarity.ingest.records import Columns
from similarity.ingest.rejects import LoadReport, RejectsFile
from similarity.ingest.renewed_leases import LoadLease
from tests.factories import ENCODER_ID
from tests.fakes import CountingEncoder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ATTRIBUTES = {"size": "size", "listed": "listed", "margin": "margin"}


def load(index: CompanyIndex, path: Path, *, now: datetime) -> LoadReport:
    with LoadLease(index) as lease, RejectsFile(path.with_name("rejects.jsonl")) as rejects:
        return load_file(
            path, lease=lease, encoders={ENCODER_ID: CountingEncoder()}, columns=Columns(attributes=ATTRIBUTES),
            rejects=rejects, now=now,
        )  # fmt: skip


def test_an_unchanged_load_keeps_every_version(index: CompanyIndex, live: str, tmp_path: Path) -> None:
    path = tmp_path / "companies.jsonl"
    acme = {
        "id": "acme", "name": "Açme", "description": "Makes <b>anvils</b> &amp; more.", "aliases": ["B", "A"],
        "tags": "x;y", "domain": "https://acme.com", "country": "US", "listed": True, "size": 12, "margin": 2.0,
    }  # fmt: skip
    records = [acme, {"id": "b", "name": "B", "description": "Brews beer."}, {"id": "gone", "deleted": True}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    ids = ["acme", "b", "gone"]
    assert load(index, path, now=NOW).outcomes == {WriteOutcome.APPLIED: 3}
    stored = index.stored_versions(live, ids)
    assert load(index, path, now=NOW + timedelta(hours=1)).outcomes == {WriteOutcome.UNCHANGED: 3}
    assert index.stored_versions(live, ids) == stored
    path.write_text(json.dumps(acme | {"size": 13}) + "\n")
    assert load(index, path, now=NOW + timedelta(hours=2)).outcomes == {WriteOutcome.APPLIED: 1}
    assert index.get(live, ["acme"])["acme"].company.attributes["size"] == 13
