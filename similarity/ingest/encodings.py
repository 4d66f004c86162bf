"""The encoding of a text file: UTF-8, UTF-16 with a byte order mark, or Windows-1252.

The whole file decides, not its beginning: files are often ASCII for the first thousands of rows. The rules, in order:

1. A byte order mark of UTF-16 or UTF-8 decides.
2. A file that is valid UTF-8 is UTF-8.
3. A file is Windows-1252 if all its bytes are defined there and, of its bytes outside ASCII, hardly any form characters
   of UTF-8 and most stand alone or in pairs, as accented letters of Western languages do.
4. Any other file is UTF-8 with damaged rows, which are rejected one by one.
"""

import codecs
import io
import re
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

OnNote: TypeAlias = Callable[[str], None]
"""Called with a remark on how a file is read, such as its encoding."""

BLOCK = 1 << 20
UTF_8, UTF_16, WINDOWS_1252 = "utf-8", "utf-16", "cp1252"
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NOTES = {
    UTF_16: "decoded as UTF-16, because it begins with the byte order mark of UTF-16",
    WINDOWS_1252: "decoded as Windows-1252, because it is not UTF-8; if names look wrong, save it as UTF-8",
}
UNDEFINED_IN_WINDOWS_1252 = b"\x81\x8d\x8f\x90\x9d"
# Words in Cyrillic, Greek or Chinese encodings are runs of such bytes; Western words have one or two in a row.
HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
WESTERN_RUN = 2
ESCAPED_BYTES = re.compile("[\udc80-\udcff]")
# "É»" in capitals before a quotation mark is also a character of UTF-8.
MAX_SHARE_OF_UTF_8 = 0.1


def encoding_of(stream: IO[bytes]) -> str:
    """Return the encoding of a text by the rules above; reads the whole stream, and seeks back to its start."""
    beginning = stream.read(len(codecs.BOM_UTF8))
    stream.seek(0)
    if beginning.startswith(UTF_16_MARKS):
        return UTF_16
    if beginning == codecs.BOM_UTF8:
        return UTF_8
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    characters = invalid = high = in_runs = 0
    undefined = False
    while block := stream.read(BLOCK):
        text = decoder.decode(block)
        if text.isascii() and block.isascii():
            continue
        broken = 0 if is_unicode(text) else len(ESCAPED_BYTES.findall(text))
        characters += len(text) - len(text.encode("ascii", "ignore")) - broken
        invalid += broken
        undefined |= len(block.translate(None, UNDEFINED_IN_WINDOWS_1252)) < len(block)
        if broken:
            runs = [len(run) for run in HIGH_BYTES.findall(block)]
            high += sum(runs)
            in_runs += sum(run for run in runs if run > WESTERN_RUN)
    invalid += len(decoder.decode(b"", final=True))
    stream.seek(0)
    western = not undefined and characters <= MAX_SHARE_OF_UTF_8 * invalid and in_runs <= high / 2
    return WINDOWS_1252 if invalid and western else UTF_8


def is_unicode(text: str) -> bool:
    """Return whether a text has no surrogates, which stand for invalid bytes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def before_wrong_decoding(text: str) -> str:
    """Return the original of a `text` whose UTF-8 was decoded as Windows-1252 or Latin-1; empty if it was not.

    >>> before_wrong_decoding("MÃ¼ller"), before_wrong_decoding("Müller")
    ('Müller', '')
    """
    for encoding in () if text.isascii() else (WINDOWS_1252, "latin-1"):
        with suppress(UnicodeError):
            return text.encode(encoding).decode("utf-8")
    return ""


def as_utf_8(stream: IO[bytes], *, name: str, on_note: OnNote) -> IO[bytes]:
    """Return the text in UTF-8; `on_note` is called if it had another encoding."""
    encoding = encoding_of(stream)
    if encoding == UTF_8:
        return stream
    on_note(f"{name} was {NOTES[encoding]}")
    return io.BufferedReader(_Recoded(stream, encoding), BLOCK)


class _Recoded(io.RawIOBase):
    """The bytes of a text in UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream = stream
        # A lone surrogate of UTF-16 stays invalid in UTF-8, so that only its row is rejected.
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass" if encoding == UTF_16 else "strict")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        while not self._ready:
            block = self._stream.read(BLOCK)
            self._ready = self._decoder.decode(block, final=not block).encode("utf-8", "surrogatepass")
            if not block:
                break
        count = min(len(view), len(self._ready))
        view[:count], self._ready = self._ready[:count], self._ready[count:]
        return count
