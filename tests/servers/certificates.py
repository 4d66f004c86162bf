"""A private authority and a server certificate signed by it, made with the openssl program (3.0 or newer)."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DAYS = "2"


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """Paths of the PEM files: the authority's certificate, the server's certificate and its private key."""

    authority: Path
    certificate: Path
    key: Path

    def copy_to(self, folder: Path) -> None:
        """Copies what a server needs, under the same names."""
        for file in (self.authority, self.certificate, self.key):
            shutil.copy(file, folder)


def find_openssl() -> str | None:
    """The openssl program, None if there is none."""
    return shutil.which("openssl")


def make_certificates(folder: Path) -> Certificates:
    """Makes an authority that nobody trusts by default and a certificate for 127.0.0.1 and localhost in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, authority_key = folder / "authority.crt", folder / "authority.key"
    certificate, key = folder / "server.crt", folder / "server.key"
    _make_certificate(
        authority,
        authority_key,
        name="Authority of one test",
        extensions=["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"],
    )
    _make_certificate(
        certificate,
        key,
        name="localhost",
        extensions=[
            "basicConstraints=critical,CA:FALSE",
            "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "extendedKeyUsage=serverAuth,clientAuth",  # nodes are also each other's clients
        ],
        signed_by=["-CA", str(authority), "-CAkey", str(authority_key)],
    )
    return Certificates(authority=authority, certificate=certificate, key=key)


def _make_certificate(
    certificate: Path, key: Path, *, name: str, extensions: Sequence[str], signed_by: Sequence[str] = ()
) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-days", DAYS, "-subj", f"/CN={name}", *signed_by]
    for extension in extensions:
        command += ["-addext", extension]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl made no certificate (3.0 or newer is needed): {done.stderr}")
