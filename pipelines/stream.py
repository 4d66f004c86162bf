r"""Companies stream in: read, embed, write; what cannot be taken goes to the dead letters.

    python -m pipelines.stream --files 'new/*.jsonl' --index similarity.db
    python -m pipelines.stream --kafka-topic companies --index https://search:9200/companies
    python -m pipelines.stream --kafka-topic companies --runner PortableRunner --job_endpoint beam:8099 \
        --flink_master flink:8081 ...

Everything is delivered at least once and applied once: a message is acknowledged (its offset committed,
its file moved) when it is in the index or among the dead letters, and repeating it changes nothing.
docs/pipelines.md says what each runner keeps of this when its processes are killed.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from datetime import datetime, timedelta

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineResult

from pipelines.arguments import parse
from pipelines.console import say
from pipelines.dead_letters import WriteDeadLetters, remove_expired
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
from pipelines.sources.files import ReadFiles
from pipelines.sources.folder import ReadFolder
from pipelines.sources.kafka import ReadKafka
from pipelines.sources.pubsub import ReadPubSub
from pipelines.transforms import Ingest, Ingested
from pipelines.watch import (
    Log,
    Progress,
    StallWatch,
    Stop,
    StreamFailed,
    cancel,
    seconds_to_wait,
    stop_on_signals,
    watch,
)
from pipelines.workplace import Workplace
from similarity.company import utc_now
from similarity.errors import IndexUnavailable, SimilarityError
from similarity.generations.first import ensure_generation, promote_first
from similarity.index.bundle_store import bundle_for, keep_bundle, store_folder
from similarity.index.opening import open_index
from similarity.kafka import KafkaSettings, KafkaUnavailable, group_positions
from similarity.upkeep.audit import AuditRecord, audit_target, audited, system_user

# A job that was submitted is on Flink some seconds later.
SECONDS_TO_SUBMIT, SECONDS_TO_APPEAR = 60.0, 15.0
NOT_ENDED = (
    "Beam's job server was asked to end the job, but on Flink that ends nothing: cancel it there, and next time name "
    "--flink_master=HOST:8081 (Flink's REST API), with which this command ends its jobs itself"
)


def build(pipeline: beam.Pipeline, options: StreamOptions, *, now: datetime) -> Ingested:
    """Adds the whole path from the source to the index. `now` is the start of the run."""
    messages = pipeline | "Read" >> reading(options, now=now)
    ingested: Ingested = messages | "Ingest" >> Ingest(
        options.workplace,
        columns=options.columns,
        batch_messages=options.batch_messages,
        patience=options.patience,
        metrics_port=options.metrics_port,
    )
    _ = ingested.dead | "KeepDeadLetters" >> keeping(options)
    return ingested


def reading(options: StreamOptions, *, now: datetime) -> beam.PTransform:
    """The source that the options name."""
    source = options.source
    most, longest = options.bundle_messages, options.bundle_seconds
    if source.kind == "files":
        return ReadFiles(source.names, now=now)
    [name] = source.names
    if source.kind == "folder":
        return ReadFolder(name, until_end=source.bounded, max_messages=most, max_seconds=longest)
    if source.kind == "kafka-topic":
        settings = KafkaSettings.from_environment(os.environ)
        return ReadKafka(
            settings,
            topic=name,
            group=source.group,
            until_end=source.bounded,
            start=source.start,
            on_lost=source.on_lost,
            max_messages=most,
            max_seconds=longest,
        )
    return ReadPubSub(name)


def keeping(options: StreamOptions) -> beam.PTransform:
    """Where the options send dead letters."""
    if options.dead_letter_topic:
        return WriteDeadLetters.to_topic(KafkaSettings.from_environment(os.environ), options.dead_letter_topic)
    return WriteDeadLetters.to_folder(options.dead_letters)


def prepare(workplace: Workplace, environ: Mapping[str, str], *, now: datetime) -> None:
    """Makes sure there is a generation to write to: an index that is new gets its first one.

    Raises:
        SimilarityError: the index cannot be opened, or its bundle is damaged.
    """
    settings = workplace.settings(environ)
    with closing(open_index(settings.index, environ, create=True)) as index:
        if index.write_targets():
            return
        store = store_folder(settings.index, settings.bundles)
        bundle = bundle_for(index, store, chosen=settings.bundle)
        keep_bundle(bundle, store)
        ensure_generation(index, bundle, now=now)


def go_live(workplace: Workplace, environ: Mapping[str, str]) -> None:
    """Makes a first generation live as soon as it holds something."""
    settings = workplace.settings(environ)
    with closing(open_index(settings.index, environ)) as index:
        audit = AuditRecord(audit_target(settings))
        for target in index.write_targets():
            promote_first(audited(index, audit, who=system_user()), target)


def run(options: StreamOptions, to_beam: PipelineOptions, *, environ: Mapping[str, str], log: Log) -> None:
    """Runs the job to its end, or for as long as it is let. One that stands still is started anew.

    Raises:
        SimilarityError: something cannot be used as given.
        StreamFailed: a stream ended by itself.
    """
    prepare(options.workplace, environ, now=utc_now())
    if options.dead_letters:
        remove_expired(options.dead_letters, keep=timedelta(days=options.keep_dead_letters), now=utc_now())
    if options.source.bounded:
        result = started(options, to_beam)
        result.wait_until_finish()
        go_live(options.workplace, environ)
        log(summary(result))
        return
    with stop_on_signals() as stop:
        keep_running(options, to_beam, stop, environ=environ, log=log)


def keep_running(
    options: StreamOptions, to_beam: PipelineOptions, stop: Stop, *, environ: Mapping[str, str], log: Log
) -> None:
    """Starts the job, and starts it anew whenever it stands still, until it should stop.

    Raises:
        StreamFailed: the job ended by itself, or cannot be ended.
        FlinkUnavailable: nor by Flink.
    """
    flink, name, in_vain = master_of(to_beam), job_name_of(to_beam), 0
    if flink and flink.end(name):
        log(f"ended the job {name} that an earlier command had left on Flink")
    while not stop.asked:
        began, result = time.monotonic(), started(options, to_beam)
        stalls = StallWatch(seconds_to_wait(options.stalled_after, starts_in_vain=in_vain))
        log("running; stop it with Ctrl-C or SIGTERM")
        stalled = watch(result, stop, stalls, progress=progress_of(options, environ), clock=time.monotonic)
        if stalled:
            log(f"nothing was settled for {stalls.seconds:.0f} seconds though there is a backlog")
        in_vain = 0 if stalls.moved else in_vain + 1
        cancel(result)
        if flink:
            on_its_way = max(0.0, began + SECONDS_TO_SUBMIT - time.monotonic())
            flink.end(name, expect_seconds=min(on_its_way, SECONDS_TO_APPEAR))
        elif to_beam.view_as(StandardOptions).runner in BY_JOB_SERVER:
            raise StreamFailed(NOT_ENDED)
        if stalled:
            log("starting anew")


def job_name_of(to_beam: PipelineOptions) -> str:
    """What the job is called."""
    return str(to_beam.view_as(GoogleCloudOptions).job_name)


def started(options: StreamOptions, to_beam: PipelineOptions) -> PipelineResult:
    """Submits the job. With a copy of the options, because runners change theirs."""
    pipeline = beam.Pipeline(options=deepcopy(to_beam))
    build(pipeline, options, now=utc_now())
    return pipeline.run()


def progress_of(options: StreamOptions, environ: Mapping[str, str]) -> Callable[[], Progress | None]:
    """How far the job is: what the group has committed of a topic. None where the source cannot tell, or is away.

    Each look also makes a first generation live. While the index is away the job has to wait, so it is None then.
    """

    def look() -> Progress | None:
        try:
            go_live(options.workplace, environ)
            return of_source(options.source, environ)
        except (IndexUnavailable, KafkaUnavailable):
            return None

    return look


def of_source(source: Source, environ: Mapping[str, str]) -> Progress | None:
    """What a source says of its reader; None where it cannot tell.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    if source.kind != "kafka-topic":
        return None
    [topic] = source.names
    positions = group_positions(KafkaSettings.from_environment(environ), topic=topic, group=source.group)
    return Progress(
        acknowledged=sum(position.committed for position in positions),
        backlog=sum(position.lag for position in positions),
    )


def summary(result: PipelineResult) -> str:
    """How many messages ended how, in a line."""
    counts = counted(result)
    ends = {name.removeprefix("messages_"): count for name, count in counts.items() if name.startswith("messages_")}
    told = ", ".join(f"{count:,} {end}" for end, count in sorted(ends.items())) or "none"
    return f"{sum(ends.values()):,} messages: {told}; {counts.get('embedded_texts', 0):,} texts embedded"


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the options and runs the job."""
    parser = argparse.ArgumentParser(
        description="Stream companies into an index.", epilog="Other options go to Beam: --runner, --job_endpoint, ..."
    )
    add_stream_options(parser)
    given, rest = parse(parser, arguments)
    try:
        options = stream_options(given)
        source = options.source
        to_beam = beam_options(rest, bounded=source.bounded, job_name="" if source.bounded else source.job_name)
        run(options, to_beam, environ=os.environ, log=say)
    except (SimilarityError, StreamFailed) as error:
        sys.exit(f"refused: {error}")


if __name__ == "__main__":
    main()
