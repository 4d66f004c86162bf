"""docker-compose.yml as docker compose itself reads it: it validates by the specification's schema."""

import json
import os
import subprocess

import pytest

from tests.deploy.test_compose import FILE, SECRETS, SERVICES
from tests.servers.docker import ensure_compose

pytestmark = pytest.mark.docker


def config(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    ensure_compose()
    command = ["docker", "compose", "--env-file", os.devnull, "--file", str(FILE), "--profile", "*", "config", *options]
    environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return subprocess.run(command, check=False, env={**environment, **variables}, capture_output=True, text=True)


def test_our_reader_and_compose_agree_on_every_service() -> None:
    done = config("--format", "json", **SECRETS)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.replace("$$", "$"))["services"]
    assert theirs.keys() == SERVICES.keys()
    for name, ours in SERVICES.items():
        read = theirs[name]
        assert tuple(read.get("command") or ()) == ours.command
        assert read.get("environment", {}) == ours.environment
        assert {
            each: how["condition"] for each, how in read.get("depends_on", {}).items() if how["required"]
        } == ours.needs
        assert read["image"] == ours.image


def test_a_missing_secret_stops_it_with_what_to_do() -> None:
    done = config("--quiet", **{**SECRETS, "ELASTIC_PASSWORD": ""})
    assert done.returncode != 0
    assert "make env writes it into .env" in done.stderr
