"""What the log looks like, and what never gets into it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from services.search.guards.callers import Scope
from services.search.guards.envelope import request_id
from services.search.guards.key_file import new_key
from services.search.guards.logs import FIELDS, JsonLines, TextLines, start_logs, without_secrets
from similarity.company import utc_now


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:], root.level = handlers, level


def record(message: str = "hello %s", /, **changes: object) -> logging.LogRecord:
    made = logging.LogRecord("a.logger", logging.WARNING, "file.py", 1, message, ("you",), None)
    made.__dict__.update(changes)
    return made


def test_a_record_is_one_line_of_json() -> None:
    line = JsonLines().format(record("hello %s\nand more", **{FIELDS: {"status": 200}}))
    assert "\n" not in line
    members = json.loads(line)
    assert members["message"] == "hello you\nand more"
    assert (members["level"], members["logger"], members["status"]) == ("warning", "a.logger", 200)
    assert members["time"].endswith("+00:00")
    assert "request_id" not in members


def test_a_line_says_which_request_it_is_about() -> None:
    token = request_id.set("abc")
    try:
        assert json.loads(JsonLines().format(record()))["request_id"] == "abc"
    finally:
        request_id.reset(token)


def test_a_trace_is_a_member_of_its_line() -> None:
    try:
        raise ValueError("boom")
    except ValueError as error:
        line = JsonLines().format(record(exc_info=(type(error), error, error.__traceback__)))
    assert "\n" not in line
    assert "ValueError: boom" in json.loads(line)["trace"]


def test_the_secret_of_a_key_is_left_out_wherever_it_stands() -> None:
    key, secret = new_key("ann", [Scope.READ], now=utc_now())
    hidden = f"cs_{key.id}_***"
    assert without_secrets(f"a {secret} b {secret}") == f"a {hidden} b {hidden}"
    for formatter in (JsonLines(), TextLines()):
        try:
            raise ValueError(f"refused {secret}")
        except ValueError as error:
            line = formatter.format(record(secret + " %s", exc_info=(type(error), error, error.__traceback__)))
        assert secret not in line
        assert line.count(hidden) >= 2


def test_text_is_for_people() -> None:
    assert (
        TextLines().format(record("hello %s", **{FIELDS: {"status": 200, "ms": 1.5}}))
        == "WARNING: hello you status=200 ms=1.5"
    )


@pytest.mark.parametrize(("form", "start"), [("json", "{"), ("text", "INFO: ")])
def test_everything_that_is_logged_goes_to_the_stream(root_logger: logging.Logger, form: str, start: str) -> None:
    stream = io.StringIO()
    start_logs(stream, form="json" if form == "json" else "text")
    logging.getLogger("some.library").info("a message")
    logging.getLogger("some.library").debug("not this one")
    (line,) = stream.getvalue().splitlines()
    assert line.startswith(start)
    assert len(root_logger.handlers) == 1
