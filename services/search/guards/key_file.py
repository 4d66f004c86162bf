"""The file of API keys: the caller and the scopes of each key, with a hash in place of its secret.

A secret is `cs_ID_RANDOM`: ID is public and identifies the key, RANDOM is 256 random bits. They cannot be guessed, so
one round of SHA-256 is as safe as a slow hash, and delays no request.
"""

import hashlib
import os
import re
import secrets
import tempfile
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, ValidationError

from similarity.errors import InvalidInput
from similarity.formats.json_text import read_json

from .. import PROGRAM
from .callers import Caller, Scope

NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
SECRET = re.compile(r"cs_(?P<id>[0-9a-f]{12})_[A-Za-z0-9_-]{43}")
MAKE_A_KEY = f"{PROGRAM}.keys add NAME --scope read --file"
"""The command that makes a key; the path of the file of keys comes last."""
PRIVATE = 0o600


Time = Annotated[datetime, AfterValidator(lambda time: time if time.tzinfo else time.replace(tzinfo=UTC))]
"""A time with a zone; without one in the file it is UTC."""


class Key(BaseModel):
    """One key, without its secret. Several keys with one name are one caller, so that a key can be replaced."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern="^[0-9a-f]{12}$")
    name: str = Field(pattern=f"^{NAME.pattern}$")
    scopes: Annotated[frozenset[Scope], PlainSerializer(sorted)]
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    created: Time
    expires: Time | None = None

    @property
    def caller(self) -> Caller:
        """The caller that sends this key."""
        return Caller(name=self.name, scopes=self.scopes)

    def valid(self, now: datetime) -> bool:
        """Whether the key has not expired at `now`."""
        return self.expires is None or now < self.expires


class KeyFile(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(extra="forbid")

    keys: list[Key]


def new_key(name: str, scopes: Iterable[Scope], *, now: datetime, expires: datetime | None = None) -> tuple[Key, str]:
    """Return a new key and its secret, which is stored nowhere.

    Raises:
        InvalidInput: the name or the expiry cannot be used, or there is no scope.
    """
    allowed = frozenset(scopes)
    if not NAME.fullmatch(name):
        raise InvalidInput(f"the name {name!r} cannot be used; choose 1-64 letters, digits, '.', '_', '@' or '-'")
    if not allowed:
        raise InvalidInput(f"the key has no scope; give one or more of {', '.join(Scope)}")
    if expires is not None and expires <= now:
        raise InvalidInput(f"the key would have expired on {expires.date()}; choose a day to come")
    identity = secrets.token_hex(6)
    secret = f"cs_{identity}_{secrets.token_urlsafe(32)}"
    key = Key(id=identity, name=name, scopes=allowed, sha256=hashed(secret), created=now, expires=expires)
    return key, secret


def key_id(secret: str) -> str:
    """Return the public id in a secret."""
    return secret.split("_")[1]


def hashed(secret: str) -> str:
    """Return the stored form of a secret: its SHA-256, in hexadecimal."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> list[Key]:
    """Return the keys of a file, in its order.

    Raises:
        InvalidInput: the file is missing or unreadable, is not a file of keys, or has an id twice.
    """
    try:
        keys = KeyFile.model_validate(read_json(path.read_text(encoding="utf-8"))).keys
    except FileNotFoundError as error:
        raise InvalidInput(f"there is no file of keys {path}; make one with: {MAKE_A_KEY} {path}") from error
    except OSError as error:
        raise InvalidInput(f"the file of keys {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        # Without the value: it may be a secret.
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise InvalidInput(f"{path} is not a file of keys: {where}: {first['msg']}; {MAKE_A_KEY} makes one") from None
    except ValueError as error:
        raise InvalidInput(f"{path} is not a file of keys: it is not JSON") from error
    repeated = [key_id for key_id, count in Counter(key.id for key in keys).items() if count > 1]
    if repeated:
        raise InvalidInput(f"{path}: two keys have the same id {repeated[0]}; remove one")
    return keys


def write_keys(path: Path, keys: Iterable[Key]) -> None:
    """Replace the file, or the one that a symbolic link names, atomically; only its owner may read it."""
    path = Path(os.path.realpath(path))
    text = KeyFile(keys=list(keys)).model_dump_json(indent=2) + "\n"
    # A temporary file is private from the moment it exists.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(PRIVATE)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
