from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from similarity.errors import InvalidInput, LeaseHeld, LeaseLost
from similarity.index.protocol import CompanyIndex, Lease
from tests.contract.clock import Clock
from tests.contract.steps import add_candidate, add_live


def take(index: CompanyIndex, name: str = "reembed", *, holder: str = "a", seconds: float = 60) -> Lease:
    return index.take_lease(name, holder=holder, seconds=seconds)


def test_a_free_lease_is_taken_for_a_time(index: CompanyIndex, clock: Clock) -> None:
    lease = index.take_lease("writer:kafka-1.eu_west", holder="host-1:42", seconds=60)
    assert (lease.name, lease.holder, lease.acknowledged) == ("writer:kafka-1.eu_west", "host-1:42", 0)
    assert lease.expires_at == clock() + timedelta(seconds=60)
    assert index.leases() == [lease]


def test_a_held_lease_is_refused_and_the_message_says_who_has_it_and_until_when(index: CompanyIndex) -> None:
    held = take(index, holder="host-1")
    with pytest.raises(LeaseHeld, match=r"'reembed' is held by 'host-1' until 2025-03-01 12:01:00 UTC"):
        take(index, holder="host-2")
    assert index.leases() == [held]


def test_leases_of_other_names_are_free(index: CompanyIndex) -> None:
    leases = [take(index, name, holder=f"holder-{name}") for name in ("b", "a", "B")]
    assert index.leases() == sorted(leases, key=lambda lease: lease.name)


def test_an_expired_lease_is_taken_over_with_a_higher_fence(index: CompanyIndex, clock: Clock) -> None:
    first = take(index, holder="a", seconds=60)
    clock.advance(59)
    with pytest.raises(LeaseHeld):
        take(index, holder="b")
    clock.advance(2)
    assert index.leases() == []
    second = take(index, holder="b")
    assert second.fence > first.fence
    assert index.leases() == [second]


@pytest.mark.parametrize("hours", [2, 30 * 24])
def test_a_lease_that_a_clock_far_ahead_took_holds_nobody_up(index: CompanyIndex, clock: Clock, hours: float) -> None:
    clock.advance(hours * 3600)
    first = take(index, holder="a")
    clock.advance(-hours * 3600)
    assert index.leases() == []
    add_candidate(index, "first")
    with pytest.raises(LeaseLost, match="does not hold"):
        index.promote("first", lease=first)
    second = take(index, holder="b")
    assert index.leases() == [second]
    assert second.fence > first.fence


@pytest.mark.parametrize("minutes", [4, -4])
def test_a_lease_is_held_for_whose_clock_is_some_minutes_off(index: CompanyIndex, clock: Clock, minutes: float) -> None:
    lease = take(index, seconds=3600)
    clock.advance(minutes * 60)
    assert index.leases() == [lease]


def test_who_slept_past_the_end_learns_that_another_took_over(index: CompanyIndex, clock: Clock) -> None:
    first = take(index, holder="a")
    clock.advance(61)
    second = take(index, holder="b")
    with pytest.raises(LeaseLost, match="'a' does not hold the lease 'reembed'"):
        index.renew_lease(first, seconds=60)
    index.release_lease(first)
    assert index.leases() == [second]


def test_a_holder_that_takes_its_lease_again_gets_a_new_one(index: CompanyIndex) -> None:
    first = take(index, holder="a")
    index.renew_lease(first, seconds=60, acknowledged=5)
    second = take(index, holder="a", seconds=90)
    assert second.fence > first.fence
    assert second.acknowledged == 0
    assert index.leases() == [second]
    with pytest.raises(LeaseLost):
        index.renew_lease(first, seconds=60)


def test_a_renewed_lease_ends_later(index: CompanyIndex, clock: Clock) -> None:
    lease = take(index, seconds=60)
    clock.advance(50)
    renewed = index.renew_lease(lease, seconds=60)
    assert (renewed.fence, renewed.holder) == (lease.fence, lease.holder)
    assert renewed.expires_at == clock() + timedelta(seconds=60)
    clock.advance(50)
    assert index.leases() == [renewed]
    with pytest.raises(LeaseHeld):
        take(index, holder="b")


def test_a_lease_is_renewed_however_old_the_holders_copy_of_it_is(index: CompanyIndex) -> None:
    lease = take(index)
    index.renew_lease(lease, seconds=90)
    assert index.renew_lease(lease, seconds=60).fence == lease.fence


