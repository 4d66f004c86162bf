import io

import pytest

from similarity.cli.tables import Line, OutputFormat, because, show
from similarity.search.explanations.explanation import ExplainingPhrase, Side
from similarity.search.reranking.fact_effects import RankFact, Relation
from tests.factories import make_company


def test_colons_of_names_are_no_emoji_and_slashes_no_escapes() -> None:
    stream = io.StringIO()
    lines = [Line(company=make_company("a", name="Acme :smile: B\\[i]", country=":fire:"))]
    show(lines, OutputFormat.TABLE, title="Like :heart:", stream=stream)
    for word in (":smile:", "B\\[i]", ":fire:", ":heart:"):
        assert word in stream.getvalue()


def test_a_score_keeps_its_bar_and_a_table_without_title_has_none() -> None:
    stream = io.StringIO()
    show([Line(rank=1, score=0.8, company=make_company("a"))], OutputFormat.TABLE, stream=stream)
    heading, line = stream.getvalue().splitlines()
    assert heading.split()[:2] == ["#", "cosine"]
    assert line.split()[1:3] == ["0.80", "████████░░"]


def test_a_table_without_title_and_lines_prints_nothing() -> None:
    stream = io.StringIO()
    show([], OutputFormat.TABLE, stream=stream)
    assert stream.getvalue() == ""


def test_brackets_of_names_are_no_mark_up() -> None:
    stream = io.StringIO()
    names = ("Acme [formerly Foo]", "Beta [/formerly]", "[red]Gamma")
    lines = [Line(company=make_company(f"c{number}", name=name)) for number, name in enumerate(names)]
    show(lines, OutputFormat.TABLE, title="Competitors of [bold]", stream=stream)
    for word in ("[formerly", "Foo]", "[/formerly]", "[red]Gamma", "[bold]"):
        assert word in stream.getvalue()


def test_a_reason_is_one_line_with_the_first_pair_and_the_facts_that_moved_the_rank() -> None:
    phrases = [
        ExplainingPhrase(text=text, of=side, anchor=0, start=0, end=1, weight=0.1)
        for side, text in ((Side.ANCHOR, "brews beer"), (Side.HIT, "brews lager"), (Side.HIT, "sells cider"))
    ]
    reason = because([RankFact("industry", Relation.SAME, 0.47), RankFact("size", Relation.SMALLER, -0.9)], phrases)
    assert reason == "“brews lager” ↔ “brews beer”; same industry +0.47; smaller size -0.90"
    stream = io.StringIO()
    lines = [Line(rank=rank, company=make_company(str(rank)), because=reason if rank == 1 else None) for rank in (1, 2)]
    show(lines, OutputFormat.TABLE, stream=stream)
    assert stream.getvalue().splitlines()[-1] == f"1  {reason}"
    for output in (OutputFormat.JSON, OutputFormat.CSV):
        show(lines, output, stream=stream)
    assert stream.getvalue().count(reason) == 3


def test_a_table_in_a_pipe_is_as_wide_as_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    company = make_company(
        "x" * 90, name="Iron Works of the North", country="United States of America", industry="Steel " * 9
    )
    show([Line(rank=1, score=0.8, probability=0.5, company=company)], OutputFormat.TABLE, stream=stream)
    _, line = stream.getvalue().splitlines()
    assert all(each in line for each in (company.id, company.name, company.country, company.industry.strip()))


@pytest.mark.parametrize(("company_id", "name"), [("x" * 40, "Iron Works of the North"), ("works", "x" * 40)])
def test_no_id_and_no_name_is_cut_in_a_narrow_terminal(
    company_id: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    stream = io.StringIO()
    company = make_company(company_id, name=name, country="Bolivia", industry="Steel and iron")
    show([Line(rank=1, score=0.8, probability=0.5, company=company)], OutputFormat.TABLE, stream=stream)
    assert stream.getvalue().count("x") == 40


def test_a_usual_terminal_shows_whole_ids_instead_of_industries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    company = make_company("maisons-du-monde", name="Maisons du Monde S.A.", country="France", industry="Furniture")
    show([Line(rank=1, score=0.8, probability=0.5, company=company)], OutputFormat.TABLE, stream=stream)
    assert "maisons-du-monde" in stream.getvalue()
    assert "Furniture" not in stream.getvalue()
