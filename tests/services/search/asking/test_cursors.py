"""A cursor says where a page ended, and nobody else can write one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.asking.cursors import Cursors
from services.search.asking.question_schemas import MAX_CURSOR_CHARACTERS
from services.search.wire.problem_documents import Problem
from similarity.search.ranking_page import Position

CURSORS = Cursors(b"key" * 10)
positions = st.builds(
    Position,
    generation=st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True),
    digest=st.just("d" * 32),
    score=st.floats(-1, 1),
    id=st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True),
    rank=st.integers(1, 1000),
)


@given(positions)
def test_a_cursor_is_read_as_it_was_written(position: Position) -> None:
    cursor = CURSORS.write(position)
    assert CURSORS.read(cursor, digest=position.digest) == position
    assert len(cursor) <= MAX_CURSOR_CHARACTERS


@given(positions, st.data())
def test_a_cursor_that_was_changed_anywhere_is_refused(position: Position, data: st.DataObject) -> None:
    cursor = CURSORS.write(position)
    # Not the last letter: some of its bits stand for nothing.
    place = data.draw(st.integers(0, len(cursor) - 2))
    letter = data.draw(st.sampled_from("ABCXYZabcxyz0189-_").filter(lambda letter: letter != cursor[place]))
    with pytest.raises(Problem) as refused:
        CURSORS.read(cursor[:place] + letter + cursor[place + 1 :], digest=position.digest)
    assert refused.value.kind.slug == "wrong-cursor"


def test_a_cursor_of_another_question_or_another_process_is_refused() -> None:
    cursor = CURSORS.write(Position(generation="g", digest="d" * 32, score=0.5, id="a", rank=10))
    with pytest.raises(Problem, match="belongs to another query"):
        CURSORS.read(cursor, digest="e" * 32)
    with pytest.raises(Problem, match="this process did not write"):
        Cursors(b"other key").read(cursor, digest="d" * 32)
