"""One index name on a real cluster: what the tests here open, look at and remove."""

from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch

from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.registry_store import RegistryStore
from tests.contract.clock import Clock
from tests.servers.connection import Connection
from tests.servers.elasticsearch import ElasticsearchCluster

Body = dict[str, Any]


def settings_at(connection: Connection, name: str, **options: Any) -> ElasticSettings:
    """Settings of an index of this name on a server of the tests."""
    return ElasticSettings(
        hosts=connection.urls,
        name=name,
        username=connection.user or "",
        password=connection.password or "",
        ca_certs=str(connection.ca_certs or ""),
        **options,
    )


def remove_indices(client: Elasticsearch, name: str) -> None:
    """Delete all Elasticsearch indices whose names begin with `name`."""
    if indices := list(client.indices.get(index=f"{name}-*", filter_path="*.aliases")):
        client.indices.delete(index=indices, ignore_unavailable=True)


class Place:
    """`settings` name it, `client` sees behind the index, `clock` is that of all its leases."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.connection = connection
        self.name = name
        self.clock = Clock()
        self.settings = settings_at(connection, name, visible_at_once=True)
        self._opened = ExitStack()
        self.client = self._opened.enter_context(closing(Elasticsearch(**connection.client_arguments())))

    def open(self, **changes: Any) -> ElasticIndex:
        """One more index object, as another process has; `changes` are to the settings."""
        index = ElasticIndex(replace(self.settings, **changes), clock=self.clock)
        return self._opened.enter_context(closing(index))

    def registry(self) -> RegistryStore:
        """The registry itself, to leave it as a crash would."""
        return RegistryStore(self._opened.enter_context(closing(Cluster(self.settings))), clock=self.clock)

    def indices(self) -> list[str]:
        """The Elasticsearch indices there are, without the registry's."""
        found = self.client.indices.get(index=f"{self.name}-*", filter_path=["*.settings.index.uuid"])
        return sorted(set(found) - {f"{self.name}-registry"})

    def index_of(self, generation: str) -> str:
        """The Elasticsearch index that holds a generation."""
        return self.registry().read().named(generation).index

    def index_settings(self, generation: str) -> Body:
        index = self.index_of(generation)
        settings: Body = self.client.indices.get_settings(index=index)[index]["settings"]["index"]
        return settings

    def files_with(self, word: str, cluster: ElasticsearchCluster) -> list[Path]:
        """The files of this place's indices in which a word can be read.

        A merge may delete a file between listing and reading; its words then stand in a new file, so all is read again.
        """
        indices = self.client.indices.get(index=f"{self.name}-*").values()
        uuids = {details["settings"]["index"]["uuid"] for details in indices}
        while True:
            with suppress(FileNotFoundError):
                files = [
                    file
                    for node in cluster.nodes
                    for file in node.folder.rglob("*")
                    if file.is_file() and not uuids.isdisjoint(file.parts)
                ]
                assert files
                return [file for file in files if word.encode() in file.read_bytes()]

    def data_nodes(self) -> int:
        return int(self.client.cluster.health()["number_of_data_nodes"])

    def remove(self) -> None:
        """Closes all that was opened and deletes all indices of this name."""
        remove_indices(self.client, self.name)
        self._opened.close()
