"""What commands need to query a service: its address is `--url`, else SIMILARITY_URL; its key, SIMILARITY_API_KEY.

The output is the same as for an index. There is no option for the key, because other users can list the arguments of
a process.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from similarity.cli.tables import Line, OutputFormat, because, show, show_ranking, skipped, understood, unread
from similarity.errors import InvalidInput
from similarity.settings import Settings

if TYPE_CHECKING:
    from similarity.client import Client
    from similarity.client.question import QuestionOptions
    from similarity.search.queries.question import Question

UrlOption = Annotated[
    str | None, typer.Option("--url", help="Ask the service at this address instead of an index [SIMILARITY_URL]")
]


def service_address(url: str | None, *, index: str | None) -> str | None:
    """Return the URL of the service, from option or environment; None if the command uses an index.

    Raises:
        InvalidInput: both options are given, or a SIMILARITY_ variable is invalid.
    """
    if url and index:
        raise InvalidInput("--url is for a service and --index for an index; give only one of them")
    return url or (None if index else Settings.from_environment(os.environ).url)


def similar_over_http(
    url: str,
    question: "Question",
    output: OutputFormat,
    *,
    exclude_lists: Sequence[str] = (),
    skip_unknown: bool = False,
) -> None:
    """Print the ranking of the service at `url`; print warnings on standard error.

    Raises:
        InvalidInput: a company is unknown, and `skip_unknown` is false.
    """
    with connected(url) as client:
        from similarity.client import Anchor

        options: QuestionOptions = {
            "negatives": [each.reference for each in question.negatives],
            "exclude": question.exclude,
            "exclude_lists": exclude_lists,
            "filters": question.filters,
            "rank": question.rank.value,
            "k": question.k,
            "reasons": question.explain,
        }
        if question.exact:
            options["resolve"] = "exact"
        if question.min_probability is not None:
            options["min_probability"] = question.min_probability
        ranking = client.similar(
            *(Anchor(company=each.company, text=each.text, segment=each.segment) for each in question.anchors),
            **options,
        )
    misses = [miss.detail or f"there is no company {miss.asked!r}" for miss in ranking.misses]
    left_out = skipped(misses, skip=skip_unknown)
    resolved = (*ranking.anchors, *ranking.negatives)
    show_ranking(
        [
            Line.of_hit(
                hit,
                hit.company.as_company(),
                because=None if hit.reason.phrases is None else because(hit.reason.moved, hit.reason.phrases),
            )
            for hit in ranking.hits
        ],
        output,
        anchors=[each.company for each in ranking.anchors if each.company],
        rank=question.rank,
        remarks=[
            *(
                understood(each.asked, each.company, each.confidence)
                for each in resolved
                if each.company and each.confidence < 1
            ),
            *left_out,
            *ranking.warnings,
            *unread(resolved, ranking.hits),
        ],
    )


def find_over_http(url: str, query: str, *, limit: int, output: OutputFormat) -> bool:
    """Print the companies that the service finds; return whether there are any."""
    with connected(url) as client:
        found = client.find(query, limit=limit).companies
    show([Line(company=each.as_company()) for each in found], output)
    return bool(found)


@contextmanager
def connected(url: str) -> "Iterator[Client]":
    """Yield a client of the service at `url`, with the key of the environment.

    Raises:
        InvalidInput: the client is not installed, the URL or the key is invalid, or the service requires a valid key.
    """
    try:
        from similarity.client import Client
    except ImportError as error:
        raise InvalidInput(str(error)) from error
    from similarity.client import Unauthorized

    with Client(url, api_key=Settings.from_environment(os.environ).api_key) as client:
        try:
            yield client
        except Unauthorized as error:
            raise InvalidInput(f"{error}; the command takes the key from SIMILARITY_API_KEY") from error
