"""Commands and variables of the manifests, read by the programs that get them."""

import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from services.search.__main__ import _parser as search_parser
from services.search.settings import Address, ServiceSettings
from similarity.errors import InvalidInput
from similarity.index.elastic.settings import ElasticSettings
from similarity.kafka import KafkaSettings
from similarity.settings import Settings
from tests.deploy.kubernetes_objects import (
    OURS,
    OVERLAYS,
    Object,
    arguments,
    named,
    of_kind,
    pod,
    pods,
    rendered,
    variables,
)

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
OUR_CONTAINERS = [
    (overlay, each.owner, container["name"])
    for overlay in OVERLAYS
    for each in pods(rendered(overlay))
    for container in each.containers
    if OURS in container["image"]
]
PREFIX = "SIMILARITY_"


def container_of(overlay: str, owner: str, name: str) -> tuple[Object, list[Object]]:
    objects = rendered(overlay)
    [found] = [each for each in pod(objects, owner).containers if each["name"] == name]
    return found, objects


def settings_of(environ: Mapping[str, str]) -> list[object]:
    """What all readers of SIMILARITY_ variables make of an environment; each refuses one that it does not know."""
    settings = Settings.from_environment(environ)
    return [
        settings,
        ServiceSettings.from_environment(environ),
        ElasticSettings.from_environment(settings.index, environ),
        KafkaSettings.from_environment(environ),
    ]


@pytest.mark.parametrize(("overlay", "owner", "name"), OUR_CONTAINERS)
def test_every_variable_is_a_setting(overlay: str, owner: str, name: str) -> None:
    found, objects = container_of(overlay, owner, name)
    environ = variables(found, objects)
    ours = {each: value for each, value in environ.items() if each.startswith(PREFIX)}
    if "SIMILARITY_INDEX" in ours:
        settings_of(ours)
    else:
        assert ours == {}
    # Files that settings name are in a folder that is mounted.
    folders = [mount["mountPath"] for mount in found.get("volumeMounts", [])]
    for value in (value for value in ours.values() if value.startswith("/")):
        assert any(value == folder or value.startswith(f"{folder}/") for folder in folders), value


@pytest.mark.parametrize(("overlay", "owner", "name"), OUR_CONTAINERS)
def test_every_path_of_a_command_is_in_the_image_or_mounted(overlay: str, owner: str, name: str) -> None:
    found, objects = container_of(overlay, owner, name)
    folders = ["/app", "/usr/local/bin", *(mount["mountPath"] for mount in found.get("volumeMounts", []))]
    for argument in arguments(found, objects):
        path = argument.partition("=")[2] or argument
        if path.startswith("/"):
            assert any(path.startswith(f"{folder}/") or path == folder for folder in folders), path
    assert not [part for part in arguments(found, objects) if "$(" in part]


