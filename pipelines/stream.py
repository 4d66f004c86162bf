r"""Beam job that reads changes of companies from a source, embeds the companies and writes them to the index.

    python -m pipelines.stream --files 'new/*.jsonl' --index similarity.db
    python -m pipelines.stream --kafka-topic companies --index https://search:9200/companies
    python -m pipelines.stream --kafka-topic companies --runner PortableRunner --job_endpoint beam:8099 \
        --flink_master flink:8081 ...

Messages that cannot be processed become dead letters. A message is acknowledged (its offset is committed) after it is
in the index or among the dead letters. It is delivered at least once, and a repeated delivery changes nothing.
docs/pipelines.md describes the guarantees of each runner if its processes are killed.
"""

import argparse
import os
import shlex
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import apache_beam as beam
import typer
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineResult

from pipelines.arguments import parse
from pipelines.dead_letters import remove_expired, write_to_folder, write_to_topic
from pipelines.flink import master_of
from pipelines.metrics import counted
from pipelines.options import (
    BY_JOB_SERVER,
    Source,
    StreamOptions,
    add_stream_options,
    beam_options,
    stream_options,
)
from pipelines.sources.files import ReadFiles, columns_of_files
from pipelines.sources.kafka import ReadKafka
from pipelines.transforms import DEAD, Ingest, Ingested
from pipelines.watch import (
    Log,
    Progress,
    StallWatch,
    StreamFailed,
    cancel,
    seconds_to_wait,
    stop_on_signals,
    watch,
)
from pipelines.worker_settings import WorkerSettings
from similarity.company import utc_now
from similarity.errors import IndexUnavailable, SimilarityError
from similarity.generations.new import ensure_generation, promote_first
from similarity.index.attributes import AttributeSchema
from similarity.index.bundle_store import bundle_for, keep_bundle, store_folder
from similarity.index.opening import open_index
from similarity.ingest.file_columns import KnownAttributes
from similarity.ingest.records import UNUSED, Columns
from similarity.kafka import KafkaSettings, KafkaUnavailable, group_positions
from similarity.upkeep.audit import AuditRecord, audit_target, audited, system_user

# A job appears in Flink's REST API only some seconds after its submission. Before the command cancels a job, it waits
# for the job until SECONDS_TO_SUBMIT after the submission, but never longer than SECONDS_TO_APPEAR.
SECONDS_TO_SUBMIT, SECONDS_TO_APPEAR = 60.0, 15.0
NOT_CANCELLED = (
    "the job may still be running on Flink, because Beam's job server does not cancel Flink jobs; cancel it in Flink. "
    "Start this command with --flink_master=HOST:8081 (Flink's REST API), and it cancels its jobs itself"
)
NO_TYPES = AttributeSchema()


def build(pipeline: beam.Pipeline, options: StreamOptions, *, now: datetime) -> Ingested:
    """Add all steps from the source to the index and the dead letters to `pipeline`. `now`: the start of the run."""
    messages = pipeline | "Read" >> source_transform(options, now=now)
    ingested: Ingested = messages | "Ingest" >> Ingest(
        options.worker_settings,
        columns=options.columns,
        batch_messages=options.batch_messages,
        patience=options.patience,
        metrics_port=options.metrics_port,
    )
    if options.dead_letter_topic:
        write = write_to_topic(KafkaSettings.from_environment(os.environ), options.dead_letter_topic)
    else:
        write = write_to_folder(options.dead_letters)
    _ = ingested.dead | "KeepDeadLetters" >> write
    return ingested


def source_transform(options: StreamOptions, *, now: datetime) -> beam.PTransform:
    """Return the transform that reads the source in the options: files or a Kafka topic."""
    source = options.source
    if source.files:
        return ReadFiles(source.files, now=now, columns=options.columns)
    return ReadKafka(
        KafkaSettings.from_environment(os.environ),
        topic=source.topic,
        group=source.group,
        until_end=source.once,
        start=source.start,
        on_lost=source.on_lost,
        max_messages=options.bundle_messages,
        max_seconds=options.bundle_seconds,
    )


