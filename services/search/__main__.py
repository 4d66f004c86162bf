"""Starts the search service: opens the index, loads the bundle and listens.

    python -m services.search --index similarity.db

Other settings are environment variables: SIMILARITY_INDEX and _BUNDLE (the options override these two), _BUNDLES,
_THREADS, _RUNTIME, _AUDIT and, if the index is on Elasticsearch, SIMILARITY_ELASTICSEARCH_ variables. The variables
SIMILARITY_SERVICE_ set the limits and the operation of the service (docs/service-settings.md).
"""

import argparse
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import uvicorn
from fastapi import FastAPI

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidBundle, InvalidInput, NoLiveGeneration, SimilarityError
from similarity.feedback.opening import open_workspace
from similarity.feedback.protocol import Workspace
from similarity.index.attributes import parse_schema
from similarity.index.bundle_store import StoredEncoders, bundle_for, store_folder
from similarity.index.opening import is_url, open_index
from similarity.index.protocol import CompanyIndex
from similarity.kafka import KafkaSettings, confluent
from similarity.model.encoder_protocol import Encoder
from similarity.settings import Settings
from similarity.upkeep.audit import AuditRecord, audit_target, audited, system_user
from similarity.upkeep.outage import Outage, watched

from . import PROGRAM
from .app import WORKSPACE, create_app
from .guards.connections import Connections, allow_open_files
from .guards.guards import Guards, host_names, limited
from .guards.key_ring import KeyRing
from .guards.lifecycle import DrainingServer, Lifecycle
from .guards.logs import start_logs
from .guards.metrics import ServiceMetrics
from .guards.shedding import early_refusal
from .guards.slow_clients import connection_with_deadlines
from .guards.telemetry import open_telemetry
from .settings import DEFAULT_HOST, DEFAULT_PORT, Address, ServiceSettings
from .writes.group_commit import MAX_WAITING_REQUESTS
from .writes.write_service import WriteMode
from .writes.write_setup import KafkaTopic, Writing, set_up_writing

# A thread that needs the interpreter waits this long for a busy one, several times in a request. With Python's 5 ms,
# one key with six large queries at once made the small queries of another key twice as slow as with this value.
SECONDS_BETWEEN_THREADS = 0.0005
# Rows of a list that are matched at once on Elasticsearch: 1.3 to 2.3 times as many a second as one at a time. On the
# embedded index, several at once are no faster, and only slow down other requests.
ROWS_AT_ONCE = 4

log = logging.getLogger(__name__)


def serve(
    settings: Settings,
    *,
    service: ServiceSettings | None = None,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
) -> None:
    """Answer requests over HTTP until Ctrl-C or SIGTERM; requests in progress are finished.

    `service`: by default the settings in the environment.

    Raises:
        InvalidInput: a setting or the keys are invalid, the port is in use, or the index does not exist.
        InvalidBundle: the bundle of the settings is missing or damaged.
        IndexUnavailable: the index cannot be opened.
        AuditUnavailable: the audit record cannot be written.
    """
    service = service or ServiceSettings.from_environment(os.environ)
    address = Address(
        host=host,
        port=port,
        published=service.published_address,
        authenticated=service.keys is not None,
    )
    guards = guards_of(service, address)
    # uvicorn raises the signal again after it has stopped; the default handler then ends the process at once.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ExitStack() as opened:
        index = guards.metrics.timed_index(opened.enter_context(closing(open_index(settings.index, os.environ))))
        refuse_taken(address)
        workspace = opened.enter_context(closing(open_workspace(settings.index, os.environ)))
        encoders = encoders_of(settings, index, guards.metrics)
        warm_up(index)
        declared = parse_schema(filter(None, service.attributes.split(";")), service.size)
        warnings = index.attributes().retyped_by(declared)
        audited(index, AuditRecord(audit_target(settings)), who=system_user()).declare(declared)
        for warning in warnings:
            log.warning("%s", warning)
        # From here on an outage of the store is logged; before, it ends the start.
        index, workspace = watched(index, Outage("the index")), watched(workspace, Outage(WORKSPACE))
        writing = writing_of(service, index, encoders, workspace, AuditRecord(audit_target(settings)))
        opened.callback(writing.close)
        app = create_app(
            index=index,
            encoders=encoders,
            workspace=workspace,
            writing=writing,
            guards=guards,
            cursor_key=service.cursor_secret.encode() or None,
            rows_at_once=ROWS_AT_ONCE if is_url(settings.index) else 1,
        )
        run(app, address, guards)


def service_settings() -> ServiceSettings:
    """Return the settings of the service in the environment, and start the log that they choose.

    Raises:
        InvalidInput: a variable is unknown (probably misspelled), or has an invalid value.
    """
    service = ServiceSettings.from_environment(os.environ)
    start_logs(sys.stderr, form=service.logs)
    return service


def guards_of(service: ServiceSettings, address: Address) -> Guards:
    """Return the guards of a service that listens on `address`.

    Raises:
        InvalidInput: the keys are invalid, or OpenTelemetry is enabled but not installed.
    """
    return Guards(
        settings=service,
        lifecycle=Lifecycle(drain_seconds=service.drain_seconds),
        keys=KeyRing(service.keys).caller if service.keys else None,
        tracing=open_telemetry() if service.otel else None,
        names=host_names(service, address),
        limited=limited(address),
    )


