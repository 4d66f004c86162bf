"""Where the service listens, checked before anything is opened."""

import ipaddress
from dataclasses import dataclass

from similarity.errors import InvalidInput

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
NETWORK_OPTION = "--allow-unauthenticated-network"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host and port to listen on.

    The service has no authentication, so any host but this machine's own must be asked for twice.

    Raises:
        InvalidInput: the port is out of range, or the host is reachable from the network and
            `allow_unauthenticated_network` is not set.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    allow_unauthenticated_network: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.port < 65_536:
            raise InvalidInput(f"port {self.port} is out of range; choose one between 1 and 65535")
        if not is_loopback(self.host) and not self.allow_unauthenticated_network:
            raise InvalidInput(
                f"{self.host or 'an empty host'} can be reached from the network and the service has no "
                f"authentication; listen on {DEFAULT_HOST}, or add {NETWORK_OPTION} if something in front of it "
                "decides who may ask"
            )


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach `host`; other names than localhost are not trusted to."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
