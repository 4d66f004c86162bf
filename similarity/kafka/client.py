"""What all clients of Kafka share: how they are made, and what their errors mean to a user."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from similarity.errors import InvalidInput
from similarity.kafka.records import KafkaUnavailable
from similarity.kafka.settings import PREFIX
from similarity.upkeep.outage import Outage

ANSWER_SECONDS = 10.0

COMMON = {
    # What librdkafka would print itself, again and again while a broker is away; we say it once.
    "log_level": 2,
    "reconnect.backoff.ms": 250,
    "reconnect.backoff.max.ms": 2_000,
}
# What no waiting mends.
LOGIN_ERRORS = (
    "_AUTHENTICATION",
    "SASL_AUTHENTICATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "_SSL",
)


def confluent() -> Any:
    """The client's module.

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


def made(client: Any, configuration: Mapping[str, object]) -> Any:
    """A client of this class.

    Raises:
        InvalidInput: a setting cannot be used.
    """
    try:
        return client(configuration)
    except Exception as error:  # KafkaException, ValueError or TypeError, by what is wrong
        raise InvalidInput(f"a setting of Kafka cannot be used: {error}; see the {PREFIX} variables") from error


@contextmanager
def translated(confluent: Any, servers: str, what: str) -> Iterator[None]:
    """Turns errors of the client into ours."""
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
    """The errors that a client reports aside: an outage, which is logged, or a refused login."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._outage = Outage(f"Kafka at {servers}")
        self._refusal = ""

    def on_error(self, error: Any) -> None:
        """Takes note of what the client reports."""
        if error.name() in LOGIN_ERRORS:
            self._refusal = error.str()
        else:
            self._outage.away(f"{error.str()}; reading goes on when it is back")

    def over(self) -> None:
        """A broker has answered."""
        self._outage.over()

    def raise_refusal(self) -> None:
        """Raises InvalidInput if the login was refused: no waiting mends that."""
        if self._refusal:
            raise InvalidInput(refused(self._servers, self._refusal))


def refused(servers: str, reason: str) -> str:
    """What a user is told of a login or a right that is refused."""
    return f"Kafka at {servers} refuses: {reason}; see the {PREFIX} variables and the rights of the user"