def test_what_a_holder_acknowledged_is_kept_until_it_acknowledges_more(index: CompanyIndex) -> None:
    lease = take(index)
    assert index.renew_lease(lease, seconds=60, acknowledged=7).acknowledged == 7
    assert [held.acknowledged for held in index.leases()] == [7]
    assert index.renew_lease(lease, seconds=60).acknowledged == 7
    index.renew_lease(lease, seconds=60, acknowledged=9)
    assert [held.acknowledged for held in index.leases()] == [9]


def test_an_expired_lease_that_nobody_took_can_be_renewed(index: CompanyIndex, clock: Clock) -> None:
    lease = take(index)
    clock.advance(3600)
    renewed = index.renew_lease(lease, seconds=60)
    assert index.leases() == [renewed]
    assert renewed.fence == lease.fence


def test_a_released_lease_is_free_at_once_and_cannot_be_renewed(index: CompanyIndex) -> None:
    first = take(index, holder="a")
    index.release_lease(first)
    assert index.leases() == []
    with pytest.raises(LeaseLost, match="released"):
        index.renew_lease(first, seconds=60)
    assert take(index, holder="b").fence > first.fence


def test_releasing_twice_is_no_error(index: CompanyIndex) -> None:
    lease = take(index)
    index.release_lease(lease)
    index.release_lease(lease)
    assert index.leases() == []


@pytest.mark.parametrize("holders", [["a", "b", "c", "d"], ["a"] * 4], ids=["rivals", "one holder"])
def test_of_many_that_take_a_lease_at_once_one_has_it(index: CompanyIndex, holders: list[str]) -> None:
    def try_to_take(holder: str) -> Lease | None:
        try:
            return take(index, holder=holder)
        except LeaseHeld:
            return None

    with ThreadPoolExecutor(len(holders)) as threads:
        taken = [lease for lease in threads.map(try_to_take, holders) if lease]
    [held] = index.leases()
    assert held.fence == max(lease.fence for lease in taken)
    assert len({lease.fence for lease in taken}) == len(taken) == (1 if len(set(holders)) > 1 else len(holders))


@pytest.mark.parametrize("bad", ["", "a b", "a/b", "ü", "x" * 129, "a\n"])
def test_a_name_or_holder_that_cannot_be_stored_is_refused(index: CompanyIndex, bad: str) -> None:
    with pytest.raises(InvalidInput, match=r"the lease .* must be"):
        take(index, bad)
    with pytest.raises(InvalidInput, match=r"the holder .* must be"):
        take(index, holder=bad)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_time_that_is_no_time_is_refused(index: CompanyIndex, seconds: float) -> None:
    with pytest.raises(InvalidInput, match="seconds"):
        take(index, seconds=seconds)
    lease = take(index)
    with pytest.raises(InvalidInput, match="seconds"):
        index.renew_lease(lease, seconds=seconds)
    assert index.leases() == [lease]


def test_who_holds_the_lease_can_promote(index: CompanyIndex, clock: Clock) -> None:
    lease = take(index)
    clock.advance(50)
    renewed = index.renew_lease(lease, seconds=60)
    clock.advance(50)
    index.promote(add_candidate(index, "first"), lease=lease)
    index.promote(add_candidate(index, "second"), lease=renewed)
    assert index.live().name == "second"


def test_who_lost_the_lease_cannot_promote(index: CompanyIndex, clock: Clock) -> None:
    add_live(index, "first")
    add_candidate(index, "second")
    before = index.generations(), index.revision()

    def refuse(lease: Lease) -> None:
        with pytest.raises(LeaseLost, match="does not hold"):
            index.promote("second", lease=lease)
        assert (index.generations(), index.revision()) == before

    lease = take(index, holder="a")
    clock.advance(61)
    refuse(lease)  # expired, and nobody took it
    other = take(index, holder="b")
    refuse(lease)  # taken over
    index.release_lease(other)
    refuse(other)  # released
    index.promote("second", lease=take(index, holder="b"))
    assert index.live().name == "second"


def test_a_lease_hinders_no_promote_that_does_not_ask_for_it(index: CompanyIndex) -> None:
    take(index, holder="another")
    assert add_live(index, "first") == index.live().name