def encoders_of(settings: Settings, index: CompanyIndex, metrics: ServiceMetrics) -> Mapping[str, Encoder]:
    """Return the encoders of the bundles of an index, with metrics of their time.

    One encoder is loaded now: of the chosen bundle, else of the live generation. The others are loaded when needed.

    Raises:
        InvalidBundle: the bundle of the settings is missing or damaged.
    """

    def open_encoder(bundle: ModelBundle) -> Encoder:
        encoder = TextEncoder(bundle, threads=settings.threads, runtime=settings.runtime)
        return metrics.timed_encoder(encoder)

    store = store_folder(settings.index, settings.bundles)
    try:
        first = [open_encoder(bundle_for(index, store, chosen=settings.bundle))]
    except InvalidBundle as error:
        if settings.bundle is not None:
            raise
        log.warning("free text will not be answered: %s", error)
        first = []
    return StoredEncoders(store, open_encoder, opened=first)


def writing_of(
    service: ServiceSettings,
    index: CompanyIndex,
    encoders: Mapping[str, Encoder],
    workspace: Workspace,
    audit: AuditRecord,
) -> Writing:
    """Return the services of the write routes for the mode in the settings.

    Raises:
        InvalidInput: writes go to Kafka, and its settings are invalid or its client is not installed.
        AuditUnavailable: the audit record cannot be written.
    """
    mode = WriteMode(service.writes)
    if mode is not WriteMode.OFF:
        audit.write([])
    kafka = None
    if mode is WriteMode.KAFKA:
        confluent()  # refuses a missing client now; Kafka itself may be away
        kafka = KafkaTopic(settings=KafkaSettings.from_environment(os.environ), topic=service.kafka_topic)
        log.info("writes go to the topic %s of Kafka at %s", kafka.topic, kafka.settings.servers)
    return set_up_writing(
        mode,
        index=index,
        encoders=encoders,
        workspace=workspace,
        kafka=kafka,
        audit=audit,
        max_waiting=min(MAX_WAITING_REQUESTS, max(1, service.places - 1)),
    )


def refuse_taken(address: Address) -> None:
    """Raise InvalidInput if another program listens on the port: uvicorn finds out only after the encoder is loaded."""
    with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return  # uvicorn reports it
            raise InvalidInput(
                f"another program listens on {address.host}:{address.port}, perhaps a service that still runs; "
                "stop it, or choose another port with --port"
            ) from None


def run(app: FastAPI, address: Address, guards: Guards) -> None:
    """Listen on `address`, and serve the metrics, until a signal stops the service."""
    service = guards.settings
    allow_open_files(service.connections)
    sys.setswitchinterval(SECONDS_BETWEEN_THREADS)
    # All objects loaded by now stay until the end. A garbage collection of them stopped every thread for 50 ms.
    gc.collect()
    gc.freeze()
    server = DrainingServer(server_config(app, address, guards), lifecycle=guards.lifecycle)
    metrics_host, metrics_port = service.metrics_host, service.metrics_port
    try:
        stop_metrics = guards.metrics.serve(metrics_host, metrics_port) if metrics_port else None
    except OSError as error:
        raise InvalidInput(
            f"the metrics cannot be served on {metrics_host}:{metrics_port}: {error.strerror}; choose another port "
            "with SIMILARITY_SERVICE_METRICS_PORT"
        ) from None
    try:
        server.run()
    except KeyboardInterrupt:
        # uvicorn raises it again after an orderly stop.
        return
    finally:
        if stop_metrics is not None:
            stop_metrics()
    if not server.started:
        sys.exit(f"{__package__}: it cannot listen on {address.host}:{address.port}; its log says why")


def server_config(app: FastAPI, address: Address, guards: Guards) -> uvicorn.Config:
    """Return the configuration of uvicorn."""
    service = guards.settings
    return uvicorn.Config(
        app,
        host=address.host,
        port=address.port,
        http=connection_with_deadlines(
            service,
            Connections(
                most=service.connections,
                # Behind a proxy, all clients have the address of the proxy.
                most_of_address=0 if service.proxies else service.address_connections,
                most_unread=service.unread_bytes,
            ),
            early_refusal(guards.gates, guards.shed),
        ),
        ws="none",
        timeout_keep_alive=service.idle_seconds,
        timeout_graceful_shutdown=service.finish_seconds,
        proxy_headers=bool(service.proxies),
        forwarded_allow_ips=list(service.proxies),
        server_header=False,
        access_log=False,
        log_config=None,
    )


def warm_up(index: CompanyIndex) -> None:
    """Run one search, because the first one loads the vectors: then no user waits for that."""
    try:
        live = index.live()
    except NoLiveGeneration:
        return
    index.similar(live.name, np.eye(1, live.dimension, dtype=np.float32)[0], k=1)


def main(arguments: list[str] | None = None) -> None:
    """Run the service from the command line; expected errors are one line and exit status 1."""
    options = _parser().parse_args(arguments)
    try:
        service = service_settings()
        settings = Settings.from_environment(os.environ, index=options.index, bundle=options.bundle)
        serve(settings, service=service, host=options.host, port=options.port)
    except SimilarityError as error:
        sys.exit(f"{__package__}: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Answers over HTTP.")
    parser.add_argument("--index", help="index file, or https://host:9200/NAME (SIMILARITY_INDEX, else similarity.db)")
    parser.add_argument("--bundle", type=Path, help="model bundle folder (SIMILARITY_BUNDLE, else the one that ships)")
    parser.add_argument("--host", default=DEFAULT_HOST, help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port to listen on (%(default)s)")
    return parser


if __name__ == "__main__":
    main()
