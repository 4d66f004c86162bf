"""The plan multiplies figures that are really in the results, and the guide prints what it says."""

from pathlib import Path

import pytest

from benchmarks.capacity import FIGURES, Figure, main, plan

ROOT = Path(__file__).parents[2]
EIGHT_MILLION = 8_000_000


def of(companies: int) -> dict[str, str]:
    return {what: much for what, much, _ in plan(companies)}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.quoted)
def test_every_figure_is_in_the_file_it_names(figure: Figure) -> None:
    assert figure.quoted in (ROOT / "benchmarks" / "results" / figure.file).read_text(encoding="utf-8")
    assert f"{figure.value:,}" in figure.quoted


def test_eight_million_companies() -> None:
    found = of(EIGHT_MILLION)
    assert found["memory beside the heap, one copy"] == "3.4 GiB"  # 8e6 x (384 + 4 + 4 x 16) / 2**30
    assert found["whole vectors in memory as well"] == "11.4 GiB"
    assert found["disk, one copy"] == "21.2 GiB"
    assert found["disk, while 2 generations stand"] == "85.0 GiB"
    assert found["to embed everything"] == "8.6 hours"
    assert found["data nodes of 16 GiB"] == "2, 4"


def test_a_few_companies_still_take_two_nodes() -> None:
    assert of(1_000)["data nodes of 64 GiB"] == "2, 2"


def test_a_hundred_million_companies_take_more_nodes() -> None:
    assert of(100_000_000)["data nodes of 16 GiB"] == "11, 47"  # 2 x 42.1 GiB and 2 x 185.2 GiB in halves of 16


def test_the_guide_prints_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--companies", str(EIGHT_MILLION)])
    assert capsys.readouterr().out in (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--companies", "0"])
    assert "at least one company" in capsys.readouterr().err
