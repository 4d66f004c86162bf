"""What the Dockerfiles promise, read from the files; test_images.py builds and runs them."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.servers import docker_images, docker_standins, prism
from tests.servers.flink import FLINK

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "deploy" / "locks"
FILES = {name: ROOT / "deploy" / "images" / f"{name}.Dockerfile" for name in ("search", "pipelines", "training")}
# The locks of all packages of an image; no other image has torch.
WITHOUT_TORCH = ("search", "pipelines")
Instruction = tuple[str, str]


def instructions(name: str) -> list[Instruction]:
    """The instructions of an image's file: name and value, in order."""
    lines = [line for line in FILES[name].read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    pairs = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return [(word, value) for word, value in pairs]


def values(name: str, wanted: str) -> list[str]:
    return [value for word, value in instructions(name) if word == wanted]


def arguments(name: str) -> dict[str, str]:
    """The build arguments with their defaults."""
    return dict(value.split("=", 1) for value in values(name, "ARG"))


def last_stage(name: str) -> list[Instruction]:
    found = instructions(name)
    start = max(number for number, (word, _) in enumerate(found) if word == "FROM")
    return found[start:]


def locks_of(name: str) -> list[Path]:
    [install] = [value for value in values(name, "RUN") if "--requirement" in value]
    return [LOCKS / Path(lock).name for lock in re.findall(r"--requirement (\S+)", install)]


@pytest.fixture(params=FILES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_folder_of_dockerfiles_is_looked_at() -> None:
    assert {file.stem for file in docker_images.DOCKERFILES.glob("*.Dockerfile")} == set(FILES)


def test_base_images_are_arguments_of_a_full_version(name: str) -> None:
    named = [value.split()[0] for value in values(name, "FROM")]
    assert set(named) <= {"${PYTHON_IMAGE}", "${GO_IMAGE}"}
    for base in named:
        image = arguments(name)[base[2:-1]]
        assert re.fullmatch(r"(python:3\.11\.\d+-slim|golang:1\.\d+\.\d+)-bookworm", image)
        assert docker_standins.stands_in_for(image)
    assert "latest" not in FILES[name].read_text(encoding="utf-8")


def test_the_user_is_a_number_and_nothing_runs_as_root_after_it(name: str) -> None:
    words = [word for word, _ in last_stage(name)]
    assert values(name, "USER") == ["10001:10001"]  # a number, so that Kubernetes can see that it is not root
    assert not {"RUN", "COPY"} & set(words[words.index("USER") :])
    assert words[-1] == "CMD"


def test_packages_are_installed_by_hash_and_never_built(name: str) -> None:
    [install] = [value for value in values(name, "RUN") if re.search(r"bin/pip [^&]*\binstall\b", value)]
    assert "--require-hashes" in install
    assert "--only-binary :all:" in install
    copied = " ".join(values(name, "COPY"))
    for lock in locks_of(name):
        assert f"deploy/locks/{lock.name}" in copied
        pinned = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE))
        assert pinned
        assert all(re.match(r"\S+==\S+", each) and "--hash=sha256:" in each for each in pinned)


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_no_torch_and_nothing_of_cuda_is_locked(name: str) -> None:
    text = "".join(lock.read_text(encoding="utf-8") for lock in locks_of(name))
    assert not re.search(r"^(torch|nvidia-\S+|triton)==", text, re.MULTILINE)


def version_of_beam() -> str:
    lock = (LOCKS / "pipelines.txt").read_text(encoding="utf-8")
    [beam] = re.findall(r"^apache-beam==(\S+)", lock, re.MULTILINE)
    return str(beam)


def test_prism_is_of_the_version_of_beam() -> None:
    assert arguments("pipelines")["BEAM_VERSION"] == version_of_beam() == prism.VERSION


def test_flink_is_the_one_of_the_tests_and_its_job_server_of_the_version_of_beam() -> None:
    minor = FLINK.version.split("-")[0]
    component = ROOT / "deploy" / "kubernetes" / "components" / "flink"
    compose, cluster, server = (
        file.read_text(encoding="utf-8")
        for file in (ROOT / "docker-compose.yml", component / "flink.yaml", component / "jobserver.yaml")
    )
    assert f"flinkVersion: v{minor.replace('.', '_')}\n" in cluster
    for text in (compose, cluster):
        assert f"image: flink:{minor}." in text
    for text in (compose, server):
        assert f"image: apache/beam_flink{minor}_job_server:{version_of_beam()}\n" in text


def test_images_have_the_version_of_the_software_as_their_default_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    repeated = re.compile(r"(?:newTag: |\bVERSION(?:=|:-)|company-similarity/[a-z$]+:)(\d[\w.]*)")
    texts = {"docker-compose.yml", ".env.example", "docs/images.md"}
    folders = (ROOT / "deploy" / "images", ROOT / "deploy" / "kubernetes")
    files = [
        *(ROOT / text for text in texts),
        *(file for folder in folders for file in folder.rglob("*") if file.is_file()),
    ]
    found = {str(file.relative_to(ROOT)): set(repeated.findall(file.read_text(encoding="utf-8"))) for file in files}
    assert texts | {str(file.relative_to(ROOT)) for file in FILES.values()} <= {name for name in found if found[name]}
    assert {name: versions for name, versions in found.items() if versions - {version}} == {}


def test_what_is_copied_is_let_through_to_the_builder(name: str) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = tuple(line[1:] for line in ignored if line.startswith("!"))
    assert "*" in ignored
    for value in values(name, "COPY"):
        if not value.startswith("--from"):
            *sources, _ = value.split()
            for source in sources:
                assert (ROOT / source).exists()
                assert source.startswith(let_through)


def test_only_what_an_image_runs_is_in_it() -> None:
    found = {name: {value.split()[0] for value in values(name, "COPY")} for name in FILES}
    own = {"services", "pipelines", "training"}
    assert {name: copied & own for name, copied in found.items()} == {
        "search": {"services"},
        "pipelines": {"pipelines"},
        "training": {"training"},
    }
