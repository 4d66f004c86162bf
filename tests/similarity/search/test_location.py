"""Where a company is in a ranking, on a real embedded index: the rank of the pages, or what removes it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from similarity.company import EmbeddedCompany, Vector
from similarity.index.filters import FieldFilter
from similarity.index.sqlite import SqliteIndex
from similarity.model.calibration import Calibration
from similarity.model.ranker import Ranker
from similarity.search.errors import UnknownCompany
from similarity.search.location import Place, Removal, RemovedBy
from similarity.search.queries.question import Anchor, Question
from similarity.search.searcher import Searcher
from tests.contract.steps import add_live
from tests.factories import DIMENSION, ENCODER_ID, make_embedded, unit_vector

CALIBRATION = Calibration(slope=10.0, intercept=-5.0)
MANY = 1_400


def at_cosine(cosine: float) -> Vector:
    vector = np.zeros(DIMENSION)
    vector[:2] = cosine, np.sqrt(1 - cosine**2)
    return vector.astype(np.float32)


def companies() -> list[EmbeddedCompany]:
    """The anchor, companies `c0`, `c1` ... by falling cosine, the duplicate of `c2`, and that of the anchor."""
    return [
        make_embedded("anchor", vector=at_cosine(1.0), domain="anchor.com"),
        *(
            make_embedded(
                f"c{number}",
                vector=at_cosine(0.95 - 0.9 * number / MANY),
                country="in" if number % 2 else "out",
                domain=f"c{number}.com",
            )
            for number in range(MANY)
        ),
        make_embedded("twin", vector=at_cosine(0.9), domain="c2.com"),
        make_embedded("branch", vector=at_cosine(0.5), domain="anchor.com"),
    ]


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    index = SqliteIndex(tmp_path_factory.mktemp("location") / "index.db")
    add_live(index, "first", calibration=CALIBRATION)
    index.upsert("first", companies())
    yield Searcher(index)
    index.close()


def asked(
    *,
    filters: Sequence[FieldFilter] = (),
    exclude: Sequence[str] = (),
    min_probability: float | None = None,
    unlike: Sequence[str] = (),
) -> Question:
    return Question(
        anchors=[Anchor(company="anchor")],
        negatives=[Anchor(company=each) for each in unlike],
        filters=filters,
        exclude=exclude,
        min_probability=min_probability,
    )


def place(searcher: Searcher, company: str, question: Question | None = None) -> Place:
    return searcher.locate(question or asked(), company).place


def removals(searcher: Searcher, company: str, question: Question | None = None) -> list[Removal]:
    found = place(searcher, company, question)
    assert found.rank is None
    return list(found.removals)


@pytest.mark.parametrize("company", ["c0", "c40", "c99", "c519", "c999"])
def test_the_rank_is_that_of_the_pages(searcher: Searcher, company: str) -> None:
    found = place(searcher, company)
    question = asked()
    pages: dict[str, int] = {}
    ranking = searcher.search(question)
    while True:
        pages |= {hit.company.id: hit.rank for hit in ranking.hits}
        if ranking.next is None or company in pages:
            break
        ranking = searcher.search(question, after=ranking.next)
    assert found.rank == pages[company]
    assert found.removals == ()


def test_beyond_the_last_rank_the_nearer_companies_are_counted(searcher: Searcher) -> None:
    found = place(searcher, "c1300")
    assert (found.rank, found.removals) == (None, ())
    assert found.nearer == 1_302  # with the twin and the branch, which are no hits of their own
    assert found.score == pytest.approx(0.95 - 0.9 * 1_300 / MANY, abs=1e-5)


def test_a_filter_that_it_does_not_pass_is_named(searcher: Searcher) -> None:
    inside = FieldFilter(field="country", any_of=("in",))
    other = FieldFilter(field="attributes.size", at_least=3)
    assert removals(searcher, "c0", asked(filters=[inside, other])) == [
        Removal(RemovedBy.FILTER, field="country"),
        Removal(RemovedBy.FILTER, field="attributes.size"),
    ]
    assert place(searcher, "c5", asked(filters=[inside])).rank == 3


@pytest.mark.parametrize(
    ("company", "question", "expected"),
    [
        ("anchor", asked(), Removal(RemovedBy.ANCHOR, "anchor")),
        ("branch", asked(), Removal(RemovedBy.ANCHOR, "anchor")),
        ("c7", asked(unlike=["c7"]), Removal(RemovedBy.NEGATIVE, "c7")),
        ("c7", asked(exclude=["c7"]), Removal(RemovedBy.EXCLUDE, "c7")),
        ("twin", asked(exclude=["c2"]), Removal(RemovedBy.EXCLUDE, "c2")),
        ("twin", asked(exclude=["c2.com"]), Removal(RemovedBy.EXCLUDE, "twin")),
        ("twin", asked(), Removal(RemovedBy.DUPLICATE, "c2")),
        ("c900", asked(min_probability=0.5), Removal(RemovedBy.MIN_PROBABILITY)),
    ],
)
def test_what_removes_a_company_is_named(
    searcher: Searcher, company: str, question: Question, expected: Removal
) -> None:
    assert removals(searcher, company, question) == [expected]


def test_the_probability_is_that_of_the_nearest_of_several_anchors(searcher: Searcher) -> None:
    question = Question(anchors=[Anchor(company="anchor"), Anchor(company="c600")], k=50)
    for hit in searcher.search(question).hits[::10]:
        found = place(searcher, hit.company.id, question)
        assert (found.rank, found.probability) == (hit.rank, hit.probability)


@pytest.mark.parametrize("place_in_ranking", [0, 150, 230])
def test_the_probability_is_that_of_the_hit_also_beside_duplicates_and_at_a_minimum(
    tmp_path: Path, place_in_ranking: int
) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    ranker = Ranker(encoder_id=ENCODER_ID, cosine=1.0, shared_words=5.0, intercept=-2.0)
    add_live(index, "first", ranker=ranker)
    words = ("Makes beer", "Makes wine and beer", "Sells cars", "Rents out cars and bikes", "Makes tools", "Sells wine")
    index.upsert(
        "first", [make_embedded("anchor", vector=at_cosine(1.0), description="Makes beer and rents out cars.")]
    )
    index.upsert(
        "first",
        [
            make_embedded(
                f"c{number}",
                vector=at_cosine(0.95 - number / 1_000),
                domain=f"c{number - number % 8 // 7}.com",  # each eighth is a duplicate
                description=words[number % 8 // 7 or number % len(words)],
            )
            for number in range(400)
        ],
    )
    searcher = Searcher(index)
    question = Question(anchors=[Anchor(company="anchor")], k=250)
    hit = searcher.search(question).hits[place_in_ranking]
    at_limit = replace(question, min_probability=hit.probability)
    assert hit.company.id in [each.company.id for each in searcher.search(at_limit).hits]
    found = place(searcher, hit.company.id, at_limit)
    assert (found.rank, found.probability, found.removals) == (hit.rank, hit.probability, ())
    index.close()


def test_without_an_encoder_the_facts_are_given_and_the_phrases_are_said_to_be_missing(searcher: Searcher) -> None:
    location = searcher.locate(asked(), "c3")
    assert location.phrases is None
    assert "no phrases were computed" in location.warnings[0]


def test_an_unknown_company_is_refused(searcher: Searcher) -> None:
    with pytest.raises(UnknownCompany):
        searcher.locate(asked(), "nobody at all")


def test_equal_vectors_have_the_rank_of_their_id(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first")
    index.upsert("first", [make_embedded(f"c{number}", vector=unit_vector(1)) for number in range(30)])
    searcher = Searcher(index)
    question = Question(anchors=[Anchor(company="c0")], k=30)
    for hit in searcher.search(question).hits:
        assert searcher.locate(question, hit.company.id).place.rank == hit.rank
    index.close()
