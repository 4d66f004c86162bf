"""Creation of Kafka clients, and conversion of their errors to ours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from similarity.errors import InvalidInput
from similarity.kafka.records import KafkaUnavailable
from similarity.kafka.settings import PREFIX
from similarity.upkeep.outage import Outage

ANSWER_SECONDS = 10.0

COMMON = {
    # librdkafka would log each failed connection while a broker is unavailable; we log an outage once.
    "log_level": 2,
    "reconnect.backoff.ms": 250,
    "reconnect.backoff.max.ms": 2_000,
}
# Errors that a retry does not solve.
LOGIN_ERRORS = (
    "_AUTHENTICATION",
    "SASL_AUTHENTICATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "_SSL",
)


def confluent() -> Any:
    """Return the module confluent_kafka.

    Raises:
        InvalidInput: it is not installed.
    """
    try:
        import confluent_kafka
    except ImportError as error:
        raise InvalidInput(
            f"Kafka needs its client ({error.name} is missing): "
            "pip install 'company-similarity[kafka]', in a checkout pip install -e '.[kafka]'"
        ) from error
    return confluent_kafka


def create_client(client: Any, configuration: Mapping[str, object]) -> Any:
    """Return a client of this class.

    Raises:
        InvalidInput: a setting is invalid.
    """
    try:
        return client(configuration)
    except Exception as error:  # KafkaException, ValueError or TypeError
        raise InvalidInput(f"a setting of Kafka is invalid: {error}; see the {PREFIX} variables") from error


@contextmanager
def convert_errors(confluent: Any, servers: str, what: str) -> Iterator[None]:
    """Convert exceptions of the client: to InvalidInput if the login is refused, else to KafkaUnavailable.

    `what`: the result that was requested, for the message.
    """
    try:
        yield
    except confluent.KafkaException as error:
        reason = error.args[0]
        if reason.name() in LOGIN_ERRORS:
            raise InvalidInput(refused(servers, reason.str())) from error
        raise KafkaUnavailable(f"Kafka at {servers} does not give {what}: {reason.str()}") from error
    except TimeoutError as error:
        raise KafkaUnavailable(f"Kafka at {servers} does not give {what}: no answer") from error


class ClientErrors:
    """Collects the errors that a client reports to its callback: an outage, which is logged, or a refused login."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._outage = Outage(f"Kafka at {servers}")
        self._refusal = ""

    def on_error(self, error: Any) -> None:
        """Handle an error that the client reports."""
        if error.name() in LOGIN_ERRORS:
            self._refusal = error.str()
        else:
            self._outage.away(f"{error.str()}; reading continues when it is available again")

    def over(self) -> None:
        """End the outage: a broker has answered."""
        self._outage.over()

    def raise_refusal(self) -> None:
        """Raise InvalidInput if the login was refused; a retry does not solve that."""
        if self._refusal:
            raise InvalidInput(refused(self._servers, self._refusal))


def refused(servers: str, reason: str) -> str:
    """Return the message for a refused login or a missing right."""
    return f"Kafka at {servers} refuses: {reason}; see the {PREFIX} variables and the rights of the user"
