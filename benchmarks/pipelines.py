"""Measures the cost of a pipeline beside its encoder.

python -m benchmarks.pipelines --companies FILE

All ways get the same descriptions and number of encoder threads, and take turns in rounds of one run:

    encoder      TextEncoder.encode over all texts: the rate that the others are compared with
    pipeline     pipelines.stream --files on FnApiRunner into a new embedded index: read, decode, look up, embed, write
    inference    the same reading, then Beam's RunInference with default batching; nothing is looked up or written

The claim: the pipeline reaches 80 % of the bare encoder. A job's start (imports, graph, workers) is measured with
a file of one company and subtracted, because it takes as long for a thousand companies as for a million.
`benchmarks.pipelines_latency` measures how soon a message can be found.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.ml.inference.base import ModelHandler, PredictionResult, RunInference
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.options import beam_options
from pipelines.sources.files import ReadFiles
from pipelines.stream import ensure_write_target
from pipelines.transforms import Ingest
from pipelines.worker_settings import WorkerSettings
from similarity.bundle import ModelBundle, seed_folder
from similarity.company import utc_now
from similarity.encoder import TextEncoder
from similarity.index.sqlite import SqliteIndex
from similarity.ingest import messages
from similarity.ingest.files import read_rows
from similarity.ingest.messages import Message
from similarity.ingest.records import VersionedCompany
from similarity.text import embedding_text

ROUNDS = 5
PROMISE = 0.8


class EncoderHandler(ModelHandler[str, PredictionResult, TextEncoder]):  # type: ignore[misc]  # Beam is not checked
    """The encoder for RunInference, with only the methods that RunInference requires."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._threads = threads

    def load_model(self) -> TextEncoder:
        """Return an encoder of the shipped bundle."""
        return TextEncoder(ModelBundle.load(seed_folder()), threads=self._threads)

    def run_inference(
        self, batch: Sequence[str], model: TextEncoder, inference_args: dict[str, Any] | None = None
    ) -> Iterator[PredictionResult]:
        """Yield a vector for each text."""
        yield from (
            PredictionResult(example=text, inference=vector)
            for text, vector in zip(batch, model.encode(batch), strict=True)
        )


def text_of(message: Message) -> str:
    """Return the text of a message that the encoder reads."""
    change = messages.decode(message).change
    return embedding_text(change.company) if isinstance(change, VersionedCompany) else ""


def companies_file(source: Path, folder: Path, *, count: int) -> Path:
    """Write the first `count` companies of a file as JSON lines; return the new file."""
    path = folder / f"{count}.jsonl"
    rows = (row.record for row in read_rows(source))
    path.write_text("".join(json.dumps(dict(next(rows))) + "\n" for _ in range(count)), encoding="utf-8")
    return path


def by_encoder(path: Path, threads: int) -> float:
    """Return the seconds to encode all texts, after a warm-up."""
    texts = [text_of(Message(position="", value=row.raw, time=utc_now())) for row in read_rows(path)]
    encoder = TextEncoder(ModelBundle.load(seed_folder()), threads=threads)
    encoder.encode(texts[:64])
    began = time.perf_counter()
    encoder.encode(texts)
    return time.perf_counter() - began


def by_pipeline(path: Path, threads: int) -> float:
    """Return the seconds to fill a new index with all companies."""
    with tempfile.TemporaryDirectory() as folder:
        worker_settings = WorkerSettings(index=f"{folder}/index.db", threads=threads)
        ensure_write_target(worker_settings, {}, now=utc_now())
        began = time.perf_counter()
        with beam.Pipeline(options=beam_options([], bounded=True)) as pipeline:
            _ = pipeline | ReadFiles([str(path)], now=utc_now()) | Ingest(worker_settings)
        seconds = time.perf_counter() - began
        with closing(SqliteIndex(Path(folder) / "index.db")) as index:
            [generation] = index.generations()
            assert index.stats(generation.name).companies == sum(1 for _ in read_rows(path))
    return seconds


def by_inference(path: Path, threads: int) -> float:
    """Return the seconds to read the file and encode all texts."""
    began = time.perf_counter()
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        _ = (
            pipeline
            | ReadFiles([str(path)], now=utc_now())
            | beam.Map(text_of)
            | RunInference(EncoderHandler(threads))
            | beam.combiners.Count.Globally()
        )
    return time.perf_counter() - began


WAYS: dict[str, Callable[[Path, int], float]] = {
    "encoder": by_encoder,
    "pipeline": by_pipeline,
    "inference": by_inference,
}


def throughput(source: Path, *, count: int, threads: int) -> None:
    """Print texts per second of each way, and its share of the encoder's rate in the same round."""
    with tempfile.TemporaryDirectory() as place:
        one, many = (companies_file(source, Path(place), count=size) for size in (1, count))
        rates: dict[str, list[float]] = {name: [] for name in WAYS}
        by_pipeline(one, threads)  # the first job of a process also imports
        by_inference(one, threads)
        for number in range(ROUNDS):
            for name, seconds_of in WAYS.items():
                start = 0.0 if name == "encoder" else seconds_of(one, threads)
                seconds = seconds_of(many, threads) - start
                rates[name].append((count - 1) / seconds)
                print(f"round {number + 1}: {name:<10} {rates[name][-1]:7.1f} texts/s, start {start:.1f} s", flush=True)
    print(f"\n{count:,} companies, {threads} threads\n")
    print("| | texts/s (median) | of the encoder | rounds |\n| --- | --- | --- | --- |")
    for name, found in rates.items():
        shares = np.array(found) / np.array(rates["encoder"])
        print(f"| {name} | {median(found):.0f} | {median(shares):.2f} | {min(shares):.2f} to {max(shares):.2f} |")
    reached = median(np.array(rates["pipeline"]) / np.array(rates["encoder"]))
    print(f"\npromise (pipeline / encoder >= {PROMISE}): {'kept' if reached >= PROMISE else 'MISSED'}")


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--companies", type=Path, required=True, help="file of companies")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    print(
        f"processor {platform.processor() or platform.machine()}, cpus {os.cpu_count()}, beam {beam.__version__}, "
        f"python {platform.python_version()}, date {datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f}"
    )
    throughput(given.companies, count=given.count, threads=given.threads)


if __name__ == "__main__":
    main()
