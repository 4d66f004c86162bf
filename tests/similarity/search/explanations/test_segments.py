"""The lines of business of a company, and searches that are about one of them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from similarity.company import Company
from similarity.errors import InvalidInput
from similarity.index.sqlite import SqliteIndex
from similarity.search.errors import EncoderNotLoaded
from similarity.search.explanations.explainer import Explainer
from similarity.search.explanations.segments import MOST_SEGMENTS
from similarity.search.queries.question import Anchor, Question
from similarity.search.searcher import Searcher
from tests.contract.steps import add_live
from tests.factories import make_company, make_embedded
from tests.word_encoder import WordEncoder

SHOES, BOATS, MILK = np.eye(4, dtype=np.float32)[:3]
GROUP = make_company(
    "group",
    name="Group AG",
    description="They design leather shoes for runners. They rent out sailing boats on alpine lakes. "
    "Their old shoes factory began in 1950. They repair worn shoes in city workshops. They own 4,000 boats. "
    "They sell wooden shoes online. They stitch safety shoes for builders. They dye dancing shoes by hand. "
    "They paint racing boats for clubs. They insure fishing boats against storms. They tow broken boats home. "
    "They varnish old boats in winter. They resole climbing shoes overnight.",
)


@pytest.fixture
def encoder() -> WordEncoder:
    return WordEncoder("shoes", "boats", "milk")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first", dimension=4)
    names = {"cobbler": SHOES, "shipyard": BOATS, "dairy": MILK}
    mixed = (2 * SHOES + BOATS) / np.sqrt(5, dtype=np.float32)
    documents = [make_embedded(name, name=name.title(), vector=vector) for name, vector in names.items()]
    group = make_embedded("group", vector=mixed, name=GROUP.name, description=GROUP.description, industry="Dairy")
    index.upsert("first", [group, *documents])
    yield index
    index.close()


def texts(encoder: WordEncoder, company: Company) -> list[str]:
    return [segment.text for segment in Explainer(encoder).segments([company])[0]]


def hits(searcher: Searcher, *anchors: Anchor, negatives: tuple[Anchor, ...] = ()) -> list[str]:
    return [hit.company.id for hit in searcher.search(Question(anchors=anchors, negatives=negatives)).hits]


def test_phrases_about_the_same_business_are_one_segment_without_history_and_quantities(encoder: WordEncoder) -> None:
    assert texts(encoder, GROUP) == [
        "design leather shoes for runners; repair worn shoes in city workshops; sell wooden shoes online; "
        "stitch safety shoes for builders; dye dancing shoes by hand; resole climbing shoes overnight",
        "rent out sailing boats on alpine lakes; paint racing boats for clubs; insure fishing boats against storms; "
        "tow broken boats home; varnish old boats in winter",
    ]


@pytest.mark.parametrize(
    "description",
    [
        "They design leather shoes for runners and hikers. They rent out large sailing boats on alpine lakes.",
        GROUP.description.replace("boats", "shoes"),
        GROUP.description.replace("boats", "shoes") + " They like cold milk.",
    ],
    ids=["short", "one business", "a few words beside it"],
)
def test_there_are_none(encoder: WordEncoder, description: str) -> None:
    assert texts(encoder, make_company(description=description)) == []


def test_there_are_at_most_nine(encoder: WordEncoder) -> None:
    words = [f"trade{letter}" for letter in "abcdefghijkl"]
    many = make_company(description=" ".join(f"They plan large modern {word} works for clients." for word in words))
    assert len(texts(WordEncoder(*words), many)) == MOST_SEGMENTS


def test_a_search_is_about_the_segment_only(index: SqliteIndex, encoder: WordEncoder) -> None:
    searcher = Searcher(index, {encoder.encoder_id: encoder})
    found, segments, _ = searcher.segments("Group AG")
    assert found.document.id == "group"
    assert [segment.number for segment in segments] == [1, 2]
    assert hits(searcher, Anchor(company="group"))[0] == "cobbler"
    assert hits(searcher, Anchor(company="group", segment=2))[0] == "shipyard"
    unlike_shoes = (Anchor(company="group", segment=1),)
    assert hits(searcher, Anchor(company="group"), negatives=unlike_shoes)[0] == "shipyard"


def test_phrases_come_from_the_segment_and_stand_in_the_whole_description(
    index: SqliteIndex, encoder: WordEncoder
) -> None:
    index.upsert("first", [make_embedded("yard", vector=BOATS, description="They build fast boats and old shoes.")])
    question = Question(anchors=[Anchor(company="group", segment=2)], explain=10)
    ranking = Searcher(index, {encoder.encoder_id: encoder}).search(question)
    phrases = [each for hit in ranking.hits for each in hit.phrases or () if each.of == "anchor"]
    assert phrases
    assert all("boats" in each.text for each in phrases)
    assert all(GROUP.description[each.start : each.end] == each.text for each in phrases)


@pytest.mark.parametrize(("company", "number"), [("group", 3), ("cobbler", 1)])
def test_a_segment_that_does_not_exist_is_refused(
    index: SqliteIndex, encoder: WordEncoder, company: str, number: int
) -> None:
    searcher = Searcher(index, {encoder.encoder_id: encoder})
    with pytest.raises(InvalidInput, match=f"there is no segment {number} of .*: its description"):
        hits(searcher, Anchor(company=company, segment=number))


def test_only_companies_have_segments() -> None:
    with pytest.raises(InvalidInput, match="only a company has segments"):
        Anchor(text="sells shoes", segment=1)


def test_without_its_encoder_a_generation_has_no_segments(index: SqliteIndex) -> None:
    with pytest.raises(EncoderNotLoaded):
        Searcher(index).segments("group")
    with pytest.raises(EncoderNotLoaded):
        hits(Searcher(index), Anchor(company="group", segment=1))
