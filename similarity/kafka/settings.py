"""The connection settings of Kafka; composition roots and workers read them from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_type_hints

from similarity.errors import InvalidInput
from similarity.settings import read_variables

PREFIX = "SIMILARITY_KAFKA_"
DEFAULT_SERVERS = "127.0.0.1:9092"
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Brokers, login and encryption.

    `servers`: `host:port` of some brokers, separated by commas. The login uses `username` and `password` (SASL), or
    `certificate_file` and `key_file`; it is optional. `tls`: by default on if there is a username, a certificate or
    a `ca_file`. `ca_file`: certificates of a private authority; by default those of the system.

    Raises:
        InvalidInput: settings contradict each other; the message never contains a secret.
    """

    servers: str = DEFAULT_SERVERS
    username: str = ""
    password: str = field(default="", repr=False)
    mechanism: Mechanism = "SCRAM-SHA-512"
    tls: bool | None = None
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        addresses = [address.strip() for address in self.servers.split(",")]
        if not all(host and port.isdigit() for host, _, port in (address.rpartition(":") for address in addresses)):
            # The value is not shown: it may contain a password.
            raise InvalidInput(f"{PREFIX}SERVERS must be HOST:PORT, or several of them separated by commas")
        if "@" in self.servers or "/" in self.servers:
            raise InvalidInput(
                f"{PREFIX}SERVERS must not contain a scheme or a password, because it is logged; set "
                f"{PREFIX}USERNAME and {PREFIX}PASSWORD"
            )
        for one, other in (("username", "password"), ("certificate_file", "key_file")):
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                raise InvalidInput(
                    f"{PREFIX}{one.upper()} and {PREFIX}{other.upper()} belong together; one of them is missing"
                )
        if self.tls is False and (self.ca_file or self.certificate_file):
            raise InvalidInput(f"{PREFIX}TLS is off, but certificates are set; unset {PREFIX}TLS or the certificates")

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return bool(self.username or self.ca_file or self.certificate_file) if self.tls is None else self.tls

    def client(self) -> dict[str, object]:
        """Return the configuration for librdkafka. It contains the secrets: never log it."""
        protocol = ("SASL_" if self.username else "") + ("SSL" if self.encrypted else "PLAINTEXT")
        configuration: dict[str, object] = {"bootstrap.servers": self.servers, "security.protocol": protocol}
        if self.username:
            configuration |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.username,
                "sasl.password": self.password,
            }
        files = {
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
            "ssl.key.password": self.key_password,
        }
        return configuration | {name: value for name, value in files.items() if value}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, servers: str = "") -> "KafkaSettings":
        """Read the variables SIMILARITY_KAFKA_ plus a field name in capitals; `servers` overrides its variable.

        Raises:
            InvalidInput: as `read_variables`, or settings contradict each other.
        """
        given = read_variables(environ, PREFIX, get_type_hints(cls))
        return cls(**given | ({"servers": servers} if servers else {}))
