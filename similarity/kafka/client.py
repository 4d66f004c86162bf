"""What all clients of Kafka share: how they are made, and what their errors mean to a user."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from similarity.errors import InvalidInput
from similarity.kafka.records import KafkaUnavailable
from similarity.kafka.settings import PREFIX

ANSWER_SECONDS = 10.0
OUTAGE_LOG_SECONDS = 60.0
LOGGER = logging.getLogger(__name__)

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
            f"Kafka needs its client ({error.name} is missing): in a checkout of the project: pip install -e '.[kafka]'"
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


class Outage:
    """Says once that Kafka is away, again every minute, and that it is back."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._since: float | None = None
        self._said = 0.0
        self._refusal = ""

    def on_error(self, error: Any) -> None:
        """Takes note of what the client reports."""
        now = time.monotonic()
        if error.name() in LOGIN_ERRORS:
            self._refusal = error.str()
        elif self._since is None or now - self._said > OUTAGE_LOG_SECONDS:
            self._since = self._since or now
            self._said = now
            LOGGER.warning("Kafka at %s is away (%s); reading goes on when it is back", self._servers, error.str())

    def over(self) -> None:
        """A broker has answered."""
        if self._since is not None:
            LOGGER.warning("Kafka at %s is back after %.0f s", self._servers, time.monotonic() - self._since)
            self._since = None

    def raise_refusal(self) -> None:
        """Raises InvalidInput if the login was refused: no waiting mends that."""
        if self._refusal:
            raise InvalidInput(refused(self._servers, self._refusal))


def refused(servers: str, reason: str) -> str:
    """What a user is told of a login or a right that is refused."""
    return f"Kafka at {servers} refuses: {reason}; see the {PREFIX} variables and the rights of the user"
