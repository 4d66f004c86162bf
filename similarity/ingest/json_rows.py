"""Reads JSON files: one object per line, or one array of objects, in bounded memory.

A broken line rejects only that line. A broken item of an array ends the reading, because the start of the next item is
unknown.
"""

import codecs
import json
import re
import shlex
from collections import deque
from collections.abc import Iterator
from typing import IO

from similarity.errors import InvalidInput
from similarity.formats.json_text import read_json
from similarity.ingest.lines import KEPT_CHARACTERS, MAX_LINE, TOO_LONG, bounded_lines
from similarity.ingest.rows import Row

BYTE_ORDER_MARK = "\ufeff"
MAX_BLANK_LINES = 1_000
"""Limit of blank lines before an array."""
BLOCK = 1 << 20
BLANKS = re.compile(r"[ \t\r\n]*")
MEMBER = re.compile(r'\s*[{,]\s*("(?:[^"\\]|\\.)*")\s*:\s*(\[\s*\{)?')
"""A member of an object; group 2 if it is a list of objects."""
ONE_PER_LINE = (
    "each line must be one object, or the file one array of objects (jq -c . writes one object per line); CSV is read "
    "from a file called .csv"
)


def json_rows(stream: IO[bytes], *, name: str) -> Iterator[Row]:
    """Yield the rows of a JSON file in UTF-8.

    Raises:
        InvalidInput: the file is an array that is not closed, is followed by text, or has an item that is not JSON or
            too long.
    """
    first: deque[bytes] = deque()
    while len(first) < MAX_BLANK_LINES and (line := stream.readline(MAX_LINE + 1)):
        first.append(line)
        if _without_mark(line).strip():
            break
    if first and _is_array(_without_mark(first[-1]), name):
        yield from _items(stream, b"".join(first), name)
    else:
        yield from _lines(stream, first)


def list_in_object(text: str) -> str:
    """Return how to read the list of objects that is a member of an object; empty if the object has none.

    `text`: the beginning of a file that is one object.
    """
    place = 0
    while member := MEMBER.match(text, place):
        if member[2]:
            name = member[1].strip('"')
            path = shlex.quote(f".{name if name.isascii() and name.isidentifier() else member[1]}[]")
            return f"; if the companies are in the list {name!r:.80}, write only them into the file (jq -c {path})"
        try:
            _, place = json.JSONDecoder().raw_decode(text, member.end())
        except (ValueError, RecursionError):  # cut off
            break
    return ""


def _is_array(line: bytes, name: str) -> bool:
    """Return whether the first line begins an array of objects. In JSONL, a list in a line may be a broken row."""
    if not line.lstrip().startswith(b"["):
        return False
    if name.lower().removesuffix(".gz").endswith(".json"):
        return True
    try:
        items = json.loads(line)
    except (ValueError, RecursionError):
        return True
    return any(isinstance(item, dict) for item in items)


def _without_mark(line: bytes) -> bytes:
    return line.removeprefix(codecs.BOM_UTF8)


def _lines(stream: IO[bytes], first: deque[bytes]) -> Iterator[Row]:
    """Yield the rows of a file with one object per line; `first` has the lines that were read."""

    def readline(size: int) -> bytes:
        return first.popleft() if first else stream.readline(size)

    for number, raw in enumerate(bounded_lines(readline), 1):
        if len(raw) > MAX_LINE:
            shown = raw[:KEPT_CHARACTERS]
            record = {"line": shown.decode("utf-8", "surrogateescape")}
            yield Row(number=number, record=record, unreadable=f"line {number} {TOO_LONG}", raw=shown)
            continue
        line = raw.decode("utf-8", "surrogateescape")
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if line.strip():
            yield _row(number, line, raw)


def _row(number: int, text: str, raw: bytes) -> Row:
    """Return the row of one line, or of one item of an array."""
    try:
        record = read_json(text)
    except ValueError as error:
        hint = f"; {ONE_PER_LINE}" if isinstance(error, json.JSONDecodeError) else ""
        return Row(number=number, record={"line": text[:1000]}, unreadable=f"not JSON: {error}{hint}", raw=raw)
    if isinstance(record, dict):
        return Row(number=number, record=record, raw=text.encode("utf-8", "surrogateescape"))
    return Row(number=number, record={"line": text[:1000]}, unreadable=f"not a JSON object; {ONE_PER_LINE}", raw=raw)


def _items(stream: IO[bytes], first: bytes, name: str) -> Iterator[Row]:
    """Yield the items of an array as rows; the first is row 1."""
    text = _ArrayText(stream, _without_mark(first), name)
    text.skip("[")
    number = 0
    if text.peek() == "]":
        text.skip("]")
    else:
        while True:
            number += 1
            item = text.item(number)
            yield _row(number, item, item.encode("utf-8", "surrogateescape"))
            if text.peek() == "]":
                text.skip("]")
                break
            text.skip(",", after=number)
    if text.peek():
        raise InvalidInput(f"{name} has text after its array of {number:,} items; {ONE_PER_LINE}")


class _ArrayText:
    """The text of an array. Only the current item and a block after it are in memory."""

    def __init__(self, stream: IO[bytes], first: bytes, name: str) -> None:
        self._stream, self._name = stream, name
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text, self._start, self._is_whole = self._decoder.decode(first), 0, False

    def peek(self) -> str:
        """Return the next character that is not blank; empty at the end of the file."""
        while True:
            blanks = BLANKS.match(self._text, self._start)
            self._start = blanks.end() if blanks else self._start
            if self._start < len(self._text) or not self._more():
                return self._text[self._start : self._start + 1]

    def skip(self, expected: str, *, after: int = 0) -> None:
        """Go past the next character. Raises InvalidInput if it is not `expected`."""
        if (found := self.peek()) != expected:
            problem = f"there is {found!r} and not a comma or ]" if found else "it ends; it may be cut off"
            raise InvalidInput(f"{self._name} cannot be read to its end: after item {after:,} of its array, {problem}")
        self._start += 1

    def item(self, number: int) -> str:
        """Return the text of the next item. Raises InvalidInput if it is not JSON, or longer than MAX_LINE."""
        decoder = json.JSONDecoder()
        self.peek()
        while True:
            problem = ""
            try:
                _, end = decoder.raw_decode(self._text, self._start)
            except json.JSONDecodeError as error:
                problem, end = error.msg, len(self._text)
            except (ValueError, RecursionError):  # such as a number of too many digits
                raise InvalidInput(f"item {number:,} of the array in {self._name} cannot be read") from None
            if not problem and (end < len(self._text) or self._is_whole):
                item, self._start = self._text[self._start : end], end
                return item
            if len(self._text) - self._start > MAX_LINE:
                raise InvalidInput(f"item {number:,} of the array in {self._name} is not JSON, or {TOO_LONG}")
            if not self._more() and problem:
                raise InvalidInput(
                    f"{self._name} cannot be read to its end: item {number:,} of its array is not JSON "
                    f"({problem}), or the file is cut off"
                )

    def _more(self) -> bool:
        """Read another block. Return whether there was one."""
        block = self._stream.read(BLOCK)
        self._is_whole = not block
        self._text = self._text[self._start :] + self._decoder.decode(block, final=not block)
        self._start = 0
        return bool(block)
