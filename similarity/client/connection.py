"""The settings of both clients, and the conversion of calls to requests; nothing is sent here."""

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import httpx2

from similarity.backoff import backoff
from similarity.client.call import Call, Reply
from similarity.client.problems import TimedOut, Unreachable, UnreadableAnswer
from similarity.client.retries import Attempts, Retries, problem_from_reply
from similarity.errors import InvalidInput

REQUEST_ID = "x-request-id"
MAX_REQUEST_ID = 128
# A full batch, that is 100 rankings with 250 hits each, may have 10 kB for each hit.
MOST_BYTES = 256_000_000

Http = TypeVar("Http", httpx2.Client, httpx2.AsyncClient)


class Connection(Generic[Http]):
    """The URL, API key, timeout, retries and httpx2 client of a client.

    `url` may have a path, for a service behind a proxy. `timeout`: seconds that the network may be silent.

    Raises:
        InvalidInput: the URL, the key or the timeout is invalid.
    """

    _new_http: Callable[[], Http]

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        http: Http | None = None,
    ) -> None:
        try:
            parts = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise InvalidInput(f"{url!r} is not a URL: {error}") from None
        if parts.scheme not in {"http", "https"} or not parts.host:
            raise InvalidInput(f"{url!r} is not the URL of a service; write http://HOST:PORT or https://HOST")
        if parts.query or parts.fragment or parts.userinfo:
            raise InvalidInput("the URL of the service must not have '?', '#' or a password; give the key as api_key")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key):
            raise InvalidInput("the API key is empty or has characters other than printable ASCII")
        if not timeout > 0:
            raise InvalidInput(f"the timeout is {timeout} seconds; it must be above 0")
        self._url = url.rstrip("/")
        self._authorization = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        self._timeout = timeout
        self._retries = retries or Retries()
        self._http: Http = http or self._new_http()
        self._owns_http = http is None

    def _attempts(self) -> Attempts:
        """Return the attempts at a call, with this machine's clock and random pauses."""
        pauses = backoff(self._retries.first_pause, self._retries.longest_pause)
        return Attempts(self._retries, clock=time.monotonic, pauses=pauses)

    def _request(self, call: Call[Any], attempts: Attempts) -> dict[str, Any]:
        """Return the arguments of httpx2's `build_request` for the next attempt at `call`."""
        headers = {
            "accept": call.accept,
            # A small compressed answer can unpack to fill the memory.
            "accept-encoding": "identity",
            "user-agent": "company-similarity",
            REQUEST_ID: attempts.request_id,
            **self._authorization,
        }
        if call.body is not None:
            headers["content-type"] = call.media_type
        return {
            "method": call.method,
            "url": self._url + call.path,
            "content": call.body,
            "headers": headers,
            "timeout": min(self._timeout, attempts.remaining()),
        }

    def _failure(self, error: Exception, attempts: Attempts) -> Unreachable:
        """Return the exception for a network error."""
        hint = f"is the service running there? [request {attempts.request_id}]"
        if isinstance(error, httpx2.TimeoutException | TimeoutError):
            return TimedOut(f"{self._url} did not answer in time; {hint}")
        return Unreachable(f"{self._url} cannot be reached ({str(error) or type(error).__name__}); {hint}")


class Incoming:
    """A response whose body is being received."""

    def __init__(self, response: httpx2.Response, attempts: Attempts) -> None:
        self._response = response
        self._body = bytearray()
        given = response.headers.get(REQUEST_ID, attempts.request_id)
        self._request_id = given if given.isprintable() and len(given) <= MAX_REQUEST_ID else attempts.request_id
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            reason = f"it is compressed ({encoding!a:.60}), which was not requested"
            raise UnreadableAnswer(reason, request_id=self._request_id)

    def append(self, chunk: bytes) -> None:
        """Append to the body. Raises UnreadableAnswer if it is too large."""
        self._body += chunk
        if len(self._body) > MOST_BYTES:
            raise UnreadableAnswer(f"it has more than {MOST_BYTES} bytes", request_id=self._request_id)

    def reply(self) -> Reply:
        """Return the complete response. Raises a Problem if it is an error response."""
        headers = dict(self._response.headers)
        status = self._response.status_code
        reply = Reply(status=status, headers=headers, body=bytes(self._body), request_id=self._request_id)
        if not self._response.is_success:
            raise problem_from_reply(reply)
        return reply
