"""How a test reaches an Elasticsearch cluster: one that it started, or another that the environment names."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Addresses and credentials; secrets are not shown when it is printed."""

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca_certs: Path | None = None

    @property
    def url(self) -> str:
        return self.urls[0]

    def client_arguments(self) -> dict[str, Any]:
        """The keyword arguments of `elasticsearch.Elasticsearch` for this cluster."""
        arguments: dict[str, Any] = {"hosts": list(self.urls)}
        if self.api_key:
            arguments["api_key"] = self.api_key
        elif self.user:
            arguments["basic_auth"] = (self.user, self.password)
        if self.ca_certs:
            arguments["ca_certs"] = str(self.ca_certs)
        return arguments


def external_cluster(environment: Mapping[str, str] = os.environ) -> Connection | None:
    """The cluster that `ELASTICSEARCH_URL` names (several addresses are separated by commas), None without it.

    Credentials are `ELASTICSEARCH_API_KEY`, or `ELASTICSEARCH_USERNAME` and `ELASTICSEARCH_PASSWORD`;
    `ELASTICSEARCH_CA_CERTS` is the file of the authority that signed the cluster's certificate.
    """
    urls = environment.get("ELASTICSEARCH_URL")
    if not urls:
        return None
    ca_certs = environment.get("ELASTICSEARCH_CA_CERTS")
    return Connection(
        urls=tuple(url.strip() for url in urls.split(",")),
        user=environment.get("ELASTICSEARCH_USERNAME"),
        password=environment.get("ELASTICSEARCH_PASSWORD"),
        api_key=environment.get("ELASTICSEARCH_API_KEY"),
        ca_certs=Path(ca_certs) if ca_certs else None,
    )
