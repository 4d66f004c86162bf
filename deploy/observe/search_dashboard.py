"""The dashboard of the search service."""

from deploy.observe.panels import Dashboard, Panel, Query, Row
from deploy.observe.shared_panels import FIRING, ONE, RATE, none, processes, quantile

ASKED = f'{ONE}, route!~"-|/healthz|/readyz"'
# Without what is much work by nature: as in the alert SearchSlow.
QUICK = (
    f'{ONE}, route!~"-|/healthz|/readyz|/similar/batch|/map.*|/match|/companies/bulk|/companies/.+/erasure|'
    '/feedback/.+"'
)
REFUSED = f'search_rejected_total{{{ONE}, reason=~"shed|overloaded"}}'

SHARE_OF_ERRORS = (
    f'(sum(rate(search_request_seconds_count{{{ASKED}, status=~"5.."}}{RATE})) or vector(0))'
    f" / sum(rate(search_request_seconds_count{{{ASKED}}}{RATE}))"
)
ERRORS = [(0.01, "orange"), (0.05, "red")]
SLOW = [(0.5, "orange"), (1.0, "red")]


NOW = Row(
    "Now",
    [
        Panel(
            kind="stat",
            title="Processes",
            says="Processes of the service that answer Prometheus. Alert: SearchDown.",
            queries=[Query(f'sum(up{{job="search", {ONE}}})')],
            unit="none",
            thresholds=[(1, "green")],
            colour="red",
            width=4,
        ),
        Panel(
            kind="stat",
            title="Requests",
            says="Requests that reached a route, without health checks.",
            queries=[Query(f"sum(rate(search_request_seconds_count{{{ASKED}}}{RATE}))")],
            unit="reqps",
            width=4,
        ),
        Panel(
            kind="stat",
            title="Failed",
            says="Share of the requests that were answered 5xx. Alert: SearchErrors.",
            queries=[Query(SHARE_OF_ERRORS)],
            unit="percentunit",
            thresholds=ERRORS,
            decimals=2,
            width=4,
        ),
        Panel(
            kind="stat",
            title="99th percentile",
            says="One request in a hundred takes longer; without batches, maps, lists of matches. Alert: SearchSlow.",
            queries=[Query(quantile(0.99, "search_request_seconds", QUICK))],
            unit="s",
            thresholds=SLOW,
            width=4,
        ),
        Panel(
            kind="stat",
            title="Refused as full",
            says="Requests refused because every place was taken. For long: alert SearchShedding.",
            queries=[Query(f"sum(rate({REFUSED}{RATE})) or vector(0)")],
            unit="reqps",
            thresholds=[(0.01, "orange")],
            width=4,
        ),
        FIRING,
    ],
)

REQUESTS = Row(
    "Requests",
    [
        Panel(
            title="Requests by route",
            says="Route templates; health checks and what reached no route are left out.",
            queries=[
                Query(
                    f"sum by (method, route) (rate(search_request_seconds_count{{{ASKED}}}{RATE}))",
                    "{{method}} {{route}}",
                )
            ],
            unit="reqps",
            stacked=True,
        ),
        Panel(
            title="Answers by status",
            says="0 is a client that hung up. 404 and 422 are the callers' doing, 5xx is ours.",
            queries=[Query(f"sum by (status) (rate(search_request_seconds_count{{{ASKED}}}{RATE}))", "{{status}}")],
            unit="reqps",
            stacked=True,
        ),
        Panel(
            title="Share of 5xx",
            says="Alert: SearchErrors.",
            queries=[Query(SHARE_OF_ERRORS, "5xx")],
            unit="percentunit",
            thresholds=ERRORS,
        ),
        Panel(
            title="Time to answer",
            says="From arrival to the end of the answer; without batches, maps, lists of matches. Alert: SearchSlow.",
            queries=[
                Query(quantile(part, "search_request_seconds", QUICK), f"p{round(100 * part)}")
                for part in (0.5, 0.95, 0.99)
            ],
            unit="s",
            thresholds=SLOW,
        ),
        Panel(
            title="Time to answer by route (p95)",
            says="Which route is slow.",
            queries=[Query(quantile(0.95, "search_request_seconds", ASKED, by="route"), "{{route}}")],
            unit="s",
        ),
        Panel(
            title="Refused by reason",
            says="Requests refused before any work, by the problem's name (docs/problems.md); shed: by first bytes.",
            queries=[
                Query(f"sum by (reason) (rate(search_rejected_total{{{ONE}}}{RATE})) or {none('reason')}", "{{reason}}")
            ],
            unit="reqps",
            stacked=True,
        ),
    ],
)

