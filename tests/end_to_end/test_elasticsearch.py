"""The README's story on a real Elasticsearch: the same commands, the same answers as on the embedded index."""

import csv
import io
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.index.opening import open_index
from tests.servers.connection import Connection
from tests.similarity.cli.test_main import Shell

pytestmark = pytest.mark.integration

SAMPLE = Path(__file__).parents[2] / "data" / "sample" / "companies.jsonl"
Run = Callable[..., str]


@pytest.fixture(scope="module")
def login(elasticsearch_connection: Connection) -> dict[str, str]:
    """The variables that a user sets to log in; none for a server of the tests' own."""
    connection = elasticsearch_connection
    given = {
        "USERNAME": connection.user,
        "PASSWORD": connection.password,
        "CA_CERTS": connection.ca_certs and str(connection.ca_certs),
    }
    return {f"SIMILARITY_ELASTICSEARCH_{name}": value for name, value in given.items() if value}


@pytest.fixture(scope="module")
def target(elasticsearch_connection: Connection) -> Iterator[str]:
    """Where the index is: http://HOST:PORT/NAME. Whatever was made there is removed."""
    name = f"story-{secrets.token_hex(4)}"
    yield f"{','.join(elasticsearch_connection.urls).replace(',http://', ',')}/{name}"
    with closing(Elasticsearch(**elasticsearch_connection.client_arguments())) as client:
        if indices := list(client.indices.get(index=f"{name}-*", filter_path="*.aliases")):
            client.indices.delete(index=indices)


@pytest.fixture(scope="module")
def similarity(tmp_path_factory: pytest.TempPathFactory, login: dict[str, str]) -> Run:
    """The command, in a folder of its own, with the sample in both indexes' reach."""
    shell = Shell(tmp_path_factory.mktemp("story"))

    def run(*arguments: str, fails: bool = False) -> str:
        return shell(*arguments, fails=fails, **login)

    return run


@pytest.fixture(scope="module")
def ingested(similarity: Run, target: str) -> str:
    for index in (target, "embedded.db"):
        similarity("ingest", str(SAMPLE), "--index", index, "--attribute", "sector")
    return target


def answers(similarity: Run, index: str, *question: str) -> list[tuple[str, float]]:
    rows = csv.DictReader(io.StringIO(similarity("similar", *question, "--index", index, "--format", "csv")))
    return [(row["id"], float(row["score"])) for row in rows]


@pytest.mark.parametrize(
    "question",
    [
        ("Boeing",),
        ("heineken", "-k", "25"),
        ("boeing", "airbus", "--unlike", "spacex"),
        ("boeing", "--country", "France", "--country", "brazil"),
        ("--text", "rents out electric scooters by the minute"),
    ],
    ids=" ".join,
)
def test_both_indexes_give_the_same_answers(similarity: Run, ingested: str, question: tuple[str, ...]) -> None:
    cluster, embedded = (answers(similarity, index, *question) for index in (ingested, "embedded.db"))
    assert [company for company, _ in cluster] == [company for company, _ in embedded]
    assert [score for _, score in cluster] == pytest.approx([score for _, score in embedded], abs=1e-4)
    assert cluster


def test_ingesting_again_adds_nothing(similarity: Run, ingested: str) -> None:
    assert "1,279 companies" in similarity("ingest", str(SAMPLE), "--index", ingested, "--attribute", "sector")


def test_a_copy_goes_live_and_is_rolled_back(similarity: Run, ingested: str) -> None:
    def live() -> str:
        listed = json.loads(similarity("generations", "list", "--index", ingested, "--format", "json"))
        return str(next(each["name"] for each in listed if each["state"] == "live"))

    before, first = answers(similarity, ingested, "Boeing"), live()
    similarity("generations", "copy", "--index", ingested)
    assert live() != first
    assert answers(similarity, ingested, "Boeing") == before
    similarity("generations", "rollback", "--index", ingested)
    assert live() == first


def test_the_service_answers_from_the_cluster(
    ingested: str, similarity: Run, login: dict[str, str], tmp_path: Path
) -> None:
    expected = answers(similarity, ingested, "Boeing")
    with closing(open_index(ingested, login)) as index, TestClient(create_app(index=index, encoder=None)) as client:
        answer = client.get("/similar/boeing").json()
        assert [hit["company"]["id"] for hit in answer["hits"]] == [company for company, _ in expected]
        assert client.get("/readyz").json()["companies"] == 1279
        assert client.get("/companies", params={"q": "boei"}).json()["companies"][0]["id"] == "boeing"


def test_an_erased_company_is_gone(similarity: Run, ingested: str) -> None:
    assert "comac" in [company for company, _ in answers(similarity, ingested, "Boeing")]
    similarity("erase", "comac", "--no-compact", "--index", ingested)
    assert "comac" not in [company for company, _ in answers(similarity, ingested, "Boeing")]
    assert "comac" not in similarity("find", "comac", "--index", ingested)  # "Comau" is spelled almost like it


def test_a_wrong_address_is_one_line(similarity: Run) -> None:
    assert "cannot be reached" in similarity("find", "boeing", "--index", "http://127.0.0.1:1/companies", fails=True)
