"""What docker-compose.yml promises, read from the file; tests/end_to_end/story.py runs it."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import environment
from deploy.environment import ROOT, filled
from services.search.settings import ServiceSettings
from similarity.settings import Settings
from tests.end_to_end.stacks.compose_file import (
    VARIABLE,
    MissingVariable,
    Service,
    in_order,
    interpolated,
    read_services,
)

FILE = ROOT / "docker-compose.yml"
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
SECRETS = {
    "ELASTIC_PASSWORD": "v" * 20,
    "SEARCH_ELASTICSEARCH_PASSWORD": "w" * 20,
    "PIPELINES_ELASTICSEARCH_PASSWORD": "x" * 20,
    "CURSOR_SECRET": "y" * 20,
    "GRAFANA_PASSWORD": "z" * 20,
}
CONTENT: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
DESCRIBED: dict[str, dict[str, Any]] = CONTENT["services"]
SERVICES = read_services(FILE, SECRETS)
MODULE = "-m services.search.keys"
GIB = {"m": 1 / 1024, "g": 1.0}
# What has state of its own inside its image, or starts as somebody who may not write where it wants to.
THEIRS = {"elasticsearch", "kafka", "topics", "jobmanager", "taskmanager", "jobserver", "grafana"}


def gib(limit: str) -> float:
    value = interpolated(limit, SECRETS)
    return float(value[:-1]) * GIB[value[-1]]


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_service_is_bounded_and_has_no_more_rights_than_it_needs(name: str) -> None:
    service = DESCRIBED[name]
    assert gib(service["mem_limit"]) > 0
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("read_only") or name in THEIRS
    assert "privileged" not in service


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda each: each.name)
def test_images_are_named_with_a_version(service: Service) -> None:
    name, _, tag = service.image.rpartition(":")
    assert name
    assert re.search(r"\d+\.\d+", tag), service.image


def test_the_core_fits_8_gib() -> None:
    core = [name for name, service in SERVICES.items() if not service.profiles and not service.once]
    assert core == ["elasticsearch", "kafka", "stream", "search"]
    assert sum(gib(DESCRIBED[name]["mem_limit"]) for name in core) <= 8


def test_ports_are_published_on_loopback_only() -> None:
    published = {name: service["ports"] for name, service in DESCRIBED.items() if "ports" in service}
    assert set(published) == {"search", "prometheus", "grafana"}
    assert all(interpolated(port, SECRETS).startswith("127.0.0.1:") for ports in published.values() for port in ports)


@pytest.mark.parametrize("store", ["elasticsearch", "kafka"])
def test_only_the_network_without_a_way_out_reaches_a_store(store: str) -> None:
    assert CONTENT["networks"]["stores"] == {"internal": True}
    assert DESCRIBED[store]["networks"] == ["stores"]
    assert "ports" not in DESCRIBED[store]


def test_kafka_has_no_listener_for_others_than_the_containers() -> None:
    kafka = SERVICES["kafka"].environment
    assert kafka["KAFKA_LISTENERS"] == "INSIDE://:9092,CONTROLLER://localhost:9093"
    assert kafka["KAFKA_ADVERTISED_LISTENERS"] == "INSIDE://kafka:9092"


def refusal(**variables: str) -> str:
    """Why the service of the file does not start with these variables in .env."""
    service = read_services(FILE, SECRETS | variables)["search"]
    [port] = DESCRIBED["search"]["ports"]
    published = interpolated(port, SECRETS | variables).removesuffix(":8080:8080")
    assert service.environment["SIMILARITY_SERVICE_PUBLISHED_ADDRESS"] == published
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SIMILARITY_")}
    # Nothing listens there: a service that may start says so next.
    environment |= {**service.environment, "SIMILARITY_INDEX": "http://127.0.0.1:1/companies"}
    command = [sys.executable, *service.command[1:]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0", "192.168.1.7", "[::]", "example.com"])
def test_the_service_is_not_published_to_the_network_without_keys(address: str, tmp_path: Path) -> None:
    said = refusal(SEARCH_ADDRESS=address)
    assert f"the network can reach {address} and there are no keys" in said
    keys = tmp_path / "keys.json"
    assert "there is no file of keys" in refusal(SEARCH_ADDRESS=address, SEARCH_KEYS=str(keys))
    keys.write_text('{"keys": []}', encoding="utf-8")
    assert "holds no key" in refusal(SEARCH_ADDRESS=address, SEARCH_KEYS=str(keys))
    make_a_key(keys)
    assert "Elasticsearch at http://127.0.0.1:1" in refusal(SEARCH_ADDRESS=address, SEARCH_KEYS=str(keys))


@pytest.mark.parametrize("variables", [{}, {"SEARCH_ADDRESS": "127.0.0.1"}, {"SEARCH_ADDRESS": "[::1]"}])
def test_the_service_starts_without_keys_on_this_machine_only(variables: dict[str, str]) -> None:
    assert "Elasticsearch at http://127.0.0.1:1" in refusal(**variables)


def test_the_command_of_the_refusal_makes_the_key(tmp_path: Path) -> None:
    said = refusal(SEARCH_ADDRESS="0.0.0.0")
    [command] = re.findall(r"docker compose run --rm keys python (.*?), and set", said)
    [path] = re.findall(r"SEARCH_KEYS=(\S+) in \.env", said)
    keys = SERVICES["keys"]
    assert path == keys.environment["SIMILARITY_SERVICE_KEYS"]
    assert f"keys:{Path(path).parent}" in keys.volumes
    assert f"keys:{Path(path).parent}:ro" in SERVICES["search"].volumes
    make_a_key(tmp_path / "keys.json", command.replace(path, str(tmp_path / "keys.json")))
    assert (tmp_path / "keys.json").exists()


def make_a_key(path: Path, arguments: str = "") -> None:
    command = [sys.executable, *shlex.split(arguments or f"{MODULE} add ann --scope read --file {path}")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def test_each_container_writes_no_more_than_it_must() -> None:
    """`search` and `reembed` cannot write what models and keys are taken from."""
    state = "/var/lib/similarity/"
    mounts = {
        name: {volume.replace(f":{state}", "=") for volume in each.volumes if state in volume}
        for name, each in SERVICES.items()
    }
    assert {name: each for name, each in mounts.items() if each} == {
        "load": {"bundles=bundles", "files=files", "models=models:ro", "audit=audit"},
        "stream": {"bundles=bundles", "dead-letters=dead-letters", "audit=audit"},
        "search": {"bundles=bundles:ro", "keys=keys:ro", "audit=audit"},
        "keys": {"keys=keys", "audit=audit"},
        "reembed": {"bundles=bundles", "models=models:ro", "audit=audit"},
        "train": {"files=files", "models=models"},
        "train-cpu": {"files=files", "models=models"},
        "workers": {"bundles=bundles", "dead-letters=dead-letters", "audit=audit"},
    }


@pytest.mark.parametrize("name", ["search", "load", "stream", "reembed", "train", "workers", "keys"])
def test_an_image_has_the_folders_that_volumes_are_mounted_on(name: str) -> None:
    """Or a new volume would be root's, and the container's user could not write to it."""
    image = SERVICES[name].image.partition("/")[2].partition(":")[0]
    made = (ROOT / "deploy" / "images" / f"{image}.Dockerfile").read_text(encoding="utf-8")
    assert {volume.split(":")[1] for volume in SERVICES[name].volumes} <= set(re.findall(r"/var/lib/\S+", made))


def test_only_elasticsearch_itself_knows_the_user_who_may_do_everything() -> None:
    secret = SECRETS["ELASTIC_PASSWORD"]
    assert [each.name for each in SERVICES.values() if secret in each.environment.values()] == ["elasticsearch"]
    roles = yaml.safe_load((ROOT / "deploy" / "elasticsearch" / "roles.yml").read_text(encoding="utf-8"))
    users = {name: each.environment.get("SIMILARITY_ELASTICSEARCH_USERNAME") for name, each in SERVICES.items()}
    assert users["search"] == "similarity-search"
    assert {users[name] for name in ("load", "stream", "reembed", "workers")} == {"similarity-pipelines"}
    assert {user for user in users.values() if user} == set(roles)


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda each: each.name)
def test_what_is_waited_for_can_come(service: Service) -> None:
    for name, condition in service.needs.items():
        needed = SERVICES[name]
        assert condition != "service_healthy" or needed.health, f"{name} has no health check"
        assert (condition == "service_completed_successfully") == needed.once


def test_services_start_in_the_order_of_their_needs() -> None:
    order = [service.name for service in in_order(SERVICES, ["search", "stream"])]
    assert order.index("elasticsearch") < order.index("load") < order.index("search") < order.index("stream")
    assert order.index("kafka") < order.index("topics") < order.index("stream")
    assert "jobserver" not in order


@pytest.mark.parametrize("secret", SECRETS)
def test_a_start_without_a_secret_says_how_to_get_one(secret: str) -> None:
    with pytest.raises(MissingVariable, match=f"{secret} is missing - make env"):
        read_services(FILE, {**SECRETS, secret: ""})


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda each: each.name)
def test_its_settings_are_ones_that_the_software_knows(service: Service) -> None:
    Settings.from_environment(service.environment)
    ServiceSettings.from_environment(service.environment)


def test_the_example_lists_every_variable_with_its_default() -> None:
    used = {match["name"]: match["otherwise"] for match in VARIABLE.finditer(FILE.read_text()) if match["name"]}
    secrets = set(re.findall(r"^([A-Z_]+)=$", EXAMPLE, re.MULTILINE))
    shown = dict(re.findall(r"^#([A-Z_]+)=(.+)$", EXAMPLE, re.MULTILINE))
    assert secrets == set(SECRETS)
    assert set(used) == secrets | set(shown)
    other = {"SEARCH_KEYS", "STREAM_RUNNER", "STREAM_METRICS"}  # what one would set them to
    assert {name: used[name] for name in set(shown) - other} == {name: shown[name] for name in set(shown) - other}


def test_the_sample_is_loaded_as_make_demo_loads_it() -> None:
    demo = re.search(r"ingest data/sample/companies.jsonl --index \S+ ((?:.+\\\n)*.+)", (ROOT / "Makefile").read_text())
    assert demo
    options = demo[1].replace("\\\n", " ").split()
    assert options
    assert SERVICES["load"].command[-len(options) :] == tuple(options)
    own = read_services(FILE, SECRETS | {"COMPANIES": "/companies.csv"})["load"]
    assert own.command[-1] == "/companies.csv"


def test_mounted_files_exist() -> None:
    mounted = [volume for service in DESCRIBED.values() for volume in service.get("volumes", []) if volume[0] == "."]
    assert mounted
    assert all((ROOT / volume.split(":")[0]).exists() for volume in mounted)


def test_values_are_filled_in_as_compose_does() -> None:
    variables: Mapping[str, str] = {"A": "1", "EMPTY": ""}
    assert interpolated("${A} ${B:-two} ${EMPTY:-three} $$A ${A:?no}", variables) == "1 two three $A 1"


def test_make_env_adds_the_secrets_that_an_older_file_lacks(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text(EXAMPLE, encoding="utf-8")
    (tmp_path / ".env").write_text("ELASTIC_PASSWORD=old\nCURSOR_SECRET=\nSEARCH_PORT=80", encoding="utf-8")
    environment.main(tmp_path)
    written = (tmp_path / ".env").read_text(encoding="utf-8")
    assert written.startswith("ELASTIC_PASSWORD=old\nCURSOR_SECRET=\nSEARCH_PORT=80\n")
    added = dict(line.split("=", 1) for line in written.splitlines()[3:] if line)
    assert set(added) == set(SECRETS) - {"ELASTIC_PASSWORD"}
    assert all(len(value) > 40 for value in added.values())


def test_make_env_writes_new_secrets_once(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text(EXAMPLE, encoding="utf-8")
    environment.main(tmp_path)
    written = (tmp_path / ".env").read_text(encoding="utf-8")
    values = re.findall(r"^[A-Z_]+=(.+)$", written, re.MULTILINE)
    assert len(set(values)) == len(SECRETS)
    assert all(len(value) > 40 for value in values)
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    assert filled(EXAMPLE) != written
    with pytest.raises(SystemExit, match="stays as it is"):
        environment.main(tmp_path)
    assert (tmp_path / ".env").read_text(encoding="utf-8") == written
