"""The command `similarity pairs`, which downloads labelled pairs for training from a service."""

import json
import os
from collections import Counter
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from similarity.cli.http import UrlOption, connected, service_address
from similarity.errors import InvalidInput
from similarity.formats.whole_file import whole_file
from similarity.settings import Settings

OTHER_FORMATS = (".csv", ".tsv", ".xlsx", ".parquet")


def pairs(
    file: Annotated[Path, typer.Argument(help="The JSONL file to write")],
    companies: Annotated[
        Path | None,
        typer.Option(help="Also write the ids of their companies, one a line, for training.export"),
    ] = None,
    url: UrlOption = None,
) -> None:
    """Write what people accepted and rejected as labelled pairs, which `training.train --pairs FILE` reads.

    The service is asked for them: --url, else SIMILARITY_URL; the key in SIMILARITY_API_KEY needs the scope
    `feedback`. With `--companies`, `training.export --companies-trained-on` can keep them with the new bundle, so that
    the gate does not judge it by companies that it was trained on.
    """
    from similarity.index.sqlite.files import refuse_database
    from similarity.upkeep.audit import refuse_audit_record

    address = service_address(url, index=None)
    if address is None:
        raise InvalidInput("feedback is stored by the service; give its URL with --url http://HOST:8080")
    if file.suffix.lower() in OTHER_FORMATS:
        raise InvalidInput(f"the pairs are JSON lines; name the file {file.with_suffix('.jsonl')}")
    outputs = [file] if companies is None else [file, companies]
    for each in outputs:
        refuse_database(each)
    refuse_audit_record(Settings.from_environment(os.environ), *outputs)
    with connected(address) as client:
        rows = client.pairs()
    lines = [json.dumps(asdict(row), default=datetime.isoformat, ensure_ascii=False) + "\n" for row in rows]
    _write(file, lines)
    if companies is not None:
        _write(
            companies, [f"{each}\n" for each in sorted({each for row in rows for each in (row.anchor_id, row.hit_id)})]
        )
    labels = Counter(row.label or "unlabelled" for row in rows)
    counts = ", ".join(f"{number:,} {label}" for label, number in sorted(labels.items()))
    typer.echo(f"{len(rows):,} pair{'' if len(rows) == 1 else 's'}: {counts or 'none yet'}")


def _write(file: Path, lines: list[str]) -> None:
    """Write a file whole or not at all; a device, such as /dev/stdout, is written to directly."""
    content = "".join(lines).encode()
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(content)
        else:
            with whole_file(file) as stream:
                stream.write(content)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}") from error
