"""What Schemathesis has to be told: how a body of NDJSON is sent; and what we want to know: how many answers each operation gave."""

import atexit
import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import schemathesis

COUNTS_FILE = "API_CAMPAIGN_COUNTS"
"""Variable with the file that takes the number of answers by operation and status."""

answers: dict[str, Counter[str]] = defaultdict(Counter)


def ndjson(_: Any, value: Any) -> bytes:
    """A text as it is; what is no text, in some form that the service must refuse."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return repr(value).encode("utf-8", "surrogatepass")


schemathesis.serializer("application/x-ndjson")(ndjson)


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:  # noqa: ARG001 - Schemathesis looks at the names
    """Counts one answer."""
    answers[case.operation.label][str(response.status_code)] += 1


def write_counts() -> None:
    """Leaves the numbers for the campaign to read."""
    if file := os.environ.get(COUNTS_FILE):
        Path(file).write_text(json.dumps(answers), encoding="utf-8")


atexit.register(write_counts)
