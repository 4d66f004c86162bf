"""Moves an index to a new model while it is searched and written to; the embedding runs as a Beam job.

    python -m pipelines.reembed --bundle models/NEW --judged judged.tsv --index https://search:9200/companies
    python -m pipelines.reembed --models FOLDER --cron '0 3 * * 6' --judged judged.tsv ...

The steps, and that a killed run goes on where it was, are those of `similarity.generations.reembed`;
this process takes them and holds the lease. Only the backfill is a job: the ids are cut into ranges,
and each worker fills the ranges it is given from the live generation into the candidate. What a worker
could not do, or what changed meanwhile, this process finds and does itself after it.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.shared import Shared

from pipelines.arguments import amount, amount_or_zero, count, parse, port
from pipelines.console import say
from pipelines.metrics import NAMESPACE, counted
from pipelines.options import add_work_options, beam_options, workplace_of
from pipelines.schedule import End, RunMetrics, cron_trigger, newest_bundle, run_on_schedule
from pipelines.workplace import OpenWorkplace, Workplace
from similarity.bundle import ModelBundle
from similarity.company import utc_now
from similarity.errors import InvalidInput, SimilarityError
from similarity.generations import gate
from similarity.generations.filling import Filled, Filler, IdRange, Pace, id_ranges
from similarity.generations.first import new_generation
from similarity.generations.plan import documents_in, plan
from similarity.generations.reembed import FillPass, Options, ReembedReport, reembed
from similarity.index.bundle_store import keep_bundle
from similarity.index.protocol import CompanyIndex, Generation, GenerationState

RANGE_DOCUMENTS = 5_000
"""Of one range: minutes of work, so that workers end at about the same time and a killed one repeats little."""

COUNTER = "reembed_"
COUNTED = ("documents", "applied", "failed", "encoded")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedOptions:
    """What `pipelines.reembed` is asked to do; `--help` says what each is."""

    workplace: Workplace
    judged: Path | None
    trained_on: Path | None = None
    promote: bool = True
    compact: bool = False
    max_rate: float | None = None
    wait: float = 600.0
    range_documents: int = RANGE_DOCUMENTS


def build(pipeline: beam.Pipeline, ranges: Sequence[IdRange], filling: "FillRange") -> "beam.PCollection[int]":
    """Fills all ranges; how many documents each wrote."""
    # A batch job whose state is in the index: a shuffle only spreads the ranges over the workers.
    return pipeline | beam.Create(list(ranges)) | beam.Reshuffle() | "Fill" >> beam.ParDo(filling)


class FillRange(beam.DoFn):
    """IdRange -> how many documents were written to the generation `target` from `source`."""

    def __init__(self, workplace: Workplace, *, source: Generation, target: Generation, max_rate: float | None) -> None:
        super().__init__()
        self._workplace = workplace
        self._source = source
        self._target = target
        self._max_rate = max_rate
        self._shared = Shared()

    def setup(self) -> None:
        """Opens the index, and the encoder where vectors are not simply copied."""
        self._place: OpenWorkplace = self._shared.acquire(self._workplace.open)
        self._pace = Pace(self._max_rate)

    def process(self, ids: IdRange) -> Iterator[int]:
        """Fills one range. Doing it again finds nothing left to do."""
        copied = self._source.encoder_id == self._target.encoder_id
        filler = Filler(
            index=self._place.index,
            source=self._source,
            target=self._target,
            encoder=None if copied else self._place.encoders[self._target.encoder_id],
            now=utc_now(),
            pace=self._pace,
        )
        filled = filler.fill(ids)
        for name in COUNTED:
            Metrics.counter(NAMESPACE, f"{COUNTER}{name}").inc(getattr(filled, name))
        yield filled.applied


def job_pass(options: ReembedOptions, to_beam: PipelineOptions) -> FillPass:
    """A pass of the backfill: as a job while much is lacking, else in this process."""

    def fill(filler: Filler) -> Filled:
        lacking = documents_in(filler.index, filler.source) - documents_in(filler.index, filler.target)
        if lacking <= options.range_documents:
            return filler.fill()
        ranges = id_ranges(filler.index, filler.source.name, documents=options.range_documents)
        filling = FillRange(options.workplace, source=filler.source, target=filler.target, max_rate=options.max_rate)
        pipeline = beam.Pipeline(options=to_beam)
        build(pipeline, ranges, filling)
        result = pipeline.run()
        result.wait_until_finish()
        counts = counted(result)
        # What a job counts is for people. Whether something is lacking still, this process looks up itself.
        filled = filler.fill()
        for name in COUNTED:
            setattr(filled, name, getattr(filled, name) + counts.get(f"{COUNTER}{name}", 0))
        filler.on_documents(counts.get(f"{COUNTER}documents", 0))
        return filled

    return fill


def run_once(bundle: ModelBundle, options: ReembedOptions, to_beam: PipelineOptions) -> ReembedReport:
    """One re-embed, from the lease to the promotion.

    Raises:
        SimilarityError: as `similarity.generations.reembed.reembed`.
    """
    place = options.workplace.open()
    wanted = new_generation(bundle, now=utc_now(), taken=[known.name for known in place.index.generations()])
    # Before the candidate is there: writers, and this job's workers, take its encoder from the store.
    keep_bundle(bundle, place.store)
    encoder = place.encoders[bundle.encoder_id] if plan(place.index, wanted).encodes else None
    how = steps(
        place.index, options, to_beam, trained_on=options.trained_on or gate.companies_trained_on(bundle.folder)
    )
    return reembed(place.index, wanted, encoder=encoder, now=utc_now(), options=how)


def refuse_rolled_back(index: CompanyIndex, bundle: ModelBundle) -> None:
    """A schedule must not make live again by itself what somebody went back from.

    Raises:
        InvalidInput: the bundle's generation was live and is not any more, and its bundle is not live in another one.
    """
    if index.live().bundle_id == bundle.bundle_id:
        return
    for generation in index.generations():
        if generation.state is GenerationState.PREVIOUS and generation.bundle_id == bundle.bundle_id:
            raise InvalidInput(
                f"the newest bundle, {bundle.folder}, was live before as {generation.name} and was rolled back; put a "
                "newer one there, or name this one with --bundle"
            )


def steps(
    index: CompanyIndex, options: ReembedOptions, to_beam: PipelineOptions, *, trained_on: Path | None
) -> Options:
    """How the run behaves, and what it says."""
    return Options(
        gate=gate.gate_from_file(index, options.judged, trained_on=trained_on) if options.judged else None,
        promote=options.promote,
        compact=options.compact,
        max_docs_per_second=options.max_rate,
        writers_timeout=options.wait,
        fill_pass=job_pass(options, to_beam),
        on_step=lambda name, detail: say(f"{name:<10} {detail}"),
    )


def succeeded(report: ReembedReport, options: ReembedOptions) -> bool:
    """Whether a run came as far as it was asked to."""
    return report.promoted or not (options.promote or report.rejected)


def told(report: ReembedReport) -> str:
    """What a run came to, for a person."""
    if report.rejected:
        company_id, reason = next(iter(report.rejected.items()))
        return (
            f"not live: {len(report.rejected):,} documents cannot be stored in {report.generation}, "
            f"the first {company_id!r}: {reason}"
        )
    if report.gate is not None and not report.gate.passed:
        return f"not live: {report.generation} does not pass the gate: {'; '.join(report.gate.reasons)}"
    if not report.promoted:
        return f"{report.generation} is filled; to make it live: similarity generations promote {report.generation}"
    return f"{report.generation} is live; back with: similarity generations rollback"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Re-embed all companies with a new model, judge it, make it live.",
        epilog="Other options go to Beam: --runner, --job_endpoint, ... Without a runner, it runs in this process.",
    )
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--bundle", type=Path, help="folder of the new model bundle")
    model.add_argument("--models", type=Path, metavar="FOLDER", help="folder of bundles: the newest is taken")
    judging = parser.add_mutually_exclusive_group(required=True)
    judging.add_argument("--judged", type=Path, help="judged pairs (TSV: anchor, candidate, grade) never trained on")
    judging.add_argument(
        "--without-gate", action="store_true", help="go live unjudged: nothing keeps a worse model out"
    )
    parser.add_argument(
        "--trained-on",
        type=Path,
        help="ids of companies that were trained on: not judged by [what training.export left beside the bundle]",
    )
    parser.add_argument("--no-promote", dest="promote", action="store_false", help="stop before it goes live")
    parser.add_argument("--compact", action="store_true", help="merge it on disk before it goes live")
    parser.add_argument("--max-rate", type=amount, help="documents a second, at most, of each worker")
    parser.add_argument(
        "--range-documents", type=count, default=RANGE_DOCUMENTS, help="that a worker takes at once [5000]"
    )
    parser.add_argument("--wait", type=amount_or_zero, default=600.0, help="seconds for writers to notice it [600]")
    parser.add_argument(
        "--cron", metavar="EXPRESSION", help="run at these times instead of once, such as '0 3 * * sat'"
    )
    parser.add_argument("--zone", default="UTC", help="time zone of --cron [UTC]")
    parser.add_argument("--metrics-port", type=port, help="with --cron: serve Prometheus' metrics of the runs there")
    add_work_options(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the options; runs once, or on schedule."""
    parser = _parser()
    given, rest = parse(parser, arguments)
    if given.metrics_port is not None and not given.cron:
        parser.error("--metrics-port serves the metrics of runs by --cron; leave it out, or give --cron")
    options = ReembedOptions(
        workplace=workplace_of(given),
        judged=given.judged,
        trained_on=given.trained_on,
        promote=given.promote,
        compact=given.compact,
        max_rate=given.max_rate,
        wait=given.wait,
        range_documents=given.range_documents,
    )

    def run() -> ReembedReport:
        if given.bundle:
            bundle = ModelBundle.load(given.bundle)
        else:
            bundle = newest_bundle(given.models)
            place = options.workplace.open()
            refuse_rolled_back(place.index, bundle)
        report = run_once(bundle, options, beam_options(rest, bounded=True))
        say(told(report))
        return report

    def run_and_go_on() -> End:
        try:
            return "done" if succeeded(run(), options) else "refused"
        except SimilarityError as error:
            say(f"this run failed: {error}; the next one goes on where it was")
            return "failed"

    try:
        beam_options(rest, bounded=True)  # what is wrong there is said now, not at the first of the times
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
