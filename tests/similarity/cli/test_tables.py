import io

from similarity.cli.tables import Line, OutputFormat, show
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


def test_brackets_of_names_are_no_mark_up() -> None:
    stream = io.StringIO()
    names = ("Acme [formerly Foo]", "Beta [/formerly]", "[red]Gamma")
    lines = [Line(company=make_company(f"c{number}", name=name)) for number, name in enumerate(names)]
    show(lines, OutputFormat.TABLE, title="Competitors of [bold]", stream=stream)
    for word in ("[formerly", "Foo]", "[/formerly]", "[red]Gamma", "[bold]"):
        assert word in stream.getvalue()
