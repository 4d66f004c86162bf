"""What of the API is to go: marked in its description, and said in the answers' headers (RFC 9745, RFC 8594).

Whoever wants to take an operation or a parameter away names it in DEPRECATED first, and in the release
notes. Until `sunset` it goes on working as before.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST_NOTICE = timedelta(days=183)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """An operation that is to go, or only one of its query parameters.

    `path` is as the API's description has it: `/similar/{company_id}`. `instead` says what to use.

    Raises:
        ValueError: `sunset` is sooner than promised (docs/api.md).
    """

    method: str
    path: str
    parameter: str = ""
    since: datetime
    sunset: datetime
    instead: str

    def __post_init__(self) -> None:
        if self.sunset - self.since < SHORTEST_NOTICE:
            raise ValueError(f"{self.path} would go after less than {SHORTEST_NOTICE.days} days; say a later sunset")

    @property
    def headers(self) -> dict[str, str]:
        """What an answer says of it."""
        return {
            "Deprecation": f"@{int(self.since.timestamp())}",
            "Sunset": format_datetime(self.sunset.astimezone(UTC), usegmt=True),
            "Link": '</docs>; rel="deprecation"; type="text/html"',
        }

    @property
    def note(self) -> str:
        """What the description says of it."""
        return f"Deprecated, ends on {self.sunset:%Y-%m-%d}: {self.instead}"

    def concerns(self, scope: Scope) -> bool:
        """Whether a request, which has been routed, uses it."""
        route = getattr(scope.get("route"), "path_format", None)
        if (scope["method"], route) != (self.method, self.path):
            return False
        asked = scope["query_string"].decode("latin-1")
        return not self.parameter or any(name == self.parameter for name, _ in parse_qsl(asked, keep_blank_values=True))


DEPRECATED: tuple[Deprecation, ...] = ()
"""All that is deprecated now."""


def announce(app: FastAPI, deprecated: Collection[Deprecation] = DEPRECATED) -> None:
    """Makes `app` say what of it is deprecated, in its description and in its answers."""
    if deprecated:
        app.add_middleware(Announcing, deprecated=deprecated)
        _mark(app, deprecated)


class Announcing:
    """Adds the headers of what a request uses; of several that of the first to go."""

    def __init__(self, app: ASGIApp, *, deprecated: Collection[Deprecation]) -> None:
        self._app = app
        self._deprecated = sorted(deprecated, key=lambda each: each.sunset)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""

        async def send_with_notice(message: Message) -> None:
            if message["type"] == "http.response.start":
                used = next((each for each in self._deprecated if each.concerns(scope)), None)
                MutableHeaders(scope=message).update(used.headers if used else {})
            await send(message)

        await self._app(scope, receive, send_with_notice if scope["type"] == "http" else send)


def _mark(app: FastAPI, deprecated: Collection[Deprecation]) -> None:
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = describe()
            for each in deprecated:
                operation = document["paths"][each.path][each.method.lower()]
                named = [part for part in operation.get("parameters", []) if part["name"] == each.parameter]
                for marked in named if each.parameter else [operation]:
                    marked["deprecated"] = True
                    marked["description"] = f"{marked.get('description', '')} {each.note}".strip()
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to change the document
