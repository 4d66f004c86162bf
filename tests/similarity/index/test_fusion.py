import pytest

from similarity.index.fusion import RANK_CONSTANT, fuse, query_words


def test_one_ranking_is_kept() -> None:
    assert fuse([["b", "a", "c"]]) == ["b", "a", "c"]
    assert fuse([["b", "a", "c"], []]) == ["b", "a", "c"]


def test_no_ranking_gives_nothing() -> None:
    assert fuse([]) == fuse([[], []]) == []


def test_who_is_in_both_comes_before_who_is_first_in_one() -> None:
    assert fuse([["a", "x", "m"], ["b", "y", "m"]]) == ["m", "a", "b", "x", "y"]


def test_the_scores_are_those_of_the_paper() -> None:
    """1/(60+3) + 1/(60+3) is more than 1/(60+1) + 1/(60+6), which is more than 1/(60+2) + 1/(60+5)."""
    first = ["one", "two", "three", "-", "-2", "-3"]
    second = ["-4", "-5", "three", "-6", "two", "one"]
    assert fuse([first, second])[:3] == ["three", "one", "two"]
    assert RANK_CONSTANT == 60


def test_ties_are_ordered_by_id() -> None:
    assert fuse([["b", "d"], ["a", "c"]]) == ["a", "b", "c", "d"]
    assert fuse([["b", "a"], ["a", "b"]]) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Makes cable-cars, and makes SKI lifts.", ["makes", "cable", "cars", "and", "ski", "lifts"]),
        ("Straße CAFE\u0301 Ödeme", ["straße", "café", "ödeme"]),
        ("हिन्दी 株式会社", ["हिन्दी", "株式会社"]),
        ("3M 100% pure", ["3m", "100", "pure"]),
        ('" OR NEAR(a b)* -c ^d', ["or", "near", "a", "b", "c", "d"]),
        ("a\0b\ud800c", ["a", "b", "c"]),
        ("?! 🚀 🏳️‍🌈 ()", []),
        ("", []),
    ],
)
def test_the_words_of_a_text_are_distinct_and_in_order(text: str, words: list[str]) -> None:
    assert query_words(text) == words


def test_a_long_text_is_cut() -> None:
    assert query_words(" ".join(f"w{number}" for number in range(1000)), limit=3) == ["w0", "w1", "w2"]
    assert len(query_words(" ".join(f"w{number}" for number in range(1000)))) == 64