def ensure_write_target(
    worker_settings: WorkerSettings, environ: Mapping[str, str], *, now: datetime, schema: AttributeSchema = NO_TYPES
) -> KnownAttributes:
    """Declare the types of attributes in the index. If it has no generation to write to, create its first one.

    Returns the attributes that the index knows.

    Raises:
        SimilarityError: the index cannot be opened, or its bundle is damaged.
    """
    settings = worker_settings.resolve(environ)
    with closing(open_index(settings.index, environ, create=True)) as index:
        audited(index, AuditRecord(audit_target(settings)), who=system_user()).declare(schema)
        if not index.write_targets():
            store = store_folder(settings.index, settings.bundles)
            bundle = bundle_for(index, store, chosen=settings.bundle)
            keep_bundle(bundle, store)
            ensure_generation(index, bundle, now=now)
        return KnownAttributes.of_index(index)


def promote_first_generation(worker_settings: WorkerSettings, environ: Mapping[str, str]) -> None:
    """Make the first generation of the index live if it contains companies. Otherwise, do nothing.

    Raises:
        IndexUnavailable: the store does not answer.
    """
    settings = worker_settings.resolve(environ)
    with closing(open_index(settings.index, environ)) as index:
        audit = AuditRecord(audit_target(settings))
        for generation in index.write_targets():
            promote_first(audited(index, audit, who=system_user()), generation)


def run(options: StreamOptions, pipeline_options: PipelineOptions, *, environ: Mapping[str, str], log: Log) -> int:
    """Run the job, and return the number of its dead letters, 0 for a streaming job.

    A bounded job ends when all input is processed. A streaming job runs until SIGTERM or Ctrl-C, and is restarted if
    it makes no progress.

    Raises:
        SimilarityError: an option or a setting is invalid, or the index, Kafka or Flink does not answer.
        StreamFailed: a streaming job ended by itself, or this command cannot cancel it.
    """
    known = ensure_write_target(options.worker_settings, environ, now=utc_now(), schema=options.columns.schema)
    if options.source.files:  # not for a topic: a message that is read again must have the same content
        columns = columns_of_files(options.source.files, options.columns, known=known, log=log)
        options = replace(options, columns=known.added_to(columns))
    if options.dead_letters:
        remove_expired(options.dead_letters, keep=timedelta(days=options.keep_dead_letters), now=utc_now())
    if options.source.bounded:
        result = submit_job(options, pipeline_options)
        result.wait_until_finish()
        promote_first_generation(options.worker_settings, environ)
        log(summary(result))
        dead = counted(result).get(f"messages_{DEAD}", 0)
        if dead and options.dead_letters:
            replay = f"python -m pipelines.replay --dead-letters {options.dead_letters} --dry-run"
            log(f"why they are dead: {replay}{renamed_columns(options.columns)}")
        return dead
    with stop_on_signals() as stop:
        keep_running(options, pipeline_options, stop, environ=environ, log=log)
    return 0


