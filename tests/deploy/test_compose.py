"""What docker-compose.yml promises, read from the file; tests/end_to_end/story.py runs it."""

import re
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
SECRETS = {"ELASTIC_PASSWORD": "x" * 20, "CURSOR_SECRET": "y" * 20, "GRAFANA_PASSWORD": "z" * 20}
CONTENT: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
DESCRIBED: dict[str, dict[str, Any]] = CONTENT["services"]
SERVICES = read_services(FILE, SECRETS)
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
    published = [port for service in DESCRIBED.values() for port in service.get("ports", [])]
    assert len(published) == 4
    assert all(interpolated(port, SECRETS).startswith("127.0.0.1:") for port in published)


def test_only_the_network_without_a_way_out_reaches_elasticsearch() -> None:
    assert CONTENT["networks"]["stores"] == {"internal": True}
    assert DESCRIBED["elasticsearch"]["networks"] == ["stores"]
    assert "ports" not in DESCRIBED["elasticsearch"]


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


def test_mounted_files_exist() -> None:
    mounted = [volume for service in DESCRIBED.values() for volume in service.get("volumes", []) if volume[0] == "."]
    assert mounted
    assert all((ROOT / volume.split(":")[0]).exists() for volume in mounted)


def test_values_are_filled_in_as_compose_does() -> None:
    variables: Mapping[str, str] = {"A": "1", "EMPTY": ""}
    assert interpolated("${A} ${B:-two} ${EMPTY:-three} $$A ${A:?no}", variables) == "1 two three $A 1"


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
