"""The manifests as a cluster gets them: rendered by kustomize, and the pods that come of them."""

import copy
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS = sorted(folder.name for folder in (KUBERNETES / "overlays").iterdir())
# What the operator calls the container of Flink itself.
FLINK = "flink-main-container"
OURS = "company-similarity/"

Object: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that some object has a template of."""

    owner: str
    labels: Mapping[str, str]
    spec: Object

    @property
    def containers(self) -> list[Object]:
        """All of them, those that run before the others first."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]


def rendered(overlay: str) -> list[Object]:
    """The objects of an overlay. Without kubectl the test that asks is "not run"."""
    return copy.deepcopy(_rendered(overlay))


@cache
def _rendered(overlay: str) -> list[Object]:
    kubectl = shutil.which("kubectl")
    if not kubectl:
        reason = "kubectl is needed to render the manifests: https://kubernetes.io/docs/tasks/tools"
        pytest.skip(reason, allow_module_level=True)
    command = [kubectl, "kustomize", str(KUBERNETES / "overlays" / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # What is deprecated is said beside the output.
    assert done.stderr == ""
    return list(yaml.safe_load_all(done.stdout))


def of_kind(objects: Sequence[Object], *kinds: str) -> list[Object]:
    """The objects of these kinds."""
    return [each for each in objects if each["kind"] in kinds]


def named(objects: Sequence[Object], kind: str, name: str) -> Object:
    """The one object of this kind and name."""
    [found] = [each for each in of_kind(objects, kind) if each["metadata"]["name"] == name]
    return found


def pods(objects: Sequence[Object]) -> list[Pod]:
    """A pod of each template."""
    return list(_pods(objects))


def pod(objects: Sequence[Object], owner: str) -> Pod:
    """The pod of the template of `Kind/name`."""
    [found] = [each for each in pods(objects) if each.owner == owner]
    return found


def _pods(objects: Sequence[Object]) -> Iterator[Pod]:
    for each in objects:
        owner, spec = f"{each['kind']}/{each['metadata']['name']}", each.get("spec", {})
        match each["kind"]:
            case "Deployment" | "Job":
                yield _of_template(owner, spec["template"])
            case "CronJob":
                yield _of_template(owner, spec["jobTemplate"]["spec"]["template"])
            case "FlinkDeployment":
                for role in ("jobManager", "taskManager"):
                    yield _of_template(f"{owner}/{role}", flink_template(spec, role))


def _of_template(owner: str, template: Object) -> Pod:
    return Pod(owner, template["metadata"]["labels"], template["spec"])


def flink_template(spec: Object, role: str) -> Object:
    """What the Flink operator makes a pod of: the common template, the role's laid over it by place, its own."""
    template: Object = copy.deepcopy(_merged(spec["podTemplate"], spec[role].get("podTemplate", {})))
    template["spec"]["serviceAccountName"] = spec["serviceAccount"]
    [main] = [each for each in template["spec"]["containers"] if each["name"] == FLINK]
    resource = spec[role]["resource"]
    amount = {"cpu": str(resource["cpu"]), "memory": resource["memory"].replace("g", "Gi")}
    main |= {"image": spec["image"], "resources": {"requests": amount, "limits": amount}}
    return template


def _merged(under: Any, over: Any) -> Any:
    if isinstance(under, dict) and isinstance(over, dict):
        both = {key: _merged(under[key], over[key]) for key in under.keys() & over.keys()}
        return {**under, **over, **both}
    if isinstance(under, list) and isinstance(over, list):
        common = [_merged(*pair) for pair in zip(under, over, strict=False)]
        return [*common, *under[len(over) :], *over[len(under) :]]
    return over


def variables(container: Object, objects: Sequence[Object]) -> dict[str, str]:
    """What the container's environment holds, but for what Secrets hold: that is "secret"."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            found |= named(objects, "ConfigMap", source["configMapRef"]["name"])["data"]
    for each in container.get("env", []):
        match each:
            case {"value": value}:
                found[each["name"]] = value
            case {"valueFrom": {"secretKeyRef": _}}:
                found[each["name"]] = "secret" * 3
            case {"valueFrom": {"resourceFieldRef": {"resource": resource}}}:
                kind, _, what = resource.partition(".")
                found[each["name"]] = container["resources"][kind][what]
            case {"valueFrom": {"fieldRef": _}}:
                found[each["name"]] = "field"
            case _:
                raise AssertionError(f"where {each} comes from is not known here")
    return found


def arguments(container: Object, objects: Sequence[Object]) -> list[str]:
    """The container's command with its variables filled in, as the kubelet does."""
    line = [*container["command"], *container.get("args", [])]
    for name, value in variables(container, objects).items():
        line = [part.replace(f"$({name})", value) for part in line]
    return line


def matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes these labels; an empty one takes all."""
    for name, value in selector.get("matchLabels", {}).items():
        if labels.get(name) != value:
            return False
    for rule in selector.get("matchExpressions", []):
        value = labels.get(rule["key"])
        match rule["operator"]:
            case "In":
                if value not in rule["values"]:
                    return False
            case "Exists":
                if value is None:
                    return False
            case other:
                raise AssertionError(f"the operator {other} is not known here")
    return True


def megabytes(amount: str) -> float:
    """An amount of memory, such as 2Gi or 512Mi, in MiB."""
    units = {"Mi": 1.0, "Gi": 1024.0}
    return float(amount[:-2]) * units[amount[-2:]]


def cores(amount: str) -> float:
    """An amount of processors, such as 2 or 250m."""
    return float(amount[:-1]) / 1000 if amount.endswith("m") else float(amount)
