"""How often callers may ask."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Scope

from services.search.guards.callers import CALLER, LOCAL, Caller
from services.search.guards.rate_limits import AddressLimits, Allowance, RateLimits, TokenBuckets
from services.search.guards.refusals import network_of
from services.search.wire import problems
from tests.services.search.asgi import Answer, Clock, Inner, ask, http

# Sums of eighths are exact, so the bound can be checked to the last token.
eighths = st.integers(0, 80).map(lambda number: number / 8)


@given(
    rate=st.integers(1, 40).map(lambda number: number / 8),
    burst=st.integers(1, 20),
    steps=st.lists(st.tuples(st.one_of(eighths, st.integers(-3, 0).map(float)), st.integers(1, 5)), max_size=80),
)
def test_no_window_sees_more_than_rate_times_its_length_and_the_burst(
    rate: float, burst: int, steps: list[tuple[float, int]]
) -> None:
    clock = Clock()
    buckets = TokenBuckets(Allowance(rate, burst), clock=clock)
    assert buckets.tokens("ann") == burst
    taken: list[tuple[float, int]] = []
    latest = clock.now
    for pause, cost in steps:
        # Also backwards: a clock that is set back must give nothing away.
        clock.now += pause
        latest = max(latest, clock.now)
        if buckets.take("ann", cost):
            taken.append((latest, min(cost, burst)))
    for first in range(len(taken)):
        total = 0
        for at, cost in taken[first:]:
            total += cost
            assert total <= rate * (at - taken[first][0]) + burst + 1e-9


@given(rate=st.floats(0.1, 100), burst=st.integers(1, 50), cost=st.integers(1, 60))
def test_after_the_time_it_names_the_bucket_gives_what_was_asked(rate: float, burst: int, cost: int) -> None:
    clock = Clock()
    buckets = TokenBuckets(Allowance(rate, burst), clock=clock)
    while buckets.take("ann"):
        pass
    clock.now += buckets.seconds_until("ann", cost) + 1e-6
    assert buckets.take("ann", cost)


def test_a_bucket_is_full_at_first_and_never_fuller() -> None:
    clock = Clock()
    buckets = TokenBuckets(Allowance(rate=2, burst=3), clock=clock)
    clock.now += 1000
    assert [buckets.take("ann") for _ in range(4)] == [True, True, True, False]
    clock.now += 0.5
    assert [buckets.take("ann") for _ in range(2)] == [True, False]


def test_the_bucket_unused_for_longest_is_forgotten() -> None:
    buckets = TokenBuckets(Allowance(1, 1), clock=Clock(), most=2)
    assert all(map(buckets.take, ("ann", "bob")))
    assert buckets.tokens("ann") == 0
    assert buckets.take("eve")
    assert [buckets.tokens(name) for name in ("ann", "bob")] == [0, 1]


def limits(inner: Inner, clock: Clock, *, caller: float = 3, process: float = 100) -> RateLimits:
    return RateLimits(
        inner,
        callers=Allowance(1, caller) if caller else None,
        process=Allowance(1, process) if process else None,
        heavy=lambda scope: scope["path"] == "/heavy",
        clock=clock,
    )


def both(inner: Inner) -> AddressLimits:
    """Limits of addresses around those of callers."""
    return AddressLimits(limits(inner, Clock(), process=1), strangers=TokenBuckets(Allowance(1, 2), clock=Clock()))


def by(name: str, path: str = "/similar/acme") -> Scope:
    return {**http(path), CALLER: Caller(name=name, scopes=frozenset())}


def test_the_request_too_many_is_429_and_says_when_to_come_back() -> None:
    clock, inner = Clock(), Inner()
    app = limits(inner, clock)
    assert [ask(app, by("ann")).status for _ in range(4)] == [200, 200, 200, 429]
    refusal = ask(app, by("ann"))
    assert refusal.problem == "rate-limited"
    assert refusal.headers["retry-after"] == "1"
    assert len(inner.scopes) == 3
    assert ask(app, by("bob")).status == 200
    clock.now += 1
    assert ask(app, by("ann")).status == 200


def test_every_answer_says_what_is_left_the_refusal_too() -> None:
    app = limits(Inner(), Clock())
    told = [ask(app, by("ann")).headers for _ in range(4)]
    assert {headers["ratelimit-policy"] for headers in told} == {'"caller";q=3;w=3'}
    assert [headers["ratelimit"] for headers in told] == [
        '"caller";r=2;t=1',
        '"caller";r=1;t=2',
        '"caller";r=0;t=3',
        '"caller";r=0;t=3',
    ]


def test_a_heavy_request_counts_as_ten() -> None:
    app = limits(Inner(), Clock(), caller=15)
    assert ask(app, by("ann", "/heavy")).headers["ratelimit"].startswith('"caller";r=5')
    assert ask(app, by("ann", "/heavy")).status == 429
    assert ask(app, by("ann")).status == 200


def test_the_process_has_a_limit_that_all_callers_share() -> None:
    app = limits(Inner(), Clock(), process=3)
    answers = [ask(app, by(name)) for name in ("ann", "bob", "eve", "joe")]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert b"the whole service" in answers[-1].body


def test_without_keys_addresses_are_told_apart() -> None:
    app = limits(Inner(), Clock())

    def from_(address: str) -> Answer:
        return ask(app, {**http(), CALLER: LOCAL, "client": (address, 1)})

    assert [from_("10.0.0.1").status for _ in range(4)] == [200, 200, 200, 429]
    assert from_("10.0.0.2").status == 200
    assert [from_(f"2001:db8:1:2::{number}").status for number in range(4)] == [200, 200, 200, 429]
    assert from_("2001:db8:1:3::1").status == 200


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::6", "2001:db8:1:2::/64"),
        ("2001:0DB8:1:2::", "2001:db8:1:2::/64"),
        # The zeros that `::` stands for count too.
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:0:0:2", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("not an address", "unknown"),
    ],
)
def test_an_ipv6_customer_is_one_caller_however_the_address_is_written(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_checks_are_never_limited(path: str) -> None:
    app = both(Inner())
    assert {ask(app, http(path)).status for _ in range(5)} == {200}


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/assets/page.js"])
def test_what_needs_no_key_is_limited_for_each_address_apart_from_callers(path: str) -> None:
    app = both(Inner())

    def from_(address: str) -> Answer:
        return ask(app, {**http(path), "client": (address, 1)})

    answers = [from_("10.0.0.1") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[-1].headers["retry-after"] == "1"
    # What the client has pipelined behind it is not answered.
    assert answers[-1].headers["connection"] == "close"
    assert from_("10.0.0.2").status == 200
    assert [from_(f"2001:db8:1:2::{number}").status for number in range(3)] == [200, 200, 429]
    # Neither the callers nor the process have paid for it.
    assert ask(app, by("ann")).status == 200


def test_without_limits_nothing_is_counted_and_nothing_said() -> None:
    app = limits(Inner(), Clock(), caller=0, process=0)
    answers = [ask(app, by("ann")) for _ in range(200)]
    assert {answer.status for answer in answers} == {200}
    assert answers[0].headers == {}


def test_without_a_limit_no_answer_has_the_header_and_the_manual_says_so() -> None:
    answer = ask(limits(Inner(), Clock(), caller=0), by("ann"))
    assert answer.status == 200
    assert not {"ratelimit", "ratelimit-policy"} & {*answer.headers}
    assert "without keys on loopback they are not" in problems.RATE_LIMITED.meaning
