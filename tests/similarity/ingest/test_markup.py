import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.ingest.markup import without_markup


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<p>Makes <b>nuts</b> &amp; bolts.</p>", "Makes nuts & bolts."),
        ("Line one<br/>line two", "Line one line two"),
        ("<ul><li>Steel</li><li>Iron</li></ul>", "Steel Iron"),
        ("<script>alert(1)</script>Sells <em>shoes</em>.<style>p {}</style>", "Sells shoes."),
        ("Caf&eacute; &#8211; bar", "Café – bar"),
        ("<!-- draft -->Sells tea.", "Sells tea."),
        ("<style>Sells tea.", "Sells tea."),
        ("AT&amp;T", "AT&T"),
        ('<P CLASS="x">Makes<o:p></o:p> nuts<BR>', "Makes nuts"),
        ("<b>Profit</b> <EUR 5m, sales >EUR 2m", "Profit <EUR 5m, sales >EUR 2m"),
    ],
)
def test_markup_is_removed(text: str, visible: str) -> None:
    assert without_markup(text) == visible


@pytest.mark.parametrize(
    "text",
    [
        "fewer than < 10 and > 5 shops",
        "R&D for AT&T",
        "a <- b",
        "x << 1",
        "I <3 shoes",
        "  two  spaces ",
        "revenue <EUR 5m and profit >EUR 2m",
        "write to <info@acme.com>",
        "List<String> for Java",
        "Acme <https://acme.com>",
        "a <b@acme.com>",
    ],
)
def test_plain_text_stays(text: str) -> None:
    assert without_markup(text) == text


@given(st.text(alphabet="<>/!-apscript &;\n", max_size=200))
def test_any_text_can_be_cleaned(text: str) -> None:
    assert "<script>" not in without_markup(text) or "&lt;" in text


def test_a_long_text_of_open_tags_takes_linear_time() -> None:
    assert without_markup("<script" * 50_000).startswith("<script")


@pytest.mark.parametrize("part", ["<a", "<abc ", "<eur >", "</", "<a:"])
def test_a_text_full_of_what_is_no_tag_takes_linear_time(part: str) -> None:
    assert without_markup(part * 50_000).startswith("<")
    assert without_markup(f"<{part[1:] * 100_000}").startswith("<")


def test_a_number_that_is_too_long_for_python_is_no_entity() -> None:
    text = f"Makes nuts &#{'9' * 5_000}; &amp; bolts"
    assert without_markup(text) == text
