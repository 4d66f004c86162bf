"""What both dashboards have: parts of expressions, alerts that fire, processes."""

from deploy.observe.panels import Panel, Query, Row

ONE = 'instance=~"$instance"'
"""Of the processes that are chosen at the top of the page."""
RATE = "[$__rate_interval]"

FIRING = Panel(
    kind="stat",
    title="Alerts",
    says="Alerts that fire now, of all parts: Prometheus lists them at /alerts, docs/observing.md explains them.",
    queries=[Query('count(ALERTS{alertstate="firing"}) or vector(0)')],
    unit="none",
    thresholds=[(1, "red")],
    width=4,
)


def quantile(part: float, metric: str, labels: str, *, by: str = "") -> str:
    """The time that this part of the calls stayed under, for each value of the label `by`."""
    kept = f"le, {by}" if by else "le"
    return f"histogram_quantile({part}, sum by ({kept}) (rate({metric}_bucket{{{labels}}}{RATE})))"


def none(label: str) -> str:
    """A line at 0, so that what never happened is not taken for what is not measured."""
    return f'label_replace(vector(0), "{label}", "none", "", "")'


def processes(jobs: str) -> Row:
    """Memory, processor and files of the processes of these jobs (a pattern)."""
    these = f'job=~"{jobs}", {ONE}'
    return Row(
        "Processes",
        [
            Panel(
                title="Memory",
                says="Resident memory, and the container's limit. Alert: ProcessMemoryHigh.",
                queries=[
                    Query(f"process_resident_memory_bytes{{{these}}}", "{{job}} {{instance}}"),
                    Query(f'max(job:memory_limit_bytes{{job=~"{jobs}"}})', "limit"),
                ],
                unit="bytes",
                limit="limit",
            ),
            Panel(
                title="Processor time",
                says="Cores in use.",
                queries=[Query(f"rate(process_cpu_seconds_total{{{these}}}{RATE})", "{{job}} {{instance}}")],
                unit="none",
            ),
            Panel(
                title="Open files",
                says="Share of the files and connections that a process may have open. Alert: ProcessFilesHigh.",
                queries=[
                    Query(f"process_open_fds{{{these}}} / process_max_fds{{{these}}}", "{{job}} {{instance}}"),
                ],
                unit="percentunit",
                thresholds=[(0.8, "red")],
            ),
        ],
    )
