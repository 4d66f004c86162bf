"""What a story needs of a running stack, whatever it runs in."""

from collections.abc import Mapping
from typing import Protocol


class Stack(Protocol):
    """The services of docker-compose.yml. As a context manager nothing of it is left afterwards."""

    @property
    def url(self) -> str:
        """Where the search service answers."""

    def up(self, *services: str, settings: Mapping[str, str] | None = None) -> None:
        """`docker compose up --detach --wait [services]`: all without a profile, or the named ones and what they need.

        `settings` are variables of .env that are to have other values from now on.
        """

    def run(self, service: str, *command: str) -> str:
        """`docker compose run --rm service [command]`: what it printed. An exit status other than 0 is an error."""

    def logs(self, service: str) -> str:
        """What a service has said so far."""


class StackFailed(Exception):
    """A service did not come up or a command failed; the message ends with what was said."""
