"""Import of existing vectors into a generation, for encoders that do not run here.

    generation = Generation(name=..., encoder_id="external-openai-3-small", dimension=1536, ...)
    index.create_generation(generation)

The user states which encoder made the vectors: the generation's `encoder_id` can be any id that no other encoder
has. The file is Parquet (`vector`: a list or fixed-size list of floats) or JSONL (`vector`: a list of numbers),
with the columns of the company, as for any other load.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

import numpy as np

from similarity.company import DeletedCompany, EmbeddedCompany, Vector
from similarity.errors import (
    EncoderMismatch,
    GenerationConflict,
    IndexUnavailable,
    InvalidCompany,
    InvalidInput,
    UnknownGeneration,
)
from similarity.generations.gate import generation_named
from similarity.index.protocol import CompanyIndex, Generation, GenerationState, WriteOutcome, WriteResult
from similarity.ingest.file_columns import KnownAttributes, file_columns
from similarity.ingest.files import column_names, read_rows
from similarity.ingest.former_names import remember_changed_names
from similarity.ingest.load import CHUNK_ROWS, OnRows
from similarity.ingest.records import (
    Change,
    Columns,
    ParsedRecord,
    VersionedCompany,
    lost_to_invalid_values,
    parse_record,
    removed_fields,
)
from similarity.ingest.rejects import LoadReport, RejectsFile, note_warnings
from similarity.ingest.repeated_rows import RepeatedRows
from similarity.ingest.rows import Row
from similarity.preparation.language import detect_language
from similarity.text import text_hash

VECTOR_COLUMN = "vector"
NORM_TOLERANCE = 0.01


def import_vectors(
    path: Path,
    *,
    index: CompanyIndex,
    generation: str,
    columns: Columns,
    rejects: RejectsFile,
    now: datetime,
    before_writes: Callable[[], None] = lambda: None,
    on_rows: OnRows = lambda rows: None,
) -> LoadReport:
    """Write every company with its vector to one generation; invalid rows go to `rejects`, each with its reason.

    Only this generation is written; `import_target` checks it. A vector whose norm is within 1 % of 1 (rounding) is
    normalised; any other is rejected. `now`: the start of the run, which is the version of rows without an event
    time. `before_writes`: called once, before the first valid row is written. After an interruption, import the file
    again; writing a row twice has no further effect.

    A document's `text_hash` also covers its vector: the text that an external encoder read is not known, and a
    corrected vector of the same version must be written.

    Raises:
        InvalidInput: the file cannot be read, lacks a column, or its first vector has another dimension
            than the generation. Nothing was written.
        UnknownGeneration: the generation does not exist; create it first.
        GenerationConflict: another command has begun to promote the generation; nothing more is written.
        IndexUnavailable: the store accepted no row of a chunk.
    """
    target = generation_named(index, generation)
    known = KnownAttributes.of_index(index)
    columns = file_columns(path, columns, known=known, others=[VECTOR_COLUMN]).columns
    _check_vectors(path, target)
    report = LoadReport()
    is_begun, repeated = False, RepeatedRows()

    def reject(row: Row, reason: str) -> None:
        readable = {name: value for name, value in row.record.items() if name != VECTOR_COLUMN}
        rejects.add(replace(row, record=readable), reason)

    rows = read_rows(path, on_note=report.notes.append)
    while chunk := list(islice(rows, CHUNK_ROWS)):
        report.rows += len(chunk)
        usable: list[tuple[Row, ParsedRecord, EmbeddedCompany | DeletedCompany]] = []
        for row in chunk:
            try:
                if row.unreadable:
                    raise InvalidCompany("row", row.unreadable)
                parsed = parse_record(row.record, columns=columns, now=now)
                usable.append((row, parsed, _document(row, parsed.change, target, repeated, now=now)))
            except InvalidCompany as error:
                report.outcomes[WriteOutcome.REJECTED] += 1
                reject(row, str(error))
            else:
                note_warnings(row, parsed, columns=columns, rejects=rejects, report=report)
        if usable and not is_begun:
            before_writes()
            is_begun = True
        stored = index.get(generation, {document.id for _, _, document in usable})
        _check_state(index, target, rows=report.rows - len(chunk))
        results = _write(index, generation, [document for _, _, document in usable])
        for (row, parsed, document), result in zip(usable, results, strict=True):
            report.outcomes[result.outcome] += 1
            before = stored.get(document.id) if result.outcome is WriteOutcome.APPLIED else None
            if before is not None and isinstance(document, EmbeddedCompany):
                report.removed_values.update(removed_fields(before.company, document.company, row.record, columns))
                report.lost_to_invalid_values.update(lost_to_invalid_values(before.company, parsed))
            if result.outcome is WriteOutcome.REJECTED:
                reject(row, result.reason)
        on_rows(len(chunk))
    return report


def import_target(index: CompanyIndex, name: str, *, encoder_id: str) -> Generation:
    """Return the generation to import into.

    Raises:
        UnknownGeneration: the generation does not exist.
        EncoderMismatch: it has vectors of another encoder.
        GenerationConflict: it is live or was live: the other generations would lack the imported companies.
    """
    generation = generation_named(index, name)
    if generation.encoder_id != encoder_id:
        raise EncoderMismatch(
            f"generation {name} has vectors of encoder {generation.encoder_id}, not of {encoder_id}; import into a new "
            "generation, without --into"
        )
    if generation.state not in (GenerationState.BUILDING, GenerationState.CANDIDATE):
        raise GenerationConflict(
            f"generation {name} is {generation.state}; import all companies into a new generation, without --into, and "
            "promote it"
        )
    return generation


def vector_dimension(path: Path) -> int:
    """Return the dimension of the first vector of a file, for the generation to create.

    Raises:
        InvalidInput: the file cannot be read, or no row of it has a vector.
    """
    for row in read_rows(path):
        vector = row.record.get(VECTOR_COLUMN)
        if isinstance(vector, list) and vector:
            return len(vector)
    raise InvalidInput(
        f"no row of {path} has a list of numbers in the column {VECTOR_COLUMN!r}; give vectors as Parquet or JSONL"
    )


def unit_vector(value: object, *, dimension: int) -> Vector:
    """Return the vector of a row as float32 `[dimension]` with norm 1.

    Raises:
        InvalidCompany: it is not a list of `dimension` finite numbers, or its norm differs from 1 by more than 1 %.
    """
    try:
        vector = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        vector = np.array(None)
    # NumPy also reads true as 1 and "0.5" as 0.5.
    if vector.ndim != 1 or (isinstance(value, list) and any(isinstance(each, (bool, str)) for each in value)):
        raise InvalidCompany("vector", "must be a list of numbers")
    if len(vector) != dimension:
        raise InvalidCompany("vector", f"has {len(vector)} numbers; this generation holds {dimension}")
    norm = math.hypot(*vector)
    if not math.isfinite(norm):
        raise InvalidCompany("vector", "holds values that are not finite numbers")
    if abs(norm - 1) > NORM_TOLERANCE:
        raise InvalidCompany(
            "vector",
            f"has norm {norm:.4g}, not 1; divide each vector by its Euclidean norm before the import "
            "(numpy: v / numpy.linalg.norm(v)), because companies are compared by cosine",
        )
    return (vector / norm).astype(np.float32)


def _check_vectors(path: Path, generation: Generation) -> None:
    present = column_names(path)
    if VECTOR_COLUMN not in present:
        raise InvalidInput(f"there is no column {VECTOR_COLUMN!r}; the file has the columns: {', '.join(present)}")
    found = vector_dimension(path)
    if found != generation.dimension:
        raise InvalidInput(
            f"the vectors of {path} have {found} numbers, and generation {generation.name} holds "
            f"{generation.dimension}; create a generation of the file's dimension"
        )


def _check_state(index: CompanyIndex, target: Generation, *, rows: int) -> None:
    """Raise GenerationConflict if the generation is no longer in the state in which the import began."""
    state = generation_named(index, target.name).state
    if state is not target.state:
        raise GenerationConflict(
            f"generation {target.name} was {target.state} when this import began and is now {state}: another command "
            f"promotes it; the import stopped after {rows:,} rows. See: similarity generations list; if it is live, "
            "import all companies into a new generation, without --into, else repeat this import with "
            f"--into {target.name}"
        )


def _document(
    row: Row, change: Change, generation: Generation, repeated: RepeatedRows, *, now: datetime
) -> EmbeddedCompany | DeletedCompany:
    document = change if isinstance(change, DeletedCompany) else _embedded(row, change, generation, now=now)
    # After the vector is checked, because a row with an invalid vector must not count as an earlier row.
    if conflict := repeated.conflict(row.number, change):
        raise InvalidCompany("id", conflict)
    return document


def _embedded(row: Row, change: VersionedCompany, generation: Generation, *, now: datetime) -> EmbeddedCompany:
    company = change.company
    vector = unit_vector(row.record.get(VECTOR_COLUMN), dimension=generation.dimension)
    return EmbeddedCompany(
        company=company,
        version=change.version,
        text_hash=text_hash(company.description + vector.tobytes().hex()),
        encoder_id=generation.encoder_id,
        vector=vector,
        embedded_at=now,
        language=detect_language(company.description),
    )


def _write(
    index: CompanyIndex, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]
) -> list[WriteResult]:
    # Also compare with the live generation: names that only it holds would be lost when it is replaced and retired.
    for name in {generation, *(target.name for target in index.write_targets())}:
        with suppress(UnknownGeneration):
            remember_changed_names(index.ledger, documents, index.get(name, {document.id for document in documents}))
    results = index.upsert(generation, documents)
    if results and all(result.outcome is WriteOutcome.FAILED for result in results):
        raise IndexUnavailable(
            f"the index accepted none of {len(results):,} rows ({results[0].reason}); import the file again later"
        )
    return results