PLACES = Row(
    "Places",
    [
        Panel(
            title="Places taken",
            says="Requests being worked on: quick ones of SIMILARITY_SERVICE_AT_ONCE, heavy ones of HEAVY_AT_ONCE.",
            queries=[Query(f"sum by (gate) (search_inside{{{ONE}}})", "{{gate}}")],
            unit="none",
        ),
        Panel(
            title="Waiting for a place",
            says="Requests in the queue (SIMILARITY_SERVICE_QUEUE); when it is full, the rest is refused.",
            queries=[Query(f"sum by (gate) (search_waiting{{{ONE}}})", "{{gate}}")],
            unit="none",
        ),
        Panel(
            title="Under way",
            says="Requests under way in each process, waiting ones too.",
            queries=[Query(f"search_in_flight{{{ONE}}}", "{{instance}}")],
            unit="none",
        ),
    ],
)

PARTS = Row(
    "Index and encoder",
    [
        Panel(
            title="Time of the index (p95)",
            says="One call of the index, by kind of call.",
            queries=[Query(quantile(0.95, "search_index_seconds", ONE, by="call"), "{{call}}")],
            unit="s",
        ),
        Panel(
            title="Calls of the index",
            says="How often the index is asked, by kind of call.",
            queries=[Query(f"sum by (call) (rate(search_index_seconds_count{{{ONE}}}{RATE}))", "{{call}}")],
            unit="cps",
            stacked=True,
        ),
        Panel(
            title="Time of the encoder",
            says="One call of the encoder: for free text that is not in the cache, and for writes.",
            queries=[
                Query(quantile(part, "search_encoder_seconds", ONE), f"p{round(100 * part)}") for part in (0.5, 0.95)
            ],
            unit="s",
        ),
        Panel(
            title="Failures of index and encoder",
            says="Calls that raised. UnknownGeneration now and then is a swap. Alerts: SearchIndexFailing, "
            "SearchEncoderFailing.",
            queries=[
                Query(
                    f"sum by (part, error) (rate(search_part_failures_total{{{ONE}}}{RATE})) or {none('part')}",
                    "{{part}} {{error}}",
                )
            ],
            unit="cps",
            stacked=True,
        ),
        Panel(
            title="Answered from memory",
            says="Share of the questions to a cache that it answered: vectors of free words, descriptions taken apart.",
            queries=[
                Query(
                    f'sum by (cache) (rate(search_cache_requests_total{{{ONE}, result="hit"}}{RATE}))'
                    f" / sum by (cache) (rate(search_cache_requests_total{{{ONE}}}{RATE}))",
                    "{{cache}}",
                )
            ],
            unit="percentunit",
            most=1,
        ),
        Panel(
            title="Taking requests",
            says="1; 0 from the moment a process was told to stop. Alert: SearchNotAccepting.",
            queries=[Query(f"search_accepting{{{ONE}}}", "{{instance}}")],
            unit="none",
            most=1,
        ),
    ],
)


SEARCH = Dashboard(
    uid="similarity-search",
    title="Search service",
    says="Requests, refusals, index and encoder of the search service. docs/dashboards.md says how to read it.",
    instances="search_accepting",
    rows=[NOW, REQUESTS, PLACES, PARTS, processes("search")],
)
