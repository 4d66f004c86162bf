"""What both clients know of the service, and how a call becomes a request: no sending, no waiting."""

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from uuid import uuid4

import httpx2

from similarity.backoff import backoff
from similarity.client.call import Answer, Attempt, Call, Reply
from similarity.client.problems import TimedOut, Unreachable
from similarity.client.retries import Retries, talk
from similarity.errors import InvalidInput

REQUEST_ID = "x-request-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the service is and how to speak to it.

    `url` may have a path, where something in front of several services gives it one. `timeout`:
    seconds that the network may be silent.

    Raises:
        InvalidInput: the URL, the key or the timeout cannot be used.
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    retries: Retries = field(default_factory=Retries)

    def __post_init__(self) -> None:
        try:
            parts = httpx2.URL(self.url)
        except httpx2.InvalidURL as error:
            raise InvalidInput(f"{self.url!r} is no address: {error}") from None
        if parts.scheme not in {"http", "https"} or not parts.host:
            raise InvalidInput(f"{self.url!r} is no address of a service; write http://HOST:PORT or https://HOST")
        if parts.query or parts.fragment or parts.userinfo:
            raise InvalidInput("the service's address has no '?', '#' or password; an API key goes in api_key")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable() and self.api_key):
            raise InvalidInput("the API key is empty or holds characters that no key has")
        if not self.timeout > 0:
            raise InvalidInput(f"the timeout is {self.timeout} seconds; it must be above 0")

    def request(
        self, call: Call[Any], attempt: Attempt, *, request_id: str, http: httpx2.Client | httpx2.AsyncClient
    ) -> httpx2.Request:
        """The request that `http` sends for this attempt at `call`."""
        headers = {"accept": call.accept, "user-agent": user_agent(), REQUEST_ID: request_id}
        if call.body is not None:
            headers["content-type"] = call.media_type
        if self.api_key is not None:
            headers["authorization"] = f"Bearer {self.api_key}"
        address = self.url.rstrip("/") + call.path
        return http.build_request(call.method, address, content=call.body, headers=headers, timeout=attempt.timeout)

    def conversation(self, call: Call[Answer]) -> Generator[Attempt, Reply | Unreachable, Answer]:
        """The conversation about `call`, by the clock and the dice of this machine."""
        pauses = backoff(self.retries.first_pause, self.retries.longest_pause)
        return talk(call, retries=self.retries, timeout=self.timeout, clock=time.monotonic, pauses=pauses)

    def failed(self, error: Exception, request_id: str) -> Unreachable:
        """What to say of a failure of the network."""
        meaning = TimedOut if isinstance(error, httpx2.TimeoutException) else Unreachable
        said = (
            "did not answer in time"
            if meaning is TimedOut
            else f"cannot be asked ({str(error) or type(error).__name__})"
        )
        return meaning(f"{self.url} {said}; does the service run there? [request {request_id}]")


def reply_of(response: httpx2.Response, body: bytes, request_id: str) -> Reply:
    """The answer that came as `response`; the service's id of the request counts, else the one sent."""
    headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
    return Reply(
        status=response.status_code, headers=headers, body=body, request_id=headers.get(REQUEST_ID, request_id)
    )


def late(attempt: Attempt, now: float) -> None:
    """Raises what httpx2 raises for a silent network when the time of `attempt` is over."""
    if now > attempt.until:
        raise httpx2.ReadTimeout("the answer came too slowly")


def new_request_id() -> str:
    """An id by which a call is found in the service's log; all attempts at it share it."""
    return uuid4().hex


@cache
def user_agent() -> str:
    """What this client calls itself; the version is looked up in files, once."""
    try:
        return f"company-similarity/{version('company-similarity')}"
    except PackageNotFoundError:
        return "company-similarity"
