"""Re-embeds an index with a new model while it is searched and written to; the embedding runs as a Beam job.

    python -m pipelines.reembed --bundle models/NEW --judged judged.tsv --index https://search:9200/companies
    python -m pipelines.reembed --models FOLDER --cron '0 3 * * 6' --judged judged.tsv ...

The steps are those of `similarity.generations.reembed`, which also continues a killed run; this process runs them and
holds the lease. Only the backfill is a job: the ids are divided into ranges, and each worker copies ranges from the
live generation to the candidate. Afterwards this process fills the documents that failed or have changed meanwhile.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
import typer
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.shared import Shared

from pipelines.arguments import amount, amount_or_zero, count, parse, port, same_named
from pipelines.metrics import NAMESPACE, counted
from pipelines.options import add_work_options, beam_options
from pipelines.schedule import End, RunMetrics, cron_trigger, newest_bundle, run_on_schedule
from pipelines.worker_settings import WorkerResources, WorkerSettings
from similarity.bundle import ModelBundle
from similarity.company import utc_now
from similarity.errors import InvalidInput, SimilarityError
from similarity.generations import gate
from similarity.generations.filling import Filled, Filler, IdRange, Pace, id_ranges
from similarity.generations.new import new_generation
from similarity.generations.plan import documents_in, former_bundles, previous_generations
from similarity.generations.reembed import FillPass, Options, ReembedReport, reembed
from similarity.index.bundle_store import keep_bundle
from similarity.index.protocol import CompanyIndex, Generation

RANGE_DOCUMENTS = 5_000
"""Documents in a range: some minutes of work, so that workers end at about the same time and a retry repeats little."""

COUNTER = "reembed_"
COUNTED = ("documents", "applied", "failed", "encoded")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedOptions:
    """The options of `pipelines.reembed`; see `pipelines.reembed --help`."""

    worker_settings: WorkerSettings
    judged: Path | None
    trained_on: Path | None = None
    promote: bool = True
    compact: bool = False
    max_rate: float | None = None
    wait: float = 600.0
    range_documents: int = RANGE_DOCUMENTS


def build(pipeline: beam.Pipeline, ranges: Sequence[IdRange], filling: "FillRange") -> "beam.PCollection[int]":
    """Add the steps that fill all ranges to `pipeline`; return the number of documents that each range applied."""
    # The state of this batch job is in the index; the shuffle only distributes the ranges over the workers.
    return pipeline | beam.Create(list(ranges)) | beam.Reshuffle() | "Fill" >> beam.ParDo(filling)


class FillRange(beam.DoFn):
    """IdRange -> number of documents from the generation `source` that changed `target`."""

    def __init__(
        self, worker_settings: WorkerSettings, *, source: Generation, target: Generation, max_rate: float | None
    ) -> None:
        super().__init__()
        self._worker_settings = worker_settings
        self._source = source
        self._target = target
        self._max_rate = max_rate
        self._shared = Shared()

    def setup(self) -> None:
        """Open the index."""
        self._open: WorkerResources = self._shared.acquire(self._worker_settings.open)
        self._pace = Pace(self._max_rate)

    def process(self, ids: IdRange) -> Iterator[int]:
        """Fill one range; a repeated call writes only documents that are still missing."""
        copied = self._source.encoder_id == self._target.encoder_id
        filler = Filler(
            index=self._open.index,
            source=self._source,
            target=self._target,
            encoder=None if copied else self._open.encoders[self._target.encoder_id],
            now=utc_now(),
            pace=self._pace,
        )
        filled = filler.fill(ids)
        for name in COUNTED:
            Metrics.counter(NAMESPACE, f"{COUNTER}{name}").inc(getattr(filled, name))
        yield filled.applied


def job_pass(options: ReembedOptions, pipeline_options: PipelineOptions) -> FillPass:
    """Return a pass of the backfill: a job if more than one range of documents is missing, else in this process."""

    def fill(filler: Filler) -> Filled:
        missing = documents_in(filler.index, filler.source) - documents_in(filler.index, filler.target)
        if missing <= options.range_documents:
            return filler.fill()
        ranges = id_ranges(filler.index, filler.source.name, documents=options.range_documents)
        filling = FillRange(
            options.worker_settings, source=filler.source, target=filler.target, max_rate=options.max_rate
        )
        pipeline = beam.Pipeline(options=pipeline_options)
        build(pipeline, ranges, filling)
        result = pipeline.run()
        result.wait_until_finish()
        counts = counted(result)
        # The counters of a job are only informative; this pass finds and fills the documents that are still missing.
        filled = filler.fill()
        for name in COUNTED:
            setattr(filled, name, getattr(filled, name) + counts.get(f"{COUNTER}{name}", 0))
        filler.on_documents(counts.get(f"{COUNTER}documents", 0))
        return filled

    return fill


def run_once(bundle: ModelBundle, options: ReembedOptions, pipeline_options: PipelineOptions) -> ReembedReport:
    """Run one re-embed, from the lease to the promotion.

    Raises:
        SimilarityError: see `similarity.generations.reembed.reembed`.
    """
    resources = options.worker_settings.open()
    candidate = new_generation(resources.index, bundle, now=utc_now())
    # Before the candidate exists, because writers and the job's workers load its encoder from the store.
    keep_bundle(bundle, resources.store)
    encoder = resources.encoders[bundle.encoder_id]
    judge = None
    if options.judged:
        judge = gate.gate_from_file(
            resources.index, options.judged, trained_on=options.trained_on, store=resources.store
        )
    run_options = Options(
        gate=judge,
        promote=options.promote,
        compact=options.compact,
        max_docs_per_second=options.max_rate,
        writers_timeout=options.wait,
        fill_pass=job_pass(options, pipeline_options),
        on_step=lambda name, detail: typer.echo(f"{name:<10} {detail}", err=True),
    )
    return reembed(resources.index, candidate, encoder=encoder, now=utc_now(), options=run_options)


def refuse_former(index: CompanyIndex, bundle: ModelBundle) -> None:
    """Check that a scheduled run does not make a bundle live again that was replaced or rolled back.

    Raises:
        InvalidInput: the bundle was live before, and another one is live now.
    """
    if bundle.bundle_id in former_bundles(index):
        kept = (each for each in previous_generations(index) if each.bundle_id == bundle.bundle_id)
        again = next((f"promote {each.name}" for each in kept), f"reembed --bundle {bundle.folder}")
        raise InvalidInput(
            f"the bundle {bundle.folder} was live before, and was rolled back or replaced; add a newer bundle, or make "
            f"this one live again: similarity generations {again} --without-gate"
        )


def succeeded(report: ReembedReport, options: ReembedOptions) -> bool:
    """Return whether a run did what was requested: promoted the generation, or filled it with --no-promote."""
    return report.promoted or not (options.promote or report.rejected)


def summary(report: ReembedReport) -> str:
    """Return the result of a run in one sentence."""
    if report.rejected:
        company_id, reason = next(iter(report.rejected.items()))
        return (
            f"not live: {len(report.rejected):,} documents cannot be stored in {report.generation}, "
            f"the first {company_id!r}: {reason}"
        )
    if report.refusal:
        return f"not live: {report.refusal}"
    if not report.promoted:
        command = f"similarity generations promote {report.generation} --judged FILE"
        return f"{report.generation} is filled; to make it live: {command}"
    return f"{report.generation} is live; to go back: similarity generations rollback"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Re-embed all companies with a new model, and promote the new generation if it passes the gate.",
        epilog="Other options go to Beam: --runner, --job_endpoint, ... Without a runner, it runs in this process.",
    )
    add = parser.add_mutually_exclusive_group(required=True).add_argument
    add("--bundle", type=Path, help="folder of the new model bundle")
    add("--models", type=Path, metavar="FOLDER", help="folder of bundles; the newest one is used")
    add = parser.add_mutually_exclusive_group(required=True).add_argument
    add("--judged", type=Path, help="judged pairs of the gate (TSV: anchor, candidate, grade), never trained on")
    add("--without-gate", action="store_true", help="promote without a gate, even if the new model is worse")
    add = parser.add_argument
    trained_on = "ids of companies that were trained on, which the gate leaves out [the file beside the bundle]"
    add("--trained-on", type=Path, help=trained_on)
    add("--no-promote", dest="promote", action="store_false", help="fill the new generation, but do not promote it")
    add("--compact", action="store_true", help="merge the new generation on disk before it is promoted")
    add("--max-rate", type=amount, help="maximum number of documents per second and worker")
    add("--range-documents", type=count, default=RANGE_DOCUMENTS, help="documents that a worker takes at once [5000]")
    add("--wait", type=amount_or_zero, default=600.0, help="seconds until all writers must know the generation [600]")
    add("--cron", metavar="EXPRESSION", help="run at these times instead of once, for example '0 3 * * sat'")
    add("--zone", default="UTC", help="time zone of --cron [UTC]")
    add("--metrics-port", type=port, help="with --cron: port of the Prometheus metrics of the runs")
    add_work_options(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options; run once, or on a schedule."""
    parser = _parser()
    given, rest = parse(parser, arguments)
    if given.metrics_port is not None and not given.cron:
        parser.error("--metrics-port serves the metrics of scheduled runs; leave it out, or give --cron")
    worker_settings = WorkerSettings(**same_named(given, WorkerSettings))
    options = ReembedOptions(worker_settings=worker_settings, **same_named(given, ReembedOptions))

    def run() -> ReembedReport:
        bundle = ModelBundle.load(given.bundle) if given.bundle else newest_bundle(given.models)
        if given.models or given.cron:  # a single run of a named bundle is started by a person
            resources = worker_settings.open()  # a variable, because the index is closed when the object is deleted
            refuse_former(resources.index, bundle)
        report = run_once(bundle, options, beam_options(rest, bounded=True))
        typer.echo(summary(report), err=True)
        return report

    def run_and_go_on() -> End:
        try:
            return "done" if succeeded(run(), options) else "refused"
        except SimilarityError as error:
            typer.echo(f"this run failed: {error}; the next run continues it", err=True)
            return "failed"

    try:
        beam_options(rest, bounded=True)  # refuse invalid options now, not at the first scheduled run
        if given.cron:
            metrics = RunMetrics(cron_trigger(given.cron, zone=given.zone))
            if given.metrics_port is not None:
                metrics.serve(given.metrics_port)
            run_on_schedule(metrics.counted(run_and_go_on), given.cron, zone=given.zone)
        elif not succeeded(run(), options):
            sys.exit(1)
    except SimilarityError as error:
        sys.exit(f"refused: {error}")


if __name__ == "__main__":
    main()
