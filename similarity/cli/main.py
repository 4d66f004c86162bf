"""The command `similarity`: the list of its commands. Each command parses its options and calls one function.

Heavy parts are imported inside the command that needs them, so that `--help` is instant.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from typing import Annotated

import typer

from similarity.cli.audit import audit
from similarity.cli.check import check
from similarity.cli.context import BundleOption, IndexOption, fail, opened
from similarity.cli.generations import generations
from similarity.cli.info_backup_erase import info_backup_erase_commands
from similarity.cli.load import load_commands
from similarity.cli.pairs import pairs
from similarity.cli.search import search_commands
from similarity.errors import InvalidInput, SimilarityError
from similarity.settings import Settings

EPILOG = """
A first session:

  similarity ingest companies.csv --column id=ticker --column description=about

  similarity similar nike.com -k 5

  similarity similar --text "rents out electric scooters by the minute"

  similarity serve

Commands work on one index, a file or https://HOST:9200/NAME of Elasticsearch:
--index, else SIMILARITY_INDEX, else ./similarity.db

`similar` and `find` can ask a service, and `pairs` always does: --url, else SIMILARITY_URL, with the key in
SIMILARITY_API_KEY
"""

app = typer.Typer(
    name="similarity",
    help="Find the companies that compete with a given company, from what they say about themselves.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def version(*, shown: bool) -> None:
    """Print the version of the package and end, if --version is given."""
    if shown:
        from importlib.metadata import version as version_of

        typer.echo(f"similarity {version_of('company-similarity')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version and exit")
    ] = False,
) -> None:
    """Find the companies that compete with a given company, from what they say about themselves."""


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on")] = 8080,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Answer over HTTP: the page at /, the API under /similar and /companies, its manual at /docs.

    SIMILARITY_SERVICE_ variables say what it allows: keys, limits, logs (docs/service-settings.md).
    """
    # In the wheel, the package services/search of the checkout has another name.
    package = "similarity.service" if find_spec("similarity.service") else "services.search"
    try:
        service = import_module(f"{package}.__main__")
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"the search service is not installed ({error.name} is missing): "
            "pip install 'company-similarity[search]', in a checkout pip install -e '.[search]'"
        ) from error
    with opened(index) as work:
        work.index.live()
    settings = Settings.from_environment(os.environ, index=index, bundle=bundle)
    service.serve(settings, service=service.service_settings(), host=host, port=port)


# This order is the order of the commands in --help.
app.add_typer(load_commands)
app.add_typer(search_commands)
app.command()(serve)
app.command()(pairs)
app.add_typer(generations, name="generations")
app.add_typer(info_backup_erase_commands)
app.command()(check)
app.command()(audit)


def main() -> None:
    """Run the command line; expected errors are one line on standard error and exit status 1.

    Typer ends the process itself with status 130 after Ctrl-C, and with status 1 if the reader of the output (`head`,
    a pager) closed the pipe.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # characters that its encoding lacks, such as Japanese in ASCII
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except SimilarityError as error:
        fail(str(error))
    except OSError as error:  # a missing folder, a full disk: the message names the file
        fail(str(error))
