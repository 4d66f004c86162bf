"""The dashboard of the pipelines: the stream, and the re-embed on schedule."""

from deploy.observe.panels import Dashboard, Panel, Query, Row
from deploy.observe.shared_panels import FIRING, ONE, RATE, processes, quantile

LAG = f"sum(max by (partition) (similarity_lag_messages{{{ONE}}}))"
SLOW = [(10.0, "orange"), (60.0, "red")]
BEHIND = [(1000.0, "orange")]
LOST = [(1.0, "red")]

NOW = Row(
    "Now",
    [
        Panel(
            kind="stat",
            title="Workers",
            says="Processes of the stream that answer Prometheus. Alert: StreamDown.",
            queries=[Query(f'sum(up{{job="stream", {ONE}}})')],
            unit="none",
            thresholds=[(1, "green")],
            colour="red",
            width=4,
        ),
        Panel(
            kind="stat",
            title="Messages",
            says="Messages settled: in the index, or among the dead letters.",
            queries=[Query(f"sum(rate(similarity_messages_total{{{ONE}}}{RATE}))")],
            unit="cps",
            width=4,
        ),
        Panel(
            kind="stat",
            title="Waiting",
            says="Messages of the topic that are not read yet. Alerts: StreamLagGrowing, StreamNotConsuming.",
            queries=[Query(f"{LAG} or vector(0)")],
            unit="short",
            thresholds=BEHIND,
            width=4,
        ),
        Panel(
            kind="stat",
            title="Delay (p95)",
            says="One company in twenty becomes searchable later than this after its message. Alert: StreamSlow.",
            queries=[Query(quantile(0.95, "similarity_delay_seconds", ONE))],
            unit="s",
            thresholds=SLOW,
            width=4,
        ),
        Panel(
            kind="stat",
            title="Dead letters of an hour",
            says="Messages that could not be taken in the last hour. Alert: StreamDeadLetters.",
            queries=[Query(f'sum(increase(similarity_messages_total{{{ONE}, end="dead"}}[1h]))')],
            unit="short",
            thresholds=LOST,
            decimals=0,
            width=4,
        ),
        FIRING,
    ],
)

MESSAGES = Row(
    "Messages",
    [
        Panel(
            title="Messages by end",
            says="Applied: now in the index. Unchanged: it was before. Superseded: a newer one is. Dead: not taken.",
            queries=[Query(f"sum by (end) (rate(similarity_messages_total{{{ONE}}}{RATE}))", "{{end}}")],
            unit="cps",
            stacked=True,
        ),
        Panel(
            title="Waiting by partition",
            says="What each partition has left, as of its last reading. Alerts: StreamLagGrowing, StreamNotConsuming.",
            queries=[
                Query(f"max by (partition) (similarity_lag_messages{{{ONE}}})", "partition {{partition}}"),
            ],
            unit="short",
            thresholds=BEHIND,
        ),
        Panel(
            title="Delay",
            says="From a message's time to its being in the index, but for the refresh. Alert: StreamSlow.",
            queries=[
                Query(quantile(part, "similarity_delay_seconds", ONE), f"p{round(100 * part)}") for part in (0.5, 0.95)
            ],
            unit="s",
            thresholds=SLOW,
        ),
    ],
)

EMBEDDING = Row(
    "Embedding and writing",
    [
        Panel(
            title="Texts",
            says="Texts that the encoder read, and vectors taken over because the text was the same.",
            queries=[
                Query(f"sum(rate(similarity_embedded_texts_total{{{ONE}}}{RATE}))", "embedded"),
                Query(f"sum(rate(similarity_reused_vectors_total{{{ONE}}}{RATE}))", "reused"),
            ],
            unit="cps",
            stacked=True,
        ),
        Panel(
            title="Messages of a batch",
            says="The larger, the better the encoder is used. Small ones at a high rate: raise --bundle-seconds.",
            queries=[
                Query(quantile(part, "similarity_batch_messages", ONE), f"p{round(100 * part)}") for part in (0.5, 0.95)
            ],
            unit="none",
        ),
        Panel(
            title="Time of a batch",
            says="From the encoder to the store's answer.",
            queries=[
                Query(quantile(part, "similarity_batch_seconds", ONE), f"p{round(100 * part)}") for part in (0.5, 0.95)
            ],
            unit="s",
        ),
    ],
)

FAULTS = Row(
    "Faults",
    [
        Panel(
            title="Store and Kafka away",
            says="Changes sent again because the index did not take them; readings that found Kafka away. "
            "Alerts: StreamStoreAway, StreamKafkaAway.",
            queries=[
                Query(f"sum(rate(similarity_retries_total{{{ONE}}}{RATE}))", "index"),
                Query(f"sum(rate(similarity_source_failures_total{{{ONE}}}{RATE}))", "Kafka"),
            ],
            unit="cps",
        ),
        Panel(
            title="Dead letters",
            says="In the last hour. pipelines.replay --dry-run says what died of what. Alert: StreamDeadLetters.",
            queries=[Query(f'sum(increase(similarity_messages_total{{{ONE}, end="dead"}}[1h]))', "dead letters")],
            unit="short",
            thresholds=LOST,
        ),
        Panel(
            title="Deleted before read",
            says="Messages that retention deleted before the stream had read them, in the last hour. "
            "Alert: StreamLostOffsets.",
            queries=[Query(f"sum(increase(similarity_lost_offsets_total{{{ONE}}}[1h]))", "lost")],
            unit="short",
            thresholds=LOST,
        ),
    ],
)

# Where the schedule does not run these are empty: that is a profile of its own.
REEMBED = Row(
    "Re-embed on schedule",
    [
        Panel(
            kind="stat",
            title="Last run",
            says="How the last scheduled run ended. Alerts: ReembedFailed, ReembedRefused.",
            queries=[
                Query(
                    '3 * max(similarity_reembed_last{end="failed"}) + 2 * max(similarity_reembed_last{end="refused"})'
                    ' + max(similarity_reembed_last{end="done"})'
                )
            ],
            unit="none",
            thresholds=[(2, "orange"), (3, "red")],
            words=[(0, "none yet"), (1, "done"), (2, "refused"), (3, "failed")],
            width=6,
        ),
        Panel(
            kind="stat",
            title="Under way",
            says="Whether a run is under way.",
            queries=[Query("max(similarity_reembed_running)")],
            unit="none",
            words=[(0, "no"), (1, "yes")],
            width=6,
        ),
        Panel(
            kind="stat",
            title="Next run",
            says="When the next run begins; in the past while one is under way. Alert: ReembedOverdue.",
            queries=[Query("1000 * min(similarity_reembed_due_timestamp_seconds)")],
            unit="dateTimeFromNow",
            width=6,
        ),
        Panel(
            kind="stat",
            title="Last one that was done",
            says="Since the process started.",
            queries=[Query("1000 * max(similarity_reembed_success_timestamp_seconds > 0)")],
            unit="dateTimeFromNow",
            width=6,
        ),
        Panel(
            title="Runs of a day",
            says="By how they ended. Refused: the gate found the new model worse, or it cannot hold all documents.",
            queries=[Query("sum by (end) (increase(similarity_reembed_runs_total[1d]))", "{{end}}")],
            unit="short",
            width=24,
        ),
    ],
)

PIPELINES = Dashboard(
    uid="similarity-pipelines",
    title="Pipelines",
    says="What streams in and how it ends; the re-embed on schedule. docs/dashboards.md says how to read it.",
    instances="similarity_embedded_texts_total",
    rows=[NOW, MESSAGES, EMBEDDING, FAULTS, REEMBED, processes("stream|reembed")],
)
