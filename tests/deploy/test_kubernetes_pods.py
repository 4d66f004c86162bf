"""What must be true of every pod, however an overlay changes it."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.search.settings import ServiceSettings
from tests.deploy.kubernetes_objects import (
    FLINK,
    OURS,
    OVERLAYS,
    Object,
    Pod,
    cores,
    megabytes,
    named,
    of_kind,
    pod,
    pods,
    rendered,
    variables,
)

ROOT = Path(__file__).parents[2]
PODS = [(overlay, each.owner) for overlay in OVERLAYS for each in pods(rendered(overlay))]
# Its entry script writes its configuration.
WRITES_ITS_ROOT = {FLINK}
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


@pytest.fixture(params=PODS, ids="-".join)
def any_pod(request: pytest.FixtureRequest) -> Pod:
    overlay, owner = request.param
    return pod(rendered(overlay), owner)


def test_every_container_has_its_share(any_pod: Pod) -> None:
    for container in any_pod.containers:
        requests, limits = container["resources"]["requests"], container["resources"]["limits"]
        assert 0 < cores(requests["cpu"]) <= cores(limits["cpu"]), container["name"]
        assert 0 < megabytes(requests["memory"]) <= megabytes(limits["memory"]), container["name"]


def test_every_pod_is_restricted(any_pod: Pod) -> None:
    security = any_pod.spec["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(any_pod.spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))
    assert not any("hostPath" in volume for volume in any_pod.spec.get("volumes", []))
    for container in any_pod.containers:
        own = container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert own.get("runAsUser", security["runAsUser"]) > 0
        assert own.get("readOnlyRootFilesystem") is (None if container["name"] in WRITES_ITS_ROOT else True)


def test_our_containers_run_as_the_user_of_the_images(any_pod: Pod) -> None:
    pod_wide = any_pod.spec["securityContext"]
    for container in any_pod.containers:
        if OURS in container["image"]:
            user = {**pod_wide, **container["securityContext"]}
            assert (user["runAsUser"], user["runAsGroup"]) == (10001, 10001)
            # Volumes belong to it, too.
            assert pod_wide["fsGroup"] == 10001
            dockerfile = container["image"].partition(OURS)[2].partition(":")[0] + ".Dockerfile"
            assert "USER 10001:10001" in (ROOT / "deploy" / "images" / dockerfile).read_text(encoding="utf-8")


def test_no_pod_talks_to_kubernetes(any_pod: Pod) -> None:
    assert any_pod.spec["automountServiceAccountToken"] is False
    # Else a Service called `similarity` would become settings that do not exist.
    assert any_pod.spec["enableServiceLinks"] is False


def test_every_container_has_somewhere_to_write(any_pod: Pod) -> None:
    for container in any_pod.containers:
        if container["name"] in WRITES_ITS_ROOT:
            continue
        [tmp] = [mount for mount in container["volumeMounts"] if mount["mountPath"] == "/tmp"]
        [volume] = [each for each in any_pod.spec["volumes"] if each["name"] == tmp["name"]]
        assert "sizeLimit" in volume["emptyDir"]


def test_no_image_may_change_unseen(any_pod: Pod) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for container in any_pod.containers:
        name, _, tag = container["image"].rpartition("/")[2].partition(":")
        assert name
        assert tag not in {"", "latest"}
        if OURS in container["image"]:
            assert tag == version


def test_every_mount_is_of_a_volume_of_the_pod_and_every_volume_is_mounted(any_pod: Pod) -> None:
    mounted = {mount["name"] for container in any_pod.containers for mount in container.get("volumeMounts", [])}
    assert mounted == {volume["name"] for volume in any_pod.spec.get("volumes", [])}
    # A file that is mounted by itself never changes in a running pod.
    mounts = [mount for container in any_pod.containers for mount in container.get("volumeMounts", [])]
    assert not any("subPath" in mount for mount in mounts)


def test_probes_ask_ports_that_are_there(any_pod: Pod) -> None:
    for container in any_pod.containers:
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        for probe in (container[name] for name in PROBES if name in container):
            [how] = [probe[kind] for kind in ("httpGet", "tcpSocket") if kind in probe]
            assert how["port"] in ports
            assert probe.get("timeoutSeconds", 1) <= probe.get("periodSeconds", 10)


def served_ports(objects: list[Object]) -> Iterator[tuple[str, int, int]]:
    """Port name, number as the manifest says it, number as the program is told."""
    [search] = pod(objects, "Deployment/search").containers
    told = variables(search, objects)
    ports = {port["name"]: port["containerPort"] for port in search["ports"]}
    command = search["command"]
    yield "http", ports["http"], int(command[command.index("--port") + 1])
    yield "metrics", ports["metrics"], int(told["SIMILARITY_SERVICE_METRICS_PORT"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ports_are_those_that_the_programs_listen_on(overlay: str) -> None:
    objects = rendered(overlay)
    assert [declared == told for _, declared, told in served_ports(objects)] == [True, True]
    owner = "FlinkDeployment/flink/taskManager" if "flink" in overlay else "Deployment/stream"
    ports = [port for each in pod(objects, owner).containers for port in each.get("ports", [])]
    assert {"name": "metrics", "containerPort": 9100} in ports
    [stream] = pod(objects, "Deployment/stream").spec["containers"]
    assert "--metrics-port=9100" in stream["args"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_search_ends_in_order(overlay: str) -> None:
    objects = rendered(overlay)
    search = pod(objects, "Deployment/search")
    [container] = search.containers
    given = variables(container, objects)
    service = ServiceSettings.from_environment({n: v for n, v in given.items() if n.startswith("SIMILARITY_SERVICE_")})
    assert search.spec["terminationGracePeriodSeconds"] >= service.drain_seconds + service.finish_seconds + 10
    assert service.finish_seconds >= service.request_seconds
    assert container["startupProbe"]["httpGet"]["path"] == container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_search_takes_as_many_requests_as_it_has_cores(overlay: str) -> None:
    objects = rendered(overlay)
    [container] = pod(objects, "Deployment/search").containers
    given = variables(container, objects)
    limit = cores(container["resources"]["limits"]["cpu"])
    assert int(given["SIMILARITY_SERVICE_AT_ONCE"]) == 2 * limit
    assert int(given["SIMILARITY_SERVICE_HEAVY_AT_ONCE"]) == max(2, limit)


def test_encoders_take_the_cores_of_their_container(any_pod: Pod) -> None:
    for container in any_pod.containers:
        threads = [each for each in container.get("env", []) if each["name"] == "SIMILARITY_THREADS"]
        reads_bundles = any(mount["name"] == "bundles" for mount in container.get("volumeMounts", []))
        assert bool(threads) == reads_bundles
        for each in threads:
            assert each["valueFrom"]["resourceFieldRef"]["resource"] == "limits.cpu"
            # A part of a core would be counted as a whole one.
            assert cores(container["resources"]["limits"]["cpu"]).is_integer()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_topic_is_read_by_one_pod(overlay: str) -> None:
    spec = named(rendered(overlay), "Deployment", "stream")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_autoscaler_owns_the_number_of_search_pods(overlay: str) -> None:
    objects = rendered(overlay)
    assert "replicas" not in named(objects, "Deployment", "search")["spec"]
    assert named(objects, "HorizontalPodAutoscaler", "search")["spec"]["scaleTargetRef"]["name"] == "search"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_job_runs_beside_itself_or_for_ever(overlay: str) -> None:
    for job in of_kind(rendered(overlay), "CronJob"):
        spec = job["spec"]
        assert spec["concurrencyPolicy"] == "Forbid"
        assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] <= 86_400
        assert "backoffLimit" in spec["jobTemplate"]["spec"]
        assert spec["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"
        # What runs by itself is told how late it may begin; the rest waits for somebody.
        assert ("startingDeadlineSeconds" in spec) != spec.get("suspend", False)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_only_training_takes_a_gpu(overlay: str) -> None:
    takers = {
        (each.owner, container["name"])
        for each in pods(rendered(overlay))
        for container in each.containers
        if container["resources"]["limits"].get("nvidia.com/gpu")
    }
    assert takers == (set() if overlay == "small" else {("CronJob/training", "train")})
