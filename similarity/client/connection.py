"""The connection settings of both clients, and the conversion of calls to requests; nothing is sent here."""

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
from similarity.client.deadline import bound_connection
from similarity.client.problems import TimedOut, Unreachable, UnreadableAnswer
from similarity.client.retries import Retries, attempts_at
from similarity.errors import InvalidInput

REQUEST_ID = "x-request-id"
# A full batch, that is 100 rankings with 250 hits each, may have 10 kB for each hit.
MOST_BYTES = 256_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The URL, API key, timeout and retries of a client.

    `url` may have a path, for a service behind a proxy. `timeout`: seconds that the network may be silent.

    Raises:
        InvalidInput: the URL, the key or the timeout is invalid.
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    retries: Retries = field(default_factory=Retries)

    def __post_init__(self) -> None:
        try:
            parts = httpx2.URL(self.url)
        except httpx2.InvalidURL as error:
            raise InvalidInput(f"{self.url!r} is not a URL: {error}") from None
        if parts.scheme not in {"http", "https"} or not parts.host:
            raise InvalidInput(f"{self.url!r} is not the URL of a service; write http://HOST:PORT or https://HOST")
        if parts.query or parts.fragment or parts.userinfo:
            raise InvalidInput("the URL of the service must not have '?', '#' or a password; give the key as api_key")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable() and self.api_key):
            raise InvalidInput("the API key is empty or has characters other than printable ASCII")
        if not self.timeout > 0:
            raise InvalidInput(f"the timeout is {self.timeout} seconds; it must be above 0")

    def request(
        self, call: Call[Any], attempt: Attempt, *, request_id: str, http: httpx2.Client | httpx2.AsyncClient
    ) -> httpx2.Request:
        """Return the request that `http` sends for this attempt at `call`."""
        headers = {
            "accept": call.accept,
            # A small compressed answer can unpack to fill the memory.
            "accept-encoding": "identity",
            "user-agent": user_agent(),
            REQUEST_ID: request_id,
        }
        if call.body is not None:
            headers["content-type"] = call.media_type
        if self.api_key is not None:
            headers["authorization"] = f"Bearer {self.api_key}"
        address = self.url.rstrip("/") + call.path
        extensions = {"trace": bound_connection} if isinstance(http, httpx2.Client) else {}
        return http.build_request(
            call.method, address, content=call.body, headers=headers, timeout=attempt.timeout, extensions=extensions
        )

    def conversation(self, call: Call[Answer]) -> Generator[Attempt, Reply | Unreachable, Answer]:
        """Return the `attempts_at` the call, with this machine's clock and random pauses."""
        pauses = backoff(self.retries.first_pause, self.retries.longest_pause)
        return attempts_at(call, retries=self.retries, timeout=self.timeout, clock=time.monotonic, pauses=pauses)

    def failed(self, error: Exception, request_id: str) -> Unreachable:
        """Return the exception for a network error."""
        hint = f"is the service running there? [request {request_id}]"
        if isinstance(error, httpx2.TimeoutException | TimeoutError):
            return TimedOut(f"{self.url} did not answer in time; {hint}")
        return Unreachable(f"{self.url} cannot be reached ({str(error) or type(error).__name__}); {hint}")


def reply_of(response: httpx2.Response, body: bytes, request_id: str) -> Reply:
    """Return the reply of a response. Its request id is that of the service, or the one sent if it gives none."""
    headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
    return Reply(
        status=response.status_code, headers=headers, body=body, request_id=headers.get(REQUEST_ID, request_id)
    )


def check_encoding(response: httpx2.Response, request_id: str) -> None:
    """Raise UnreadableAnswer if the body of `response` is compressed."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise UnreadableAnswer(f"it is compressed ({encoding!a:.60}), which was not requested", request_id=request_id)


def check_size(body: bytearray, request_id: str) -> None:
    """Raise UnreadableAnswer if the body that was received until now is too large."""
    if len(body) > MOST_BYTES:
        raise UnreadableAnswer(f"it has more than {MOST_BYTES} bytes", request_id=request_id)


def new_request_id() -> str:
    """Return an id to find a call in the service's log; all attempts at the call share it."""
    return uuid4().hex


@cache
def user_agent() -> str:
    """Return the User-Agent of this client; the version is read from files once."""
    try:
        return f"company-similarity/{version('company-similarity')}"
    except PackageNotFoundError:
        return "company-similarity"
