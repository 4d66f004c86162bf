"""The overlays render, and their objects fit the published schemas of every Kubernetes they are for."""

import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from deploy.kubernetes.alert_rules import KUBERNETES, SOURCE, TARGET, prometheus_rule
from tests.deploy.kubernetes_objects import FLINK, OURS, OVERLAYS, megabytes, named, of_kind, pod, pods, rendered

VERSIONS = ("1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
# Of operators: an API server checks them (test_kubernetes_cluster.py).
CUSTOM = {"FlinkDeployment", "PodMonitor", "PrometheusRule", "ServiceMonitor"}
ROOT = KUBERNETES.parents[1]


def test_there_are_overlays_of_each_size() -> None:
    assert set(OVERLAYS) == {"small", "production", "production-flink"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_renders_to_one_namespace(overlay: str) -> None:
    objects = rendered(overlay)
    [namespace] = of_kind(objects, "Namespace")
    others = [each for each in objects if each is not namespace]
    assert {each["metadata"]["namespace"] for each in others} == {namespace["metadata"]["name"]}
    assert len({(each["kind"], each["metadata"]["name"]) for each in objects}) == len(objects)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_fits_the_schemas(overlay: str, version: str) -> None:
    if not find_spec("kubernetes_validate"):
        pytest.skip("kubernetes-validate, which holds the schemas, is not installed: make test sets it up")
    schemas = import_module("kubernetes_validate")
    for each in rendered(overlay):
        if each["kind"] not in CUSTOM:
            schemas.validate(each, version, strict=True)


@pytest.mark.parametrize("manifest", sorted(KUBERNETES.rglob("kustomization.yaml")), ids=lambda path: path.parent.name)
def test_every_file_of_a_folder_is_used(manifest: Path) -> None:
    given = yaml.safe_load(manifest.read_text(encoding="utf-8"))
    used = {*given.get("resources", []), *given.get("configurations", [])}
    used |= {patch["path"] for patch in given.get("patches", []) if "path" in patch}
    assert {path.name for path in manifest.parent.glob("*.yaml")} - {manifest.name} == {n for n in used if "/" not in n}


def test_every_component_is_in_an_overlay() -> None:
    used = {
        Path(name).name
        for overlay in OVERLAYS
        for name in yaml.safe_load((KUBERNETES / "overlays" / overlay / "kustomization.yaml").read_text()).get(
            "components", []
        )
    }
    assert used == {folder.name for folder in (KUBERNETES / "components").iterdir()}


def test_alert_rules_are_those_of_the_observe_folder() -> None:
    assert TARGET.read_text(encoding="utf-8") == prometheus_rule(SOURCE.read_text(encoding="utf-8")), (
        "the copy of the alert rules is old: python -m deploy.kubernetes.alert_rules"
    )
    rule = yaml.safe_load(TARGET.read_text(encoding="utf-8"))
    assert rule["spec"] == yaml.safe_load(SOURCE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("overlay", "owner", "container", "job"),
    [
        ("production", "Deployment/search", "search", "search"),
        ("production", "Deployment/stream", "stream", "stream"),
        ("production-flink", "FlinkDeployment/flink/taskManager", "workers", "stream"),
        ("production", "CronJob/reembed", "reembed", "reembed"),
    ],
)
def test_the_alert_on_memory_knows_the_limits(overlay: str, owner: str, container: str, job: str) -> None:
    rules = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))["groups"]
    [limits] = [group["rules"] for group in rules if group["name"] == "limits"]
    [known] = [rule["expr"] for rule in limits if rule["labels"] == {"job": job}]
    [running] = [each for each in pod(rendered(overlay), owner).containers if each["name"] == container]
    gigabytes = megabytes(running["resources"]["limits"]["memory"]) / 1024
    assert known == f"vector({gigabytes:.0f} * 1024 ^ 3)"


def test_what_is_scraped_is_called_as_the_alerts_call_it() -> None:
    for overlay in ("production", "production-flink"):
        objects = rendered(overlay)
        service, pods_ = named(objects, "ServiceMonitor", "search"), named(objects, "PodMonitor", "stream")
        assert service["spec"]["jobLabel"] == pods_["spec"]["jobLabel"] == "metrics"
        assert named(objects, "Service", "search-metrics")["metadata"]["labels"]["metrics"] == "search"
        assert service["spec"]["selector"] == {"matchLabels": {"metrics": "search"}}
        assert pods_["spec"]["selector"] == {"matchLabels": {"metrics": "stream"}}


