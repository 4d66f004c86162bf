from pathlib import Path

import pytest

from tests.harness.test_installations import make_program
from tests.servers import docker, docker_compose, docker_images, docker_standins
from tests.servers.docker_debian import NoStandIn, ensure_bookworm
from tests.servers.prism_installation import BuildFailed


def make_docker(folder: Path, script: str) -> None:
    (folder / "docker").write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{script}\n', encoding="utf-8")
    (folder / "docker").chmod(0o755)


@pytest.fixture(autouse=True)
def no_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_an_engine_it_says_how_to_get_one(tmp_path: Path) -> None:
    assert "no docker engine answers" in str(docker.unavailable_reason())
    make_docker(tmp_path, "exit 1")
    assert "no docker engine answers" in str(docker.unavailable_reason())
    with pytest.raises(docker.EngineNotReady, match="on Debian and as root"):
        docker.ensure_engine()


def test_an_engine_that_answers_is_taken(tmp_path: Path) -> None:
    make_docker(tmp_path, "exit 0")
    assert docker.unavailable_reason() is None
    docker.ensure_engine()


def test_an_image_that_is_there_is_the_real_one_unless_its_label_says_otherwise(tmp_path: Path) -> None:
    make_docker(tmp_path, "exit 0")
    docker_images.ensure_image("apache/kafka:4.1.1")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[:2] for line in asked] == [["image", "inspect"]] * 2


def test_an_image_that_is_missing_is_pulled(tmp_path: Path) -> None:
    make_docker(tmp_path, '[ "$1" = pull ]')
    docker_images.ensure_image("apache/kafka:4.1.1")
    assert (tmp_path / "asked").read_text().splitlines()[-1] == "pull --quiet apache/kafka:4.1.1"


def test_what_can_be_neither_pulled_nor_replaced_is_named(tmp_path: Path) -> None:
    make_docker(tmp_path, "exit 1")
    with pytest.raises(NoStandIn, match=r"grafana/grafana:12 cannot be pulled"):
        docker_images.ensure_image("grafana/grafana:12")
    with pytest.raises(NoStandIn, match="needs Debian and root"):
        ensure_bookworm()


def test_there_is_a_stand_in_for_all_that_builds_and_the_core_need() -> None:
    images = docker_images.images_of_others()
    assert [image.partition(":")[0] for image in images] == [
        "apache/kafka",
        "docker.elastic.co/elasticsearch/elasticsearch",
        "golang",
        "python",
    ]
    assert len({docker_standins.recipe(image) for image in images}) == 4


def test_compose_is_built_once_and_made_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = tmp_path / "plugins"
    monkeypatch.setattr(docker_compose, "PLUGINS", plugins)
    make_docker(tmp_path, f"[ -e {plugins}/docker-compose ]")
    # The arguments of `go build`: the eighth is where to.
    make_program(tmp_path, "go", 'case $1 in mod) echo "{\\"Dir\\": \\"/source\\"}";; build) echo "$3" > "$8";; esac')
    docker_compose.ensure_compose()
    assert (plugins / "docker-compose").read_text() == "/source\n"
    (tmp_path / "go").unlink()
    docker_compose.ensure_compose()


def test_of_a_failed_build_of_compose_nothing_is_kept(tmp_path: Path) -> None:
    make_docker(tmp_path, "exit 1")
    make_program(tmp_path, "go", "echo no network >&2; exit 1")
    with pytest.raises(BuildFailed, match="no network"):
        docker_compose.ensure_compose()
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]
