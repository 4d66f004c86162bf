"""Where Kafka is and how to log in; read from the environment by composition roots and by workers."""

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

    `servers`: `host:port` of some brokers, separated by commas. Log in by `username` and `password`
    (SASL), by `certificate_file` and `key_file`, or not at all. `tls` None: encrypted where there is a
    login or a `ca_file`. `ca_file`: of a private authority, the system's authorities without it.

    Raises:
        InvalidInput: settings do not fit together; the message never holds a secret.
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
            # Not shown: somebody may have written a password into it.
            raise InvalidInput(f"{PREFIX}SERVERS must read HOST:PORT, or several of them separated by commas")
        if "@" in self.servers or "/" in self.servers:
            raise InvalidInput(
                f"{PREFIX}SERVERS holds no scheme and no password, because it is logged; set {PREFIX}USERNAME and "
                f"{PREFIX}PASSWORD"
            )
        for one, other in (("username", "password"), ("certificate_file", "key_file")):
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                raise InvalidInput(
                    f"{PREFIX}{one.upper()} and {PREFIX}{other.upper()} belong together; one of them is missing"
                )
        if self.tls is False and (self.ca_file or self.certificate_file):
            raise InvalidInput(f"{PREFIX}TLS is off, but there are certificates; leave it out, or leave them out")

    @property
    def encrypted(self) -> bool:
        """Whether connections are by TLS."""
        return bool(self.username or self.ca_file or self.certificate_file) if self.tls is None else self.tls

    def client(self) -> dict[str, object]:
        """How to connect, as librdkafka calls it. Holds the secrets: never log it."""
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
        """Reads SIMILARITY_KAFKA_ and the names of the fields in capitals; `servers` goes before its variable.

        Raises:
            InvalidInput: as `read_variables`, or settings do not fit together.
        """
        given = read_variables(environ, PREFIX, get_type_hints(cls))
        return cls(**given | ({"servers": servers} if servers else {}))
