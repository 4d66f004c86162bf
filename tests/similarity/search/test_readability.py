"""Texts that the encoder cannot read: no probability is given for them, and the order of hits stays."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from similarity.index.sqlite import SqliteIndex
from similarity.model.calibration import Calibration
from similarity.search.export import export_neighbours
from similarity.search.queries.question import Anchor, Question
from similarity.search.searcher import Searcher
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.fakes import CountingEncoder

GERMAN = "Das Unternehmen entwickelt Software für Krankenhäuser und verkauft sie an Kliniken in der ganzen Region."
CHINESE = "该公司为医院开发软件，并将其出售给整个地区的诊所。"
ENGLISH = "The company develops software for hospitals and sells it to clinics across the region."


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first", calibration=Calibration(slope=8, intercept=-4))
    companies = [make_embedded(each, description=f"{ENGLISH} Number {each}.") for each in ("a", "b", "c")]
    german = make_embedded("g", description=GERMAN, language="de")
    index.upsert("first", [*companies, german, make_embedded("z", description=CHINESE, language="und")])
    yield index
    index.close()


@pytest.fixture
def searcher(index: SqliteIndex) -> Searcher:
    encoder = CountingEncoder()
    return Searcher(index, {encoder.encoder_id: encoder})


def test_a_hit_that_cannot_be_read_has_no_probability_and_keeps_its_rank(searcher: Searcher) -> None:
    hits = searcher.search("a").hits
    assert {hit.company.id for hit in hits if hit.probability is None} == {"g", "z"}
    assert {hit.company.id for hit in hits if hit.warning} == {"g", "z"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for reference, is_given in (("b", True), ("g", False)):
        place = searcher.locate(Question(anchors=[Anchor(company="a")]), reference).place
        assert (place.probability is not None, place.rank is not None) == (is_given, True)


@pytest.mark.parametrize(
    ("question", "warnings"),
    [
        (Question(anchors=[Anchor(company="g")]), ["The description is not in English ('de')"]),
        (Question(anchors=[Anchor(company="z")]), ["The description is not in English, the only"]),
        (Question(anchors=[Anchor(text=GERMAN)]), ["The text is not in English ('de')"]),
        (Question(anchors=[Anchor(company="a")], negatives=[Anchor(company="g")]), ["The description is not in"]),
        (Question(anchors=[Anchor(text=ENGLISH)]), []),
    ],
)
def test_a_query_that_cannot_be_read_has_no_probabilities(
    searcher: Searcher, question: Question, warnings: list[str]
) -> None:
    ranking = searcher.search(question)
    found = [each.warning for each in (*ranking.anchors, *ranking.negatives) if each.warning]
    assert len(found) == len(warnings)
    assert all(text.startswith(warning) for text, warning in zip(found, warnings, strict=True))
    assert any(hit.probability is not None for hit in ranking.hits) == (not warnings)
    location = searcher.locate(question, "b")
    assert (location.place.probability is None, list(location.warnings)) == (bool(warnings), found)


def test_the_export_has_no_probability_of_what_cannot_be_read(index: SqliteIndex, tmp_path: Path) -> None:
    export_neighbours(index, index.live(), tmp_path / "n.parquet", k=5)
    for row in pq.read_table(tmp_path / "n.parquet").to_pylist():
        is_unread = not {row["company_id"], row["similar_id"]}.isdisjoint({"g", "z"})
        assert (row["probability"] is None) == is_unread
