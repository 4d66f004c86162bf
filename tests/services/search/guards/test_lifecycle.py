"""How the service stops."""

import asyncio
import signal

import pytest
import uvicorn

from services.search.guards.envelope import Envelope
from services.search.guards.lifecycle import DrainingServer, Lifecycle
from tests.services.search.asgi import Answer, Clock, Inner, ask, asked, http


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lifecycle(clock: Clock) -> Lifecycle:
    return Lifecycle(drain_seconds=5, clock=clock)


def test_it_is_drained_when_the_time_is_over(lifecycle: Lifecycle, clock: Clock) -> None:
    assert not lifecycle.stopping
    assert not lifecycle.drained
    lifecycle.stop()
    assert lifecycle.stopping
    assert not lifecycle.drained
    clock.now += 4
    lifecycle.stop()
    clock.now += 1
    assert lifecycle.drained


def test_connections_end_with_their_next_answer(lifecycle: Lifecycle) -> None:
    app = Envelope(Inner(), lifecycle=lifecycle)
    assert "connection" not in ask(app, http()).headers
    lifecycle.stop()
    assert ask(app, http()).headers["connection"] == "close"
    assert ask(app, http("/readyz")).headers["connection"] == "close"


def test_an_answer_in_the_making_ends_its_connection_too(lifecycle: Lifecycle) -> None:
    async def stopped_meanwhile() -> Answer:
        asking = asyncio.create_task(asked(Envelope(Inner(seconds=0.02), lifecycle=lifecycle), http()))
        await asyncio.sleep(0.005)
        lifecycle.stop()
        return await asking

    assert asyncio.run(stopped_meanwhile()).headers["connection"] == "close"


def server(lifecycle: Lifecycle) -> DrainingServer:
    return DrainingServer(uvicorn.Config(Inner(), log_config=None), lifecycle=lifecycle)


def test_sigterm_drains_before_the_server_stops(lifecycle: Lifecycle, clock: Clock) -> None:
    stopping = server(lifecycle)
    stopping.handle_exit(signal.SIGTERM, None)
    assert lifecycle.stopping
    assert asyncio.run(stopping.on_tick(1)) is False
    clock.now += 5
    assert asyncio.run(stopping.on_tick(1)) is True


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_skips_the_waiting(lifecycle: Lifecycle, second: signal.Signals) -> None:
    stopping = server(lifecycle)
    stopping.handle_exit(signal.SIGTERM, None)
    stopping.handle_exit(second, None)
    assert asyncio.run(stopping.on_tick(1)) is True


def test_ctrl_c_does_not_wait(lifecycle: Lifecycle) -> None:
    stopping = server(lifecycle)
    stopping.handle_exit(signal.SIGINT, None)
    assert lifecycle.stopping
    assert asyncio.run(stopping.on_tick(1)) is True
