"""The middlewares between the network and the routes, in their order."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from ..settings import Address, ServiceSettings, is_loopback
from .authentication import Authentication, Keys
from .concurrency import Admission, Gate, Gates, is_heavy
from .envelope import REQUEST_ID, Envelope
from .heads import ANY, LOCAL_NAMES, Heads
from .health_checks import HealthChecks
from .lifecycle import Lifecycle
from .limits import Bodies
from .metrics import ServiceMetrics
from .rate_limits import OPEN_ALLOWANCE, AddressLimits, Allowance, RateLimits, TokenBuckets
from .shedding import Shedding
from .telemetry import Telemetry, Tracing

MAY_SEND = ("Authorization", "Content-Type", "If-None-Match", REQUEST_ID)
MAY_READ = (REQUEST_ID, "RateLimit", "RateLimit-Policy", "Retry-After", "ETag", "Content-Disposition")


@dataclass(frozen=True, kw_only=True)
class Guards:
    """The settings and parts of the middlewares.

    The defaults are for tests and for an application that only this process uses: no keys, any host name and no rate
    limits, but all other limits. `names`: the host names that requests may have. `limited`: whether the rate limits of
    the settings apply.
    """

    settings: ServiceSettings = field(default_factory=ServiceSettings)
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    keys: Keys | None = None
    tracing: Tracing | None = None
    names: Collection[str] = (ANY,)
    limited: bool = False

    @cached_property
    def gates(self) -> Gates:
        """The gates of quick and heavy requests; `Admission` and `Shedding` share them."""
        settings = self.settings

        def gate(at_once: int, beside: Gate | None = None) -> Gate:
            queue = settings.queue or 2 * at_once
            return Gate(at_once=at_once, queue=queue, seconds=settings.queue_seconds, beside=beside)

        heavy = gate(settings.heavy_places)
        return Gates(quick=gate(settings.places, heavy), heavy=heavy)

    def shed(self) -> None:
        """Count a request that was refused at once."""
        self.metrics.rejected("shed")


def host_names(settings: ServiceSettings, address: Address) -> tuple[str, ...]:
    """Return the host names that requests to a service at `address` may have.

    On a loopback address these are the local names and the settings' names, against DNS rebinding. Elsewhere any name
    is allowed, unless the settings have names.
    """
    hosts = [name.lower() for name in settings.hosts]
    if is_loopback(address.reached):
        return (*LOCAL_NAMES, address.reached.lower(), *hosts)
    return (*hosts, *LOCAL_NAMES) if hosts else (ANY,)


def limited(address: Address) -> bool:
    """Return whether rate limits apply: always, except without keys at an address that only this machine can reach."""
    return address.authenticated or not is_loopback(address.host)


def guard(app: FastAPI, guards: Guards) -> None:
    """Add the middlewares to `app`. The last one added is the first that gets a request."""
    settings, gates = guards.settings, guards.gates
    guards.metrics.watch(gates, guards.lifecycle)
    app.add_middleware(Admission, gates=gates, seconds=settings.request_seconds)
    app.add_middleware(Bodies, settings=settings)
    app.add_middleware(
        RateLimits,
        callers=_allowance(settings.rate, settings.burst) if guards.limited else None,
        process=_allowance(settings.service_rate, settings.service_burst) if guards.limited else None,
        heavy=is_heavy,
    )
    strangers = TokenBuckets(OPEN_ALLOWANCE)
    app.add_middleware(Authentication, keys=guards.keys, strangers=strangers)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=MAY_SEND,
            expose_headers=MAY_READ,
        )
    if guards.limited and settings.rate:
        # Before CORSMiddleware, which answers preflights.
        app.add_middleware(AddressLimits, strangers=strangers)
    app.add_middleware(Heads, names=guards.names, lifecycle=guards.lifecycle, origins=settings.origins)
    app.add_middleware(Telemetry, metrics=guards.metrics, tracing=guards.tracing, clients=settings.log_clients)
    app.add_middleware(HealthChecks, names=guards.names)
    app.add_middleware(Envelope, lifecycle=guards.lifecycle)
    app.add_middleware(Shedding, gates=gates, shed=guards.shed)


def _allowance(rate: float, burst: int) -> Allowance | None:
    return Allowance(rate, burst) if rate else None
