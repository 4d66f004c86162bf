"""What Schemathesis has to be told: how a body of NDJSON is sent."""

from typing import Any

import schemathesis


def ndjson(_: Any, value: Any) -> bytes:
    """A text as it is; what is no text, in some form that the service must refuse."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return repr(value).encode("utf-8", "surrogatepass")


schemathesis.serializer("application/x-ndjson")(ndjson)