def keep_running(
    options: StreamOptions,
    pipeline_options: PipelineOptions,
    stop: threading.Event,
    *,
    environ: Mapping[str, str],
    log: Log,
) -> None:
    """Run the streaming job until `stop` is set. If it is stalled (see `StallWatch`), cancel and restart it.

    The time until a restart is `options.stalled_after`; it grows with each restart that did not help.

    Raises:
        StreamFailed: the job ended by itself, or this command cannot cancel it.
        FlinkUnavailable: Flink does not answer, or does not cancel the job.
    """
    flink, restarts_without_progress = master_of(pipeline_options), 0
    job_name = str(pipeline_options.view_as(GoogleCloudOptions).job_name)
    if flink and flink.end(job_name):
        log(f"cancelled the job {job_name} that an earlier command had left on Flink")
    while not stop.is_set():
        submitted_at, result = time.monotonic(), submit_job(options, pipeline_options)
        stalls = StallWatch(seconds_to_wait(options.stalled_after, restarts_without_progress=restarts_without_progress))
        log("running; stop it with Ctrl-C or SIGTERM")
        stalled = watch(
            result, stop, stalls, progress=lambda: promote_and_measure(options, environ), clock=time.monotonic
        )
        if stalled:
            log(f"no offset was committed for {stalls.seconds:.0f} seconds, although the topic has a backlog")
        restarts_without_progress = 0 if stalls.moved else restarts_without_progress + 1
        cancel(result)
        if flink:
            seconds_until_visible = max(0.0, submitted_at + SECONDS_TO_SUBMIT - time.monotonic())
            flink.end(job_name, expect_seconds=min(seconds_until_visible, SECONDS_TO_APPEAR))
        elif pipeline_options.view_as(StandardOptions).runner in BY_JOB_SERVER:
            raise StreamFailed(NOT_CANCELLED)
        if stalled:
            log("restarting the job")


def submit_job(options: StreamOptions, pipeline_options: PipelineOptions) -> PipelineResult:
    """Submit the job. It gets a copy of the Beam options, because runners modify them."""
    pipeline = beam.Pipeline(options=deepcopy(pipeline_options))
    build(pipeline, options, now=utc_now())
    return pipeline.run()


def renamed_columns(columns: Columns) -> str:
    """Return the options of the command line that name the columns which are not called like their fields."""
    kinds = (("--column", columns.fields), ("--attribute", columns.attributes))
    pairs = [(kind, name, column) for kind, each in kinds for name, column in each.items() if name != column]
    return "".join(f" {kind} {shlex.quote(f'{name}={column}'.rstrip(UNUSED))}" for kind, name, column in pairs)


def promote_and_measure(options: StreamOptions, environ: Mapping[str, str]) -> Progress | None:
    """Promote the first generation if it has companies, then return the progress of the job.

    If Kafka or the index is unavailable, returns None: the job makes no progress, and a restart would not help.
    """
    try:
        promote_first_generation(options.worker_settings, environ)
        return topic_progress(options.source, environ)
    except (IndexUnavailable, KafkaUnavailable):
        return None


def topic_progress(source: Source, environ: Mapping[str, str]) -> Progress:
    """Return the sums of the committed offsets and of the lag over the partitions of the source's topic.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    positions = group_positions(KafkaSettings.from_environment(environ), topic=source.topic, group=source.group)
    return Progress(
        acknowledged=sum(position.committed for position in positions),
        backlog=sum(position.lag for position in positions),
    )


def summary(result: PipelineResult) -> str:
    """Return one line with the number of messages by outcome."""
    counts = counted(result)
    outcomes = {name.removeprefix("messages_"): count for name, count in counts.items() if name.startswith("messages_")}
    outcome_text = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items())) or "none"
    warned = counts.get("warned_values", 0)
    return (
        f"{sum(outcomes.values()):,} messages: {outcome_text}; {counts.get('embedded_texts', 0):,} texts embedded"
        + (f"; {warned:,} values ignored or ambiguous" if warned else "")
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and run the job. The exit status is 1 if a row of a file became a dead letter."""
    parser = argparse.ArgumentParser(
        description="Stream companies into an index.", epilog="Other options go to Beam: --runner, --job_endpoint, ..."
    )
    add_stream_options(parser)
    given, rest = parse(parser, arguments)
    try:
        options = stream_options(given)
        source = options.source
        pipeline_options = beam_options(
            rest, bounded=source.bounded, job_name="" if source.bounded else source.job_name
        )
        dead = run(options, pipeline_options, environ=os.environ, log=partial(typer.echo, err=True))
    except (SimilarityError, StreamFailed) as error:
        sys.exit(f"refused: {error}")
    if dead and source.files:
        sys.exit(1)


if __name__ == "__main__":
    main()
