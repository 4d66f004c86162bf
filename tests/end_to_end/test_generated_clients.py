"""Clients that others generate from services/search/openapi.json ask the running service, in Python and TypeScript."""

import json
import subprocess
import venv
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity import add_companies, open_index
from tests.services.search.serving import ROOT, Service, running
from tests.similarity.search.explanations.test_segments import GROUP

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

DOCUMENT = ROOT / "services" / "search" / "openapi.json"
PYTHON_GENERATOR = "openapi-python-client==0.29.1"
NODE_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.14.0", "typescript@5.9.3")

RECORDS = [
    {"id": "acme", "name": "Acme", "description": "Makes running shoes and sells them in shops of its own."},
    {"id": "boots", "name": "Boots GmbH", "description": "Makes leather boots for hikers and mountaineers."},
    {"id": "clogs", "name": "Clogs", "description": "Carves wooden clogs and sells them at markets."},
    {"id": "group", "name": "Group AG", "description": GROUP.description},
]
IN_PYTHON = """
import json, sys
from io import BytesIO
from company_similarity_client import Client
from company_similarity_client.api.companies import company_get, segments
from company_similarity_client.api.competitors import similar, similar_question
from company_similarity_client.api.writing import companies_bulk
from company_similarity_client.models import (
    Anchor, CompanySegments, Question, Ranking, SegmentRecord, SimilarToCompany, UnknownCompanyDocument,
)
from company_similarity_client.types import File

client = Client(base_url=sys.argv[1])
ranking = similar.sync("acme", client=client, k=2)
assert isinstance(ranking, SimilarToCompany)
anchors = [Anchor(company="acme", weight=2.0), Anchor(company="boots")]
weighted = similar_question.sync(client=client, body=Question(anchors=anchors, k=1))
assert isinstance(weighted, Ranking)
found = segments.sync("group", client=client)
assert isinstance(found, CompanySegments)
part = Anchor(company="group", segment=found.segments[1].number)
narrowed = similar_question.sync(client=client, body=Question(anchors=[part], k=1))
assert isinstance(narrowed, Ranking)
segment = narrowed.anchors[0].segment
assert isinstance(segment, SegmentRecord)
missing = company_get.sync("nobody at all", client=client)
assert isinstance(missing, UnknownCompanyDocument)
line = b'{"id": "new", "name": "New", "description": "Bakes rye bread and buns for cafes in Turku."}'
written = companies_bulk.sync_detailed(client=client, body=File(payload=BytesIO(line)))
print(json.dumps({
    "hits": [hit.company.id for hit in ranking.hits],
    "weights": [anchor.weight for anchor in weighted.anchors],
    "segment": segment.text,
    "status": missing.status,
    "outcome": json.loads(written.content)["outcome"],
}))
"""
IN_TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

const client = createClient<paths>({ baseUrl: process.argv[2] });
const ranking = await client.GET("/similar/{company_id}", {
  params: { path: { company_id: "acme" }, query: { k: 2 } },
});
const anchors = [{ company: "acme", weight: 2 }, { company: "boots" }];
const weighted = await client.POST("/similar", { body: { anchors, k: 1 } });
if (!ranking.data || typeof ranking.data === "string" || !weighted.data || typeof weighted.data === "string") {
  throw new Error("not the JSON that was asked for");
}
const found = await client.GET("/segments/{company_id}", { params: { path: { company_id: "group" } } });
const part = { company: "group", segment: found.data!.segments[1].number };
const narrowed = await client.POST("/similar", { body: { anchors: [part], k: 1 } });
if (!narrowed.data || typeof narrowed.data === "string") {
  throw new Error("not the JSON that was asked for");
}
const missing = await client.GET("/companies/{company_id}", { params: { path: { company_id: "nobody at all" } } });
console.log(JSON.stringify({
  hits: ranking.data.hits.map((hit) => hit.company.id),
  weights: weighted.data.anchors.map((anchor) => anchor.weight),
  segment: narrowed.data.anchors[0].segment!.text,
  status: missing.error!.status,
}));
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with closing(open_index(folder / "index.db", create=True)) as index:
        add_companies(index, RECORDS)
    with running(folder / "index.db", folder) as service:
        yield service


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_generated_python_client_asks_and_writes(service: Service, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", PYTHON_GENERATOR, folder=tmp_path)
    generate = "generate", "--path", DOCUMENT, "--meta", "none", "--output-path", "company_similarity_client"
    run(python, "-m", "openapi_python_client", *generate, folder=tmp_path)
    answer = json.loads(run(python, "-c", IN_PYTHON, f"http://127.0.0.1:{service.port}", folder=tmp_path))
    assert len(answer["hits"]) == 2
    assert answer["status"] == 404
    assert answer["weights"] == [2, 1]
    assert answer["segment"].startswith("rent out sailing boats")
    assert answer["outcome"] == "applied"


def test_a_generated_typescript_client_is_typed_and_asks(service: Service, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "ask.ts").write_text(IN_TYPESCRIPT)
    run("npm", "install", "--silent", *NODE_PACKAGES, "@types/node@22", folder=tmp_path)
    run("npx", "openapi-typescript", DOCUMENT, "--default-non-nullable=false", "-o", "schema.d.ts", folder=tmp_path)
    options = "--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck"
    run("npx", "tsc", *options, "ask.ts", folder=tmp_path)
    answer = json.loads(run("node", "ask.js", f"http://127.0.0.1:{service.port}", folder=tmp_path))
    assert len(answer["hits"]) == 2
    assert answer["status"] == 404
    assert answer["weights"] == [2, 1]
    assert answer["segment"].startswith("rent out sailing boats")
