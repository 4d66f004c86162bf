"""The options of jobs. Unknown options are passed to Beam and its runner unchanged."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, PortableOptions, StandardOptions
from apache_beam.runners.runner import create_runner

from pipelines.arguments import amount, count, days, name_of, port, same_named
from pipelines.prism import forgive_unknown_progress, is_installed
from pipelines.sources.kafka_reader import OnLost, Start
from pipelines.transforms import BATCH_MESSAGES
from pipelines.worker_settings import WorkerSettings
from similarity.errors import InvalidInput
from similarity.ingest.delivery import PATIENCE_SECONDS
from similarity.ingest.records import Columns

SECONDS_OF_A_STREAM = 10 * 365 * 24 * 3600
# Offsets are committed when a checkpoint is complete; without checkpoints they are never committed.
CHECKPOINTS, CHECKPOINT_MS = "--checkpointing_interval", 5_000
SAVEPOINT = "--savepoint_path"
FINISH_BUNDLES = "--finish_bundle_before_checkpointing"
# Runners that submit a job to a job server, usually for Flink.
BY_JOB_SERVER = ("PortableRunner", "FlinkRunner")
HAVE_MORE_OPTIONS = (*BY_JOB_SERVER, "SparkRunner")
# Bounded jobs run in this process; a stream on one machine runs on Prism.
IN_PROCESS, ONE_MACHINE = "FnApiRunner", "PrismRunner"
INSTALLED_PRISM = "pipelines.prism.InstalledPrismRunner"
DEFAULT_DEAD_LETTERS = "dead-letters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of messages: files that match patterns or, without patterns, a Kafka topic.

    `once`: read only the messages that the source contains when the job starts.
    """

    files: tuple[str, ...] = ()
    topic: str = ""
    once: bool = False
    group: str = "similarity"
    start: Start = "earliest"
    on_lost: OnLost = "fail"

    @property
    def bounded(self) -> bool:
        """Whether a job that reads this source ends by itself."""
        return self.once or bool(self.files)

    @property
    def job_name(self) -> str:
        """The name of a job that reads the topic: the same at each start, with characters that runners allow."""
        return re.sub("[^a-z0-9]+", "-", f"similarity-{self.topic}-{self.group}".lower()).rstrip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The options of `pipelines.stream`; see `pipelines.stream --help`."""

    source: Source
    worker_settings: WorkerSettings
    columns: Columns
    dead_letters: str
    dead_letter_topic: str
    keep_dead_letters: float
    batch_messages: int
    bundle_messages: int
    bundle_seconds: float
    patience: float
    stalled_after: float
    metrics_port: int | None


def add_work_options(parser: ArgumentParser) -> None:
    """Add the options of every job: the index, the bundles and the threads."""
    add = parser.add_argument_group("index and encoder").add_argument
    add("--index", default="", help="index file, or https://HOST:9200/NAME [SIMILARITY_INDEX]")
    add("--bundles", default="", help="folder of the index's bundles, the same for all workers")
    add("--threads", type=count, help="encoder threads of each worker process [all cores]")


def add_column_options(parser: ArgumentParser) -> None:
    """Add the options that map columns of records to fields and attributes."""
    repeated: dict[str, Any] = {"action": "append", "default": []}
    add = parser.add_argument_group("columns").add_argument
    add("--column", metavar="FIELD=COLUMN", help="column of a field (repeatable)", **repeated)
    attribute = "column to keep as a fact; TYPE is number or ordinal=LOW,...,HIGH; text withdraws it (repeatable)"
    add("--attribute", metavar="NAME[:TYPE][=COLUMN]", help=attribute, **repeated)
    add("--size", metavar="NAME", default="", help="which attribute is the size of a company")


def add_stream_options(parser: ArgumentParser) -> None:
    """Add the options of `pipelines.stream`."""
    add = parser.add_argument_group("source (name one)").add_argument
    files = "CSV, TSV, TXT, JSON, JSONL, Excel or Parquet; also s3://, gs://"
    add("--files", action="extend", nargs="+", metavar="PATTERN", help=files)
    add("--kafka-topic", metavar="TOPIC", help="SIMILARITY_KAFKA_ variables name the brokers and the login")
    add = parser.add_argument_group("reading").add_argument
    add("--once", action="store_true", help="read up to the current end of the topic, then end")
    add("--kafka-group", default="similarity", help="consumer group whose offsets are committed [similarity]")
    add("--kafka-start", choices=get_args(Start), default="earliest", help="start of a group without offsets")
    lost = "if retention deleted unread messages: fail, or continue at the earliest that is left [fail]"
    add("--kafka-lost", choices=get_args(OnLost), default="fail", help=lost)
    add("--bundle-messages", type=count, default=1_000, help="maximum between commits [1000]")
    add("--bundle-seconds", type=amount, default=1.0, help="maximum between commits [1]")
    add_column_options(parser)
    add = parser.add_argument_group("writing").add_argument
    add("--metrics-port", type=port, help="port of the Prometheus metrics of each worker process")
    add("--dead-letters", default="", metavar="FOLDER", help="folder of dead letters [dead-letters]")
    add("--dead-letter-topic", default="", metavar="TOPIC", help="Kafka topic of dead letters, instead of a folder")
    add("--keep-dead-letters", type=days, default=90.0, metavar="DAYS", help="remove older dead letters at start [90]")
    add("--batch-messages", type=count, default=BATCH_MESSAGES, help="maximum number encoded at once [1024]")
    add("--patience", type=amount, default=PATIENCE_SECONDS, help="seconds to retry a write that fails [600]")
    add("--stalled-after", type=amount, default=120.0, help="seconds without progress until a restart [120]")
    add_work_options(parser)


def stream_options(given: Namespace) -> StreamOptions:
    """Return the options of the command line.

    Raises:
        InvalidInput: the options contradict each other.
    """
    if given.dead_letters and given.dead_letter_topic:
        raise InvalidInput("dead letters go to a folder or to a topic: give --dead-letters or --dead-letter-topic")
    taken = {
        **same_named(given, StreamOptions),
        "dead_letters": given.dead_letters or ("" if given.dead_letter_topic else DEFAULT_DEAD_LETTERS),
        "source": source_of(given),
        "worker_settings": WorkerSettings(**same_named(given, WorkerSettings)),
        "columns": Columns.from_pairs(given.column, given.attribute, given.size),
    }
    return StreamOptions(**taken)


def source_of(given: Namespace) -> Source:
    """Return the source that the options name.

    Raises:
        InvalidInput: no source, or both are named.
    """
    if bool(given.files) == bool(given.kafka_topic):
        raise InvalidInput("name one source: --files PATTERN or --kafka-topic TOPIC")
    return Source(
        files=tuple(given.files or ()),
        topic=given.kafka_topic or "",
        once=given.once,
        group=given.kafka_group,
        start=given.kafka_start,
        on_lost=given.kafka_lost,
    )


def beam_options(rest: Sequence[str], *, bounded: bool, job_name: str = "") -> PipelineOptions:
    """Return Beam's options from the remaining arguments, with a suitable runner unless one is named.

    `job_name` is the name of the job unless the arguments contain one.

    Raises:
        InvalidInput: an option or the runner is unknown, or a streaming job should start from a savepoint.
    """
    options = PipelineOptions([*rest, *([] if bounded else _for_flink(rest))])
    _require_known(rest)
    if not bounded:
        # The number of seconds after which the SDK stops listening to the runner; the default is a minute.
        options.view_as(PortableOptions).job_server_timeout = SECONDS_OF_A_STREAM
    cloud = options.view_as(GoogleCloudOptions)
    cloud.job_name = cloud.job_name or job_name or None
    standard = options.view_as(StandardOptions)
    if not standard.runner:
        standard.runner = IN_PROCESS if bounded else ONE_MACHINE
    if standard.runner == ONE_MACHINE:
        forgive_unknown_progress()
        if is_installed(options):
            standard.runner = INSTALLED_PRISM
    standard.streaming = not bounded
    return options


def _require_known(rest: Sequence[str]) -> None:
    """Refuse unknown options, which Beam only logs and ignores. Runners with a job server may have further options."""
    given = PipelineOptions(list(rest))
    if "dry_run" in map(name_of, rest):  # an option of Dataflow, which other runners ignore: they would run the job
        raise InvalidInput("pipelines have no dry run; similarity generations reembed --dry-run shows the plan of one")
    if (runner := given.view_as(StandardOptions).runner or IN_PROCESS) in HAVE_MORE_OPTIONS:
        return
    try:
        create_runner(runner)
    except (ValueError, ImportError) as error:
        raise InvalidInput(f"--runner {runner} cannot be used: {error}") from error
    known = {f"--{name}" for name in given.get_all_options()}
    unknown = [word.partition("=")[0] for word in rest if name_of(word) and word.partition("=")[0] not in known]
    if unknown:
        raise InvalidInput(f"neither this command nor Beam has an option {unknown[0]}; --help lists the command's")


def _for_flink(rest: Sequence[str]) -> list[str]:
    """Return further options that a streaming job on Flink needs; Beam's parser does not know Flink's options."""
    named = {argument.partition("=")[0] for argument in rest}
    if SAVEPOINT in named:
        raise InvalidInput(
            f"a stream cannot start from {SAVEPOINT}: it continues at the committed offsets. A savepoint fits only the "
            "transforms that wrote it, and may be older than these offsets"
        )
    if PipelineOptions(list(rest)).view_as(StandardOptions).runner not in BY_JOB_SERVER:
        return []
    # A checkpoint inside a Beam bundle holds the bundle's output back until the next bundle ends (BEAM-6733). No bundle
    # follows the impulse that starts a source, so without FINISH_BUNDLES such a job would read nothing.
    needed = {CHECKPOINTS: f"{CHECKPOINTS}={CHECKPOINT_MS}", FINISH_BUNDLES: FINISH_BUNDLES}
    return [option for name, option in needed.items() if name not in named]
