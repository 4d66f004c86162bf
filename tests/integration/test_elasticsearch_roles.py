"""The users of docker-compose.yml on a real node: all that their containers do works, and nothing else does."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import AuthenticationException, AuthorizationException, Elasticsearch
from fastapi.testclient import TestClient

from deploy.environment import ROOT, filled
from services.search.app import create_app
from similarity.bundle import ModelBundle, seed_folder
from similarity.encoder import TextEncoder
from similarity.feedback.opening import open_workspace
from similarity.index.opening import open_index
from tests.end_to_end.stacks.compose_file import Service, read_services
from tests.end_to_end.stacks.native_elasticsearch import elasticsearch_of
from tests.end_to_end.stacks.native_stack import settings_in
from tests.end_to_end.test_reembed import another_bundle
from tests.servers.elasticsearch import QUICK_START, ElasticsearchCluster
from tests.servers.fixtures import MEMORY
from tests.similarity.cli.test_main import Shell

pytestmark = pytest.mark.integration

COMPANIES = 40
SETTINGS = settings_in(filled((ROOT / ".env.example").read_text(encoding="utf-8")))
SERVICES = read_services(ROOT / "docker-compose.yml", SETTINGS)


def login(service: Service) -> dict[str, str]:
    """The variables by which a container logs in."""
    return {name: value for name, value in service.environment.items() if name.startswith("SIMILARITY_ELASTICSEARCH_")}


SECONDS_TO_ERASE = 180.0


@pytest.fixture(scope="module")
def cluster(startable_elasticsearch: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElasticsearchCluster]:
    """The compose file's node, with its users."""
    parent = MEMORY if MEMORY.is_dir() else tmp_path_factory.mktemp("roles")
    with (
        tempfile.TemporaryDirectory(prefix="elasticsearch-roles-", dir=parent) as folder,
        elasticsearch_of(SERVICES["elasticsearch"], Path(folder), java_options=QUICK_START) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def similarity(cluster: ElasticsearchCluster, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """The command line of the container `load`, with some companies of the sample in the index."""
    shell = Shell(tmp_path_factory.mktemp("load"))
    lines = (ROOT / "data" / "sample" / "companies.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (shell.folder / "companies.jsonl").write_text("".join(lines[:COMPANIES]), encoding="utf-8")

    def run(*arguments: str) -> str:
        return shell(*arguments, "--index", f"{cluster.url}/companies", fails=False, **login(SERVICES["load"]))

    run("ingest", "companies.jsonl")
    return run


@pytest.fixture
def client_as(cluster: ElasticsearchCluster) -> Iterator[Callable[[str], Elasticsearch]]:
    """Opens clients of a container's user."""
    with ExitStack() as opened:

        def client(service: str) -> Elasticsearch:
            given = SERVICES[service].environment
            user = tuple(given[f"SIMILARITY_ELASTICSEARCH_{part}"] for part in ("USERNAME", "PASSWORD"))
            return opened.enter_context(closing(Elasticsearch(cluster.url, basic_auth=(user[0], user[1]))))

        yield client


def test_the_pipelines_user_loads_re_embeds_rolls_back_retires_and_erases(
    similarity: Callable[..., str], tmp_path: Path
) -> None:
    assert f"{COMPANIES} companies" in similarity("ingest", "companies.jsonl")
    similarity("similar", "ab-inbev", "-k", "3")
    another_bundle(tmp_path / "new", max_tokens=96)
    similarity("generations", "reembed", "--bundle", str(tmp_path / "new"), "--without-gate", "--compact")
    similarity("generations", "rollback")
    similarity("generations", "copy")
    listed = json.loads(similarity("generations", "list", "--format", "json"))
    for name in [each["name"] for each in listed if each["state"] == "previous"]:
        similarity("generations", "retire", name)
    similarity("erase", "acc-batteries")
    similarity("generations", "purge-deleted", "--older-than", "1")
    [left] = json.loads(similarity("generations", "list", "--format", "json"))
    assert (left["state"], left["companies"]) == ("live", COMPANIES - 1)


def test_the_search_user_answers_judges_saves_lists_and_erases(
    cluster: ElasticsearchCluster, similarity: Callable[..., str]
) -> None:
    target, given = f"{cluster.url}/companies", login(SERVICES["search"])
    encoder = TextEncoder(ModelBundle.load(seed_folder()))
    with (
        closing(open_index(target, given)) as index,
        closing(open_workspace(target, given)) as workspace,
        TestClient(create_app(index=index, encoder=encoder, workspace=workspace)) as client,
    ):

        def ask(method: str, path: str, **more: Any) -> Any:
            answer = client.request(method, path, **more)
            assert answer.is_success, answer.text
            return answer.json() if answer.content else None

        ask("GET", "/readyz")
        [first, second, *_] = [hit["company"]["id"] for hit in ask("GET", "/similar/ab-inbev")["hits"]]
        ask("POST", "/feedback", json={"anchor": "ab-inbev", "hit": first, "verdict": "competitor"})
        ask("PUT", "/lists/beer", json={"question": {"anchors": [{"company": first}, {"company": second}]}})
        ask("POST", "/lists/beer/looked")
        assert ask("POST", f"/companies/{first}/erasure")["erased"]
        deadline = time.monotonic() + SECONDS_TO_ERASE
        while (erasure := ask("GET", f"/companies/{first}/erasure"))["state"] == "running":
            assert time.monotonic() < deadline, erasure
            time.sleep(0.5)
        assert (erasure["state"], erasure["problem"], erasure["forgotten"]["events"]) == ("done", "", 1)
        assert client.get(f"/companies/{first}").status_code == 404
        ask("DELETE", "/lists/beer")


@pytest.mark.parametrize("service", ["search", "load"])
@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.indices.create(index="others-index"),
        lambda client: client.index(index="others-index", document={}),
        lambda client: client.search(index="others-index"),
        lambda client: client.cluster.put_settings(persistent={"action.auto_create_index": "false"}),
        lambda client: client.security.put_user(username="mallory", password="x" * 20, roles=["superuser"]),
        lambda client: client.security.put_role(name="mallory", cluster=["all"]),
        lambda client: client.security.change_password(username="elastic", password="x" * 20),
        lambda client: client.snapshot.create_repository(
            name="mallory", repository={"type": "fs", "settings": {"location": "mallory"}}
        ),
        lambda client: client.indices.put_index_template(name="mallory", index_patterns=["*"]),
        lambda client: client.cluster.reroute(),
    ],
)
def test_nothing_else_is_allowed(
    client_as: Callable[[str], Elasticsearch],
    similarity: Callable[..., str],
    service: str,
    use: Callable[[Elasticsearch], object],
) -> None:
    with pytest.raises(AuthorizationException):
        use(client_as(service))


@pytest.mark.parametrize(
    "use",
    [
        lambda client, index: client.indices.create(index="companies-more"),
        lambda client, index: client.indices.delete(index=index),
        lambda client, index: client.indices.close(index=index),
        lambda client, index: client.indices.put_settings(index=index, settings={"index.blocks.write": True}),
        lambda client, index: client.indices.put_mapping(index=index, properties={"more": {"type": "keyword"}}),
        lambda client, index: client.indices.put_alias(index=index, name="companies-other"),
    ],
)
def test_the_search_user_makes_changes_and_deletes_no_generation(
    client_as: Callable[[str], Elasticsearch],
    similarity: Callable[..., str],
    use: Callable[[Elasticsearch, str], object],
) -> None:
    index = next(iter(client_as("load").indices.get_alias(index="companies-*", name="*-write")))
    with pytest.raises(AuthorizationException):
        use(client_as("search"), index)


def test_who_has_no_password_is_refused(cluster: ElasticsearchCluster) -> None:
    with closing(Elasticsearch(cluster.url)) as client:
        for user in ("similarity-search", "similarity-pipelines"):
            with pytest.raises(AuthenticationException):
                client.options(basic_auth=(user, SETTINGS["ELASTIC_PASSWORD"])).cluster.health()
        with pytest.raises(AuthenticationException):
            client.cluster.health()