def test_the_guide_gives_the_keys_of_elasticsearch_the_rights_of_the_roles() -> None:
    roles = yaml.safe_load((ROOT / "deploy" / "elasticsearch" / "roles.yml").read_text(encoding="utf-8"))
    keys = [json.loads(body) for body in re.findall(r"-d '(\{\"name\": \"similarity-.*?)'", GUIDE, re.DOTALL)]
    assert {key["name"]: key["role_descriptors"][key["name"]] for key in keys} == roles


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_only_one_container_serves_and_it_has_keys(overlay: str) -> None:
    objects = rendered(overlay)
    serving = [
        each.owner
        for each in pods(objects)
        for container in each.containers
        if {"services.search", "serve"} & {*container.get("command", ()), *container.get("args", ())}
    ]
    assert serving == ["Deployment/search"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_search_may_listen_beyond_its_pod_because_it_has_keys(overlay: str) -> None:
    found, objects = container_of(overlay, "Deployment/search", "search")
    command, environ = arguments(found, objects), variables(found, objects)
    assert command[:3] == ["python", "-m", "services.search"]
    options = search_parser().parse_args(command[3:])
    service = ServiceSettings.from_environment(
        {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    )
    # Without keys it would not start: a pod's address is one that others reach, and it is not published on another.
    assert service.keys is not None
    assert service.published_address == ""
    with pytest.raises(InvalidInput, match="there are no keys"):
        Address(host=options.host, port=options.port)
    [mount] = [each for each in found["volumeMounts"] if Path(each["mountPath"]) == service.keys.parent]
    [volume] = [each for each in pod(objects, "Deployment/search").spec["volumes"] if each["name"] == mount["name"]]
    assert not volume["secret"].get("optional")
    assert service.writes == "kafka"
    assert service.logs == "json"
    assert service.cursor_secret
    assert service.metrics_host == "0.0.0.0"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_all_of_an_overlay_work_on_one_index_and_one_topic(overlay: str) -> None:
    objects = rendered(overlay)
    indexes, topics = set(), set()
    for each in pods(objects):
        for container in each.containers:
            environ = variables(container, objects)
            if PREFIX + "INDEX" in environ:
                indexes.add((environ[PREFIX + "INDEX"], environ[PREFIX + "BUNDLES"]))
            if "SIMILARITY_SERVICE_KAFKA_TOPIC" in environ:
                topics.add(environ["SIMILARITY_SERVICE_KAFKA_TOPIC"])
    [topic] = topics
    assert len(indexes) == 1
    [stream] = pod(objects, "Deployment/stream").spec["containers"]
    assert f"--kafka-topic={topic}" in arguments(stream, objects)
    assert f"--topic {topic} " in GUIDE


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_stream_reads_what_it_is_told(overlay: str) -> None:
    if not find_spec("apache_beam"):
        pytest.skip("Beam is not installed here: make test-integration")
    from argparse import ArgumentParser

    from pipelines.options import add_stream_options, beam_options, stream_options

    found, objects = container_of(overlay, "Deployment/stream", "stream")
    command = arguments(found, objects)
    assert command[:3] == ["python", "-m", "pipelines.stream"]
    parser = ArgumentParser()
    add_stream_options(parser)
    given, rest = parser.parse_known_args(command[3:])
    options = stream_options(given)
    beam = beam_options(rest, bounded=False, job_name=options.source.job_name).get_all_options()
    assert options.source.topic
    assert not options.source.bounded
    [folder] = [mount["mountPath"] for mount in found["volumeMounts"] if mount["name"] == "dead-letters"]
    assert options.dead_letters == folder
    if overlay == "production-flink":
        assert beam["runner"] == "PortableRunner"
        assert beam["flink_master"] == "flink-rest:8081"
        flink = named(objects, "FlinkDeployment", "flink")
        assert beam["flink_master"].startswith(f"{flink['metadata']['name']}-rest:")
        slots = int(flink["spec"]["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
        [parallelism] = [part for part in rest if part.startswith("--parallelism=")]
        assert int(parallelism.partition("=")[2]) == slots * flink["spec"]["taskManager"]["replicas"]
        service = named(objects, "Service", "jobserver")
        assert beam["job_endpoint"] == "jobserver:8099"
        assert {port["port"] for port in service["spec"]["ports"]} == {8099, 8098}
    else:
        assert beam["runner"] == "PrismRunner"
        # Nothing is downloaded: it is in the image.
        folder, _, program = beam["prism_location"].rpartition("/")
        image = (ROOT / "deploy" / "images" / "pipelines.Dockerfile").read_text(encoding="utf-8")
        assert f"{folder}/{program} {folder}/\n" in image


@pytest.mark.parametrize("overlay", [overlay for overlay in OVERLAYS if overlay != "small"])
def test_a_re_embed_reads_what_it_is_told(overlay: str) -> None:
    found, objects = container_of(overlay, "CronJob/reembed", "reembed")
    command = arguments(found, objects)
    assert command[:3] == ["python", "-m", "pipelines.reembed"]
    # Judged by what was not trained on; the times are the CronJob's.
    assert command[3:] == [
        "--models=/var/lib/similarity/models",
        "--judged=/etc/similarity/judged/judged.tsv",
    ]
    assert "create configmap judged-pairs --from-file judged.tsv" in GUIDE


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_first_load_changes_nothing_the_second_time(overlay: str) -> None:
    found, objects = container_of(overlay, "CronJob/first-load", "first-load")
    command = arguments(found, objects)
    assert command[:2] == ["similarity", "ingest"]
    assert "--only-if-new" in command
    [rejects] = [part.partition("=")[2] for part in command if part.startswith("--rejects=")]
    # Beside the file is where they would go, and the image is read-only.
    writable = [mount["mountPath"] for mount in found["volumeMounts"] if not mount.get("readOnly")]
    assert any(rejects.startswith(f"{folder}/") for folder in writable)


def test_what_the_guide_puts_into_secrets_are_settings() -> None:
    given = dict(re.findall(r"--from-literal (SIMILARITY_[A-Z_]+)=(\S+)", GUIDE))
    assert {"SIMILARITY_ELASTICSEARCH_API_KEY", "SIMILARITY_KAFKA_USERNAME", "SIMILARITY_KAFKA_PASSWORD"} <= set(given)
    objects = rendered("production")
    [settings] = [each["data"] for each in of_kind(objects, "ConfigMap") if "SIMILARITY_INDEX" in each["data"]]
    settings_of({**settings, **given})
