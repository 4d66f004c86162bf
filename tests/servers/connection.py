"""How a test reaches the Elasticsearch cluster that it started."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Addresses and credentials; secrets are not shown when it is printed."""

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_certs: Path | None = None

    @property
    def url(self) -> str:
        return self.urls[0]

    def client_arguments(self) -> dict[str, Any]:
        """The keyword arguments of `elasticsearch.Elasticsearch` for this cluster."""
        arguments: dict[str, Any] = {"hosts": list(self.urls)}
        if self.user:
            arguments["basic_auth"] = (self.user, self.password)
        if self.ca_certs:
            arguments["ca_certs"] = str(self.ca_certs)
        return arguments