def test_flink_is_the_one_of_the_compose_file() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    objects = rendered("production-flink")
    [flink] = [each for each in pod(objects, "FlinkDeployment/flink/jobManager").containers if each["name"] == FLINK]
    [server] = pod(objects, "Deployment/jobserver").containers
    assert flink["image"] == services["jobmanager"]["image"]
    assert server["image"] == services["jobserver"]["image"]
    minor = flink["image"].removeprefix("flink:").rpartition(".")[0]
    assert f"flink{minor}_job_server" in server["image"]


REEMBED_RULE_TEST = """
rule_files: [rules.yml]
tests:
  - interval: 1h
    input_series:
      - series: kube_cronjob_status_last_successful_time{namespace="similarity", cronjob="reembed"}
        values: 0x400
      - series: kube_cronjob_spec_suspend{namespace="similarity", cronjob="reembed"}
        values: 0x299 1x100
    alert_rule_test:
      - {eval_time: 191h, alertname: ReembedNotDone, exp_alerts: []}
      - eval_time: 193h
        alertname: ReembedNotDone
        exp_alerts:
          - exp_labels: {severity: warning, namespace: similarity, cronjob: reembed}
            exp_annotations:
              summary: No scheduled re-embed has succeeded for 8d 1h 0m 0s; the old generation is still live.
              runbook: docs/kubernetes.md#a-new-model
      - {eval_time: 301h, alertname: ReembedNotDone, exp_alerts: []}
  - name: none has ever succeeded
    interval: 1h
    input_series:
      - series: kube_cronjob_created{namespace="similarity", cronjob="reembed"}
        values: 0x400
      - series: kube_cronjob_spec_suspend{namespace="similarity", cronjob="reembed"}
        values: 0x299 1x100
    alert_rule_test:
      - {eval_time: 191h, alertname: ReembedNotDone, exp_alerts: []}
      - eval_time: 193h
        alertname: ReembedNotDone
        exp_alerts:
          - exp_labels: {severity: warning, namespace: similarity, cronjob: reembed}
            exp_annotations:
              summary: No scheduled re-embed has succeeded for 8d 1h 0m 0s; the old generation is still live.
              runbook: docs/kubernetes.md#a-new-model
      - {eval_time: 301h, alertname: ReembedNotDone, exp_alerts: []}
  - name: an old CronJob that succeeded lately
    interval: 1h
    input_series:
      - series: kube_cronjob_created{namespace="similarity", cronjob="reembed"}
        values: 0x400
      - series: kube_cronjob_status_last_successful_time{namespace="similarity", cronjob="reembed"}
        values: 0x300 1080000x100
      - series: kube_cronjob_spec_suspend{namespace="similarity", cronjob="reembed"}
        values: 0x400
    alert_rule_test:
      - {eval_time: 310h, alertname: ReembedNotDone, exp_alerts: []}
"""


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_all_our_images_are_of_one_registry_and_release(overlay: str) -> None:
    images = {
        container["image"]
        for pod_ in pods(rendered(overlay))
        for container in pod_.containers
        if OURS in container["image"]
    }
    places = {(image.partition(OURS)[0], image.rpartition(":")[2]) for image in images}
    assert len(places) == 1, images
    assert len({image.rpartition("/")[2].partition(":")[0] for image in images}) >= 2


def test_the_alert_on_re_embeds_fires_after_eight_days(tmp_path: Path) -> None:
    if not (promtool := shutil.which("promtool")):
        pytest.skip("promtool is needed to test alert rules (Debian: apt-get install prometheus)")
    rule = named(rendered("production"), "PrometheusRule", "reembed")
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule["spec"]), encoding="utf-8")
    (tmp_path / "test.yml").write_text(REEMBED_RULE_TEST, encoding="utf-8")
    command = [promtool, "test", "rules", "test.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "## A new model" in (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
