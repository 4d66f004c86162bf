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

SHORT_LISTS = "API_CAMPAIGN_SHORT_LISTS"
"""Variable that makes long lists rare, where thousands of cases are wanted of an operation that takes one."""

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


def before_load_schema(context: Any, raw_schema: dict[str, Any]) -> None:
    """Takes the upper bound from the list of ids that were seen: with it, lists of hundreds are made, a second each."""
    del raw_schema["components"]["schemas"]["LookGiven"]["properties"]["ids"]["anyOf"][0]["maxItems"]


if os.environ.get(SHORT_LISTS):
    schemathesis.hook(before_load_schema)


def write_counts() -> None:
    """Leaves the numbers for the campaign to read."""
    if file := os.environ.get(COUNTS_FILE):
        Path(file).write_text(json.dumps(answers), encoding="utf-8")


atexit.register(write_counts)
