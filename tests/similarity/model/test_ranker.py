"""The ranker's record: its JSON, and what is refused."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from similarity.model.calibration import Calibration
from similarity.model.ranker import ComparableWeights, Ranker, ranker_from_json, ranker_of, ranker_to_json

WEIGHTS = ComparableWeights(business=0.3, size_gap=-0.7, size_unknown=-2.0, same_country=1.1, slope=1.2, intercept=-0.5)
RANKER = Ranker(encoder_id="e", cosine=26.0, shared_words=5.0, same_industry=0.9, sparsity=9.0, intercept=-24.0)


@pytest.mark.parametrize(
    "ranker", [RANKER, replace(RANKER, comparable=WEIGHTS), replace(RANKER, languages=("en", "sv"))]
)
def test_json_keeps_every_weight(ranker: Ranker) -> None:
    assert ranker_from_json(ranker_to_json(ranker)) == ranker
    assert ranker_from_json(None) is None


def test_a_ranker_for_english_can_be_read_by_earlier_releases() -> None:
    assert "languages" not in (ranker_to_json(RANKER) or {})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.pop("cosine"), "is not an object of"),
        (lambda r: r.update(bias=1), "is not an object of"),
        (lambda r: r.update(encoder_id=3), "encoder_id is not a text"),
        (lambda r: r.update(cosine=True), "cosine is True, not a finite number"),
        (lambda r: r.update(cosine=float("nan")), "not a finite number"),
        (lambda r: r.update(cosine=10**400), "not a finite number"),
        (lambda r: r.update(cosine=-1), "cosine has the wrong sign"),
        (lambda r: r["comparable"].update(size_gap=1), "comparable.size_gap has the wrong sign"),
        (lambda r: r["comparable"].update(slope=-1), "comparable.slope has the wrong sign"),
        (lambda r: r.update(languages=["English"]), "not a list of ISO 639 codes"),
        (lambda r: r.update(languages="en"), "not a list of texts"),
        (lambda r: r.update(comparable=[]), "comparable is not an object of"),
    ],
)
def test_a_ranker_with_an_error_is_refused(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    content = asdict(replace(RANKER, comparable=WEIGHTS))
    change(content)
    with pytest.raises(ValueError, match=reason):
        ranker_from_json(content)


def test_a_calibration_is_a_ranker_of_the_cosine_alone() -> None:
    assert ranker_of(Calibration(slope=4.0, intercept=-2.0), "e") == Ranker(encoder_id="e", cosine=4.0, intercept=-2.0)
    assert ranker_of(Calibration(slope=-4.0, intercept=0.0), "e") is None
