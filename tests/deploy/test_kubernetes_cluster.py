"""A real API server takes the manifests: it checks, defaults and admits them as a cluster's does, and keeps them.

No pod runs. But Pod Security judges each as it would be made, and all that was applied once is applied
over what is there, as at an upgrade.
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest
import yaml

from tests.deploy.kubernetes_objects import KUBERNETES, OVERLAYS, Object, Pod, of_kind, pods, rendered
from tests.servers.kubernetes import KubernetesApi, Refused
from tests.servers.kubernetes_installation import unavailable_reason, unbuilt_reason

pytestmark = [pytest.mark.integration, pytest.mark.nightly]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    if reason := unavailable_reason() or unbuilt_reason():
        pytest.skip(reason)
    with KubernetesApi(tmp_path_factory.mktemp("kubernetes")) as api:
        api.define()
        yield api


@pytest.fixture
def space(api: KubernetesApi, numbers: Iterator[int]) -> str:
    """A namespace of the test's own, restricted like that of the manifests. Without controllers nothing empties one."""
    [wanted] = of_kind(rendered("production"), "Namespace")
    name = f"test-{next(numbers)}"
    wanted["metadata"]["name"] = name
    api.kubectl("create", "--filename=-", text=yaml.safe_dump(wanted))
    return name


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return count()


def in_space(objects: list[Object], space: str) -> str:
    """The objects as text, in another namespace."""
    others = [each for each in objects if each["kind"] != "Namespace"]
    for each in others:
        each["metadata"]["namespace"] = space
    return str(yaml.safe_dump_all(others))


def apply(api: KubernetesApi, text: str, *options: str) -> list[str]:
    """What became of each object: created, configured, unchanged."""
    done = api.kubectl("apply", "--filename=-", "--validate=strict", "--warnings-as-errors", *options, text=text)
    return [line.split()[1] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_and_the_next_release_of_it_are_taken(api: KubernetesApi, space: str, overlay: str) -> None:
    """New images over what is there: of a Job, say, that would be refused."""
    text = in_space(rendered(overlay), space)
    assert set(apply(api, text, "--dry-run=server")) == {"created"}
    assert set(apply(api, text)) == {"created"}
    # What the server adds changes nothing of what was asked for.
    api.kubectl("diff", "--filename=-", text=text)
    newer = re.sub(r"(company-similarity/\w+):[\d.]+", r"\1:99.0", text)
    assert newer != text
    assert set(apply(api, newer)) == {"unchanged", "configured"}


def test_an_overlay_is_taken_by_kubectl_alone(api: KubernetesApi) -> None:
    """The guide's own command, in the manifests' own namespace."""
    api.kubectl("apply", f"--kustomize={KUBERNETES / 'overlays' / 'small'}")
    for kind in ("deployment", "cronjob", "horizontalpodautoscaler", "poddisruptionbudget", "networkpolicy"):
        assert api.kubectl("--namespace=similarity", "get", kind, "--output=name").stdout


@pytest.mark.parametrize(("before", "after"), [("production", "production-flink"), ("production-flink", "production")])
def test_the_stream_can_move_to_flink_and_back(api: KubernetesApi, space: str, before: str, after: str) -> None:
    apply(api, in_space(rendered(before), space))
    assert "configured" in apply(api, in_space(rendered(after), space))


def as_pod(number: int, found: Pod, space: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": space, "labels": dict(found.labels)},
        "spec": found.spec,
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pod_security_lets_every_pod_in_and_would_keep_others_out(api: KubernetesApi, space: str, overlay: str) -> None:
    objects = rendered(overlay)
    apply(api, in_space(of_kind(objects, "ServiceAccount"), space))
    create = partial(api.kubectl, "create", "--filename=-", "--dry-run=server", "--validate=strict")
    all_pods = [as_pod(number, found, space) for number, found in enumerate(pods(objects))]
    create(text=yaml.safe_dump_all(all_pods))
    for each in all_pods:
        each["spec"]["containers"][0]["securityContext"]["capabilities"]["drop"] = []
    with pytest.raises(Refused) as refused:
        create(text=yaml.safe_dump_all(all_pods))
    assert str(refused.value).count('violates PodSecurity "restricted') == len(all_pods)


def test_jobs_are_made_from_what_waits(api: KubernetesApi, space: str) -> None:
    """As the guide does it; with no controllers the Job is there and nothing more happens."""
    apply(api, in_space(of_kind(rendered("production"), "CronJob"), space))
    for name in ("first-load", "console", "training", "reembed"):
        api.kubectl(f"--namespace={space}", "create", "job", f"{name}-1", f"--from=cronjob/{name}")
    found = api.kubectl(f"--namespace={space}", "get", "jobs", "--output=name").stdout
    assert len(re.findall("job.batch/", found)) == 4


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("concurrencyPolicy: Forbid", "concurrencyPolicy: Never", "supported values"),
        ("timeZone: Etc/UTC", "timeZone: Europe/Nowhere", "unknown time zone"),
        ("flinkVersion: v1_19", "flinkVersion: v9_9", "Unsupported value"),
        ("jobLabel: metrics", "jobLable: metrics", "unknown field"),
        ("maxUnavailable: 0", "maxUnavailble: 0", "unknown field"),
    ],
)
def test_the_server_would_refuse_what_is_wrong(api: KubernetesApi, space: str, old: str, new: str, why: str) -> None:
    concerned = [each for each in rendered("production-flink") if old in yaml.safe_dump(each)]
    text = in_space(concerned, space)
    apply(api, text, "--dry-run=server")
    with pytest.raises(Refused, match=why):
        apply(api, text.replace(old, new), "--dry-run=server")
