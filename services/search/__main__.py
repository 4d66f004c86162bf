"""Starts the search service: the one place that opens the index, loads the bundle and listens.

python -m services.search --index similarity.db

SIMILARITY_INDEX, _BUNDLE, _BUNDLES, _THREADS, _RUNTIME and, where the index is a URL of Elasticsearch,
SIMILARITY_ELASTICSEARCH_ variables are read from the environment; options win.
"""

import argparse
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import uvicorn

from services.search.app import create_app
from services.search.settings import DEFAULT_HOST, DEFAULT_PORT, NETWORK_OPTION, Address
from similarity.bundle_store import bundle_for, store_folder
from similarity.encoder import TextEncoder
from similarity.errors import InvalidBundle, NoLiveGeneration, SimilarityError
from similarity.index.opening import open_index
from similarity.index.protocol import CompanyIndex
from similarity.settings import Settings

SECONDS_TO_FINISH = 10

log = logging.getLogger(__name__)


def serve(
    settings: Settings,
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    allow_unauthenticated_network: bool = False,
) -> None:
    """Answers over HTTP until it is told to stop (Ctrl-C, SIGTERM); requests under way are finished.

    Raises:
        InvalidInput: the address may not be listened on, or there is no index yet.
        InvalidBundle: the bundle that the settings name cannot be used.
        IndexUnavailable: the index cannot be opened.
    """
    address = Address(host=host, port=port, allow_unauthenticated_network=allow_unauthenticated_network)
    # uvicorn raises the signal again when it has stopped; the default would end us before the index is closed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    index = open_index(settings.index, os.environ)
    try:
        encoder = load_encoder(settings, index)
        warm_up(index)
        uvicorn.run(
            create_app(index=index, encoder=encoder),
            host=address.host,
            port=address.port,
            server_header=False,
            timeout_graceful_shutdown=SECONDS_TO_FINISH,
        )
    finally:
        index.close()


def load_encoder(settings: Settings, index: CompanyIndex) -> TextEncoder | None:
    """The encoder for free text: the chosen bundle's, else the live generation's own; None where there is none.

    Raises:
        InvalidBundle: the settings name a bundle that cannot be used.
    """
    try:
        bundle = bundle_for(index, store_folder(settings.index, settings.bundles), chosen=settings.bundle)
    except InvalidBundle as error:
        if settings.bundle is not None:
            raise
        log.warning("free text will not be answered: %s", error)
        return None
    return TextEncoder(bundle, threads=settings.threads, runtime=settings.runtime)


def warm_up(index: CompanyIndex) -> None:
    """Runs one search: the first one loads the vectors, and no user should wait for that."""
    try:
        live = index.live()
    except NoLiveGeneration:
        return
    index.similar(live.name, np.eye(1, live.dimension, dtype=np.float32)[0], k=1)


def main(arguments: list[str] | None = None) -> None:
    """Runs the service from the command line; expected errors are one line and exit status 1."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    options = _parser().parse_args(arguments)
    try:
        settings = Settings.from_environment(os.environ)
        settings = replace(settings, index=options.index or settings.index, bundle=options.bundle or settings.bundle)
        serve(
            settings,
            host=options.host,
            port=options.port,
            allow_unauthenticated_network=options.allow_unauthenticated_network,
        )
    except SimilarityError as error:
        sys.exit(f"services.search: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.search", description="Answers over HTTP.")
    parser.add_argument("--index", help="index file, or https://host:9200/NAME (SIMILARITY_INDEX, else similarity.db)")
    parser.add_argument("--bundle", type=Path, help="model bundle folder (SIMILARITY_BUNDLE, else the one that ships)")
    parser.add_argument("--host", default=DEFAULT_HOST, help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port to listen on (%(default)s)")
    parser.add_argument(
        NETWORK_OPTION, action="store_true", help="listen beyond this machine although nobody has to log in"
    )
    return parser


if __name__ == "__main__":
    main()
