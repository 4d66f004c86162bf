import io

from similarity.tables import Line, OutputFormat, show
from tests.factories import make_company


def test_brackets_of_names_are_no_mark_up() -> None:
    stream = io.StringIO()
    names = ("Acme [formerly Foo]", "Beta [/formerly]", "[red]Gamma")
    lines = [Line(company=make_company(f"c{number}", name=name)) for number, name in enumerate(names)]
    show(lines, OutputFormat.TABLE, title="Competitors of [bold]", stream=stream)
    for word in ("[formerly", "Foo]", "[/formerly]", "[red]Gamma", "[bold]"):
        assert word in stream.getvalue()
