"""Exponential back-off with full jitter."""

from itertools import islice

from similarity.backoff import backoff


def test_the_ceiling_doubles_up_to_the_longest() -> None:
    assert list(islice(backoff(1, 5, chance=lambda: 1.0), 5)) == [1, 2, 4, 5, 5]
    assert list(islice(backoff(8, 5, chance=lambda: 1.0), 2)) == [5, 5]


def test_each_pause_is_a_random_share_of_its_ceiling() -> None:
    shares = iter([0.0, 0.5, 0.25])
    assert list(islice(backoff(1, 10, chance=lambda: next(shares)), 3)) == [0, 1, 1]
    drawn = list(islice(backoff(1, 1), 1_000))
    assert 0 <= min(drawn) < 0.1 < 0.9 < max(drawn) < 1


def test_it_goes_on_for_as_long_as_an_outage_lasts() -> None:
    assert next(islice(backoff(1, 3_600, chance=lambda: 1.0), 10_000, None)) == 3_600
