"""The pairs that are suggested are uncertain or ranked differently by cosine and by the second stage, and new."""

import pytest

from similarity.feedback.active_learning import (
    Candidate,
    Suggestion,
    candidates_of,
    disagreement,
    most_worth_labelling,
    uncertainty,
)

DEPTH = 100


def candidate(
    hit: str, *, anchor: str = "nike", probability: float | None = 0.99, ranks: tuple[int | None, int | None] = (1, 1)
) -> Candidate:
    return Candidate(
        anchor=anchor, hit=hit, score=0.7, probability=probability, cosine_rank=ranks[0], business_rank=ranks[1]
    )


def suggested(*candidates: Candidate, judged: tuple[tuple[str, str], ...] = (), k: int = 10) -> list[Suggestion]:
    return most_worth_labelling(candidates, judged=judged, depth=DEPTH, k=k)


def hits(suggestions: list[Suggestion]) -> list[str]:
    return [each.candidate.hit for each in suggestions]


@pytest.mark.parametrize(("probability", "expected"), [(0.5, 1), (0.0, 0), (1.0, 0), (0.25, 0.5), (0.75, 0.5)])
def test_uncertainty_is_highest_at_one_half(probability: float, expected: float) -> None:
    assert uncertainty(probability) == expected


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [((1, 1), 0), ((1, 51), 0.5), ((51, 1), 0.5), ((1, None), 1), ((None, 100), 0.01), ((None, None), 0)],
)
def test_disagreement_is_the_share_of_the_depth_that_a_hit_moves(
    ranks: tuple[int | None, int | None], expected: float
) -> None:
    assert disagreement(*ranks, DEPTH) == pytest.approx(expected)


def test_the_most_uncertain_comes_first() -> None:
    found = suggested(candidate("sure"), candidate("even", probability=0.5), candidate("likely", probability=0.8))
    assert hits(found) == ["even", "likely", "sure"]
    assert found[0].why == ("uncertain: a competitor with probability 0.50",)
    assert found[2].why == ("nobody has judged this pair yet",)


def test_a_hit_that_the_second_stage_brings_up_comes_before_one_that_all_agree_on() -> None:
    found = suggested(candidate("agreed"), candidate("raised", ranks=(None, 3)), candidate("moved", ranks=(5, 25)))
    assert hits(found) == ["raised", "moved", "agreed"]
    assert found[0].why == ("the rankings disagree: rank below 100 by cosine, 3 by business",)


def test_both_signs_count_and_both_are_said() -> None:
    both = candidate("both", probability=0.5, ranks=(1, 61))
    found = suggested(candidate("uncertain", probability=0.5), both)
    assert hits(found) == ["both", "uncertain"]
    assert found[0].worth == pytest.approx(0.8)
    assert len(found[0].why) == 2


def test_without_a_calibration_disagreement_alone_decides() -> None:
    found = suggested(candidate("a", probability=None), candidate("b", probability=None, ranks=(1, 90)))
    assert hits(found) == ["b", "a"]
    assert not any("uncertain" in reason for each in found for reason in each.why)


def test_what_was_judged_is_not_suggested_whichever_side_was_the_anchor() -> None:
    pairs = (candidate("adidas"), candidate("nike", anchor="adidas"), candidate("puma"))
    assert hits(suggested(*pairs, judged=(("adidas", "nike"),))) == ["puma"]


def test_a_pair_is_suggested_once_from_the_side_where_it_is_worth_more() -> None:
    [only] = suggested(candidate("adidas"), candidate("nike", anchor="adidas", probability=0.5))
    assert only.candidate.anchor == "adidas"


def test_no_more_than_k_are_suggested_and_ties_have_one_order() -> None:
    assert hits(suggested(candidate("c"), candidate("a"), candidate("b"), k=2)) == ["a", "b"]


def test_candidates_are_the_hits_of_both_rankings_with_their_ranks() -> None:
    found = candidates_of(
        "nike",
        by_cosine=[("a", 0.9), ("b", 0.8)],
        by_business=[("c", 0.1), ("a", 0.9)],
        probabilities={"a": 0.7, "b": None},
    )
    ranks = {each.hit: (each.cosine_rank, each.business_rank, each.score, each.probability) for each in found}
    assert ranks == {"a": (1, 2, 0.9, 0.7), "b": (2, None, 0.8, None), "c": (None, 1, 0.1, None)}
