"""What Schemathesis has to be told: how NDJSON is sent, and that each operation's answers are to be counted."""

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


def after_call(context: Any, case: Any, response: Any) -> None:
    """Counts one answer."""
    answers[case.operation.label][str(response.status_code)] += 1


schemathesis.hook(after_call)


def write_counts() -> None:
    """Leaves the numbers for the campaign to read."""
    if file := os.environ.get(COUNTS_FILE):
        Path(file).write_text(json.dumps(answers), encoding="utf-8")


atexit.register(write_counts)
