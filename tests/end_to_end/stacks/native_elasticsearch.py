"""The compose file's Elasticsearch as a process of this machine, with its settings, roles and users."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from deploy.environment import ROOT
from tests.end_to_end.stacks.compose_file import Service
from tests.end_to_end.stacks.stack import StackFailed
from tests.servers.elasticsearch import USER, ElasticsearchCluster

CONFIG = "/usr/share/elasticsearch/config/"
# Where a node of a test has settings of its own.
OWN = ("cluster.name", "discovery.type", "path.repo")


def elasticsearch_of(service: Service, folder: Path, *, java_options: Sequence[str] = ()) -> ElasticsearchCluster:
    """One node as `service` describes it, whose files are under `folder`; it is not started yet."""
    password = service.environment["ELASTIC_PASSWORD"]
    settings = {key: value for key, value in service.environment.items() if "." in key and key not in OWN}
    heap = service.environment["ES_JAVA_OPTS"].rpartition("-Xmx")[2]
    cluster = ElasticsearchCluster(folder, heap=heap, settings=settings, java_options=java_options)
    cluster.connection = replace(cluster.connection, user=USER, password=password)
    [node] = cluster.nodes
    node.store_secret("bootstrap.password", password)
    for volume in service.volumes:
        source, inside = volume.split(":")[:2]
        if inside.startswith(CONFIG):
            shutil.copy(ROOT / source, node.folder / "config" / inside.removeprefix(CONFIG))
    # The image's script would start the server at the end of the command; the test does that itself.
    entrypoint = node.folder / "docker-entrypoint.sh"
    entrypoint.write_text("#!/bin/sh\n", encoding="utf-8")
    entrypoint.chmod(0o755)
    path = f"{node.folder}:{node.home / 'bin'}:{os.environ['PATH']}"
    environment = {**service.environment, **node.environment(), "PATH": path}
    done = subprocess.run(
        service.command, check=False, cwd=node.folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise StackFailed(f"elasticsearch: its command ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return cluster
