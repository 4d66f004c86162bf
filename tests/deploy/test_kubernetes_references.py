"""What manifests name is there, or the guide says who makes it; and nothing is reached that nobody opened."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.kubernetes_objects import (
    OVERLAYS,
    Object,
    cores,
    matches,
    megabytes,
    named,
    of_kind,
    pod,
    pods,
    rendered,
)

GUIDE = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
# Made by who runs the cluster.
BROUGHT = {
    "Secret": {"elasticsearch-login", "search-elasticsearch-login", "kafka-login", "search-keys", "search-cursor"},
    "ConfigMap": {"judged-pairs"},
}
OPTIONAL = {"elasticsearch-ca", "kafka-ca"}


def values(found: Any, key: str) -> Iterator[Any]:
    """Everything under this key, at any depth."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == key:
                yield value
            yield from values(value, key)
    elif isinstance(found, list):
        for value in found:
            yield from values(value, key)


def names(objects: list[Object], kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in of_kind(objects, kind)}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_secret_is_contained_and_each_is_in_the_guide(overlay: str) -> None:
    objects = rendered(overlay)
    assert of_kind(objects, "Secret") == []
    given = list(values(objects, "secretRef")) + list(values(objects, "secretKeyRef")) + list(values(objects, "secret"))
    found = {each.get("name") or each["secretName"]: each.get("optional", False) for each in given}
    assert {name for name, optional in found.items() if not optional} == BROUGHT["Secret"]
    assert {name for name, optional in found.items() if optional} == OPTIONAL
    for name in found:
        assert re.search(rf"create secret generic {name}\b", GUIDE), f"docs/kubernetes.md does not make {name}"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_is_configured_holds_no_secret(overlay: str) -> None:
    for settings in of_kind(rendered(overlay), "ConfigMap"):
        for name, value in settings["data"].items():
            assert not re.search("PASSWORD|API_KEY|CURSOR_SECRET", name)
            assert "@" not in value


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_accounts_claims_and_settings_that_pods_name_are_there(overlay: str) -> None:
    objects = rendered(overlay)
    used_accounts, used_claims, used_settings = set(), set(), set()
    for each in pods(objects):
        used_accounts.add(each.spec["serviceAccountName"])
        used_claims |= {claim["claimName"] for claim in values(each.spec, "persistentVolumeClaim")}
        used_settings |= {ref["name"] for key in ("configMapRef", "configMap") for ref in values(each.spec, key)}
    assert used_accounts == names(objects, "ServiceAccount")
    assert used_claims == names(objects, "PersistentVolumeClaim")
    assert used_settings - names(objects, "ConfigMap") <= BROUGHT["ConfigMap"]
    assert names(objects, "ConfigMap") <= used_settings
    for name in used_settings & BROUGHT["ConfigMap"]:
        assert f"create configmap {name}" in GUIDE
    for account in of_kind(objects, "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_selector_finds_a_pod(overlay: str) -> None:
    objects = rendered(overlay)
    labels = [each.labels for each in pods(objects)]
    for each in of_kind(objects, "Service"):
        assert any(matches({"matchLabels": each["spec"]["selector"]}, found) for found in labels), each["metadata"]
    for each in of_kind(objects, "Deployment"):
        own = pod(objects, f"Deployment/{each['metadata']['name']}").labels
        assert matches(each["spec"]["selector"], own)
        # No other's pods.
        assert sum(matches(each["spec"]["selector"], found) for found in labels) == 1
    for each in of_kind(objects, "PodDisruptionBudget", "PodMonitor"):
        assert any(matches(each["spec"]["selector"], found) for found in labels), each["metadata"]
    for each in of_kind(objects, "ServiceMonitor"):
        services = [service["metadata"].get("labels", {}) for service in of_kind(objects, "Service")]
        assert sum(matches(each["spec"]["selector"], found) for found in services) == 1


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_service_leads_to_a_port(overlay: str) -> None:
    objects = rendered(overlay)
    for service in of_kind(objects, "Service"):
        selector = {"matchLabels": service["spec"]["selector"]}
        for found in [each for each in pods(objects) if matches(selector, each.labels)]:
            ports = {port["name"] for container in found.containers for port in container.get("ports", [])}
            assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for ingress in of_kind(objects, "Ingress"):
        for backend in values(ingress, "service"):
            service = named(objects, "Service", backend["name"])
            assert backend["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
        assert {rule["host"] for rule in ingress["spec"]["rules"]} == set(*values(ingress["spec"]["tls"], "hosts"))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_host_of_the_ingress_is_a_name_of_the_service(overlay: str) -> None:
    objects = rendered(overlay)
    settings = [each["data"] for each in of_kind(objects, "ConfigMap") if "SIMILARITY_SERVICE_WRITES" in each["data"]]
    hosts = settings[0].get("SIMILARITY_SERVICE_HOSTS", "").split(",")
    for ingress in of_kind(objects, "Ingress"):
        assert {rule["host"] for rule in ingress["spec"]["rules"]} <= set(hosts)


def peers(policy: Object) -> Iterator[tuple[str, Object, list[Object]]]:
    """Direction, peer and ports of each rule."""
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for rule in policy["spec"].get(direction, []):
            for peer in rule[side]:
                yield direction, peer, rule.get("ports", [])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_all_is_closed_that_is_not_opened(overlay: str) -> None:
    objects = rendered(overlay)
    assert named(objects, "NetworkPolicy", "deny-all")["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }
    for policy in of_kind(objects, "NetworkPolicy"):
        for direction in ("ingress", "egress"):
            # A direction that is not among the types would be without effect; a rule without peers opens it to all.
            assert (direction in policy["spec"]) <= (direction.title() in policy["spec"]["policyTypes"])
            for rule in policy["spec"].get(direction, []):
                assert rule["from" if direction == "ingress" else "to"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_network_policy_is_about_a_pod_and_every_peer_is_one_or_in_the_guide(overlay: str) -> None:
    objects = rendered(overlay)
    labels = [each.labels for each in pods(objects)]
    for policy in of_kind(objects, "NetworkPolicy"):
        subjects = [found for found in labels if matches(policy["spec"]["podSelector"], found)]
        assert subjects, policy["metadata"]["name"]
        for _, peer, _ in peers(policy):
            if "namespaceSelector" in peer:
                [space] = peer["namespaceSelector"]["matchLabels"].values()
                assert f"`{space}`" in GUIDE, f"docs/kubernetes.md does not say what the namespace {space} is"
            else:
                assert any(matches(peer["podSelector"], found) for found in labels), peer


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ports_that_a_policy_opens_are_ports_of_its_pods(overlay: str) -> None:
    objects = rendered(overlay)
    for policy in of_kind(objects, "NetworkPolicy"):
        subjects = [each for each in pods(objects) if matches(policy["spec"]["podSelector"], each.labels)]
        for direction, _, ports in peers(policy):
            named_ports = {port["port"] for port in ports if isinstance(port["port"], str)}
            for each in subjects if direction == "ingress" else []:
                open_ports = {port["name"] for container in each.containers for port in container.get("ports", [])}
                assert named_ports <= open_ports, (policy["metadata"]["name"], each.owner)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_reach_the_stores_whose_login_they_have(overlay: str) -> None:
    for each in pods(rendered(overlay)):
        logins = {ref["name"] for ref in values(each.spec, "secretRef")}
        for store in ("elasticsearch", "kafka"):
            found = {f"{store}-login", f"search-{store}-login"} & logins
            assert (each.labels.get(f"uses-{store}") == "true") == bool(found), each.owner
        # Its key has fewer rights.
        if each.owner == "Deployment/search":
            assert logins == {"search-elasticsearch-login", "kafka-login"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_guide_says_what_an_overlay_asks_of_the_nodes(overlay: str) -> None:
    objects = rendered(overlay)
    scaling = named(objects, "HorizontalPodAutoscaler", "search")["spec"]["minReplicas"]
    total_cores, total_memory = 0.0, 0.0
    for each in pods(objects):
        kind, name = each.owner.split("/")[:2]
        if kind == "CronJob":
            continue
        copies = scaling if name == "search" else 1
        if each.owner.endswith("taskManager"):
            copies = named(objects, "FlinkDeployment", "flink")["spec"]["taskManager"]["replicas"]
        requests = [container["resources"]["requests"] for container in each.spec["containers"]]
        total_cores += copies * sum(cores(share["cpu"]) for share in requests)
        total_memory += copies * sum(megabytes(share["memory"]) for share in requests)
    assert f"| `{overlay}` | {total_cores:g} | {total_memory / 1024:g} GiB |" in GUIDE


def test_the_guide_removes_what_only_flink_has() -> None:
    def keys(overlay: str) -> set[str]:
        return {f"{each['kind'].lower()}/{each['metadata']['name']}" for each in rendered(overlay)}

    [command] = re.findall(r"kubectl -n similarity delete (flinkdeployment/.*?)\n```", GUIDE, re.DOTALL)
    assert set(command.replace("\\", "").split()) == keys("production-flink") - keys("production")
