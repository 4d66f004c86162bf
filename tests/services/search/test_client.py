"""The Python client on the real application: what it sends is taken, and what is answered it reads in full."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.client import (
    Anchor,
    AsyncClient,
    Client,
    ContestedName,
    FieldFilter,
    InvalidRequest,
    Problem,
    Question,
    Retries,
    UnknownCompany,
)
from similarity.index.sqlite import SqliteIndex
from tests.fakes import CountingEncoder
from tests.services.search.corpus import CALIBRATION, filled_index

URL = "http://testserver"
Asks = Callable[..., Any]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("client")
    with (
        closing(filled_index(folder / "index.db", calibration=CALIBRATION)) as index,
        TestClient(create_app(index=index, encoder=CountingEncoder())) as http,
    ):
        yield http


@pytest.fixture(params=["plain", "async"])
def ask(request: pytest.FixtureRequest, http: TestClient) -> Asks:
    """Calls a method of either client on the application."""

    def plainly(method: str, *args: Any, **options: Any) -> Any:
        answer = getattr(Client(URL, http=http), method)(*args, **options)
        return list(answer) if isinstance(answer, Iterator) else answer

    def with_async(method: str, *args: Any, **options: Any) -> Any:
        async def run() -> Any:
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(http.app)) as own:
                answer = getattr(AsyncClient(URL, http=own), method)(*args, **options)
                return [each async for each in answer] if isinstance(answer, AsyncIterator) else await answer

        return asyncio.run(run())

    return plainly if request.param == "plain" else with_async


def test_a_ranking_is_read_in_full(ask: Asks) -> None:
    ranking = ask("similar", "acme.com", k=2)
    assert [(hit.rank, hit.company.id) for hit in ranking.hits] == [(1, "boots"), (2, "clogs")]
    first = ranking.hits[0]
    assert first.score == pytest.approx(0.9, abs=1e-4)
    assert first.probability == pytest.approx(0.982, abs=1e-3)
    assert first.company.attributes == {"employees": 12}
    assert first.updated_at is not None
    (anchor,) = ranking.anchors
    assert (anchor.company.id, anchor.asked, anchor.redirected_from) == ("acme", "acme.com", "acme.com")
    assert (ranking.generation, ranking.model.encoder_id, ranking.approximate) == ("first", "encoder-1", False)


def test_a_company_is_located_in_a_ranking(ask: Asks) -> None:
    clogs = ask("locate", "clogs", "acme.com")
    assert (clogs.company.id, clogs.rank, clogs.nearer, clogs.removed_by) == ("clogs", 2, 1, ())
    assert clogs.score == ask("similar", "acme.com", k=2).hits[1].score
    excluded = ask("locate", "clogs", Question.about("acme.com", exclude="clogs"))
    assert (excluded.rank, [(each.by, each.company) for each in excluded.removed_by]) == (None, [("exclude", "clogs")])


def test_everything_that_can_be_said_is_taken(ask: Asks) -> None:
    ranking = ask(
        "similar",
        Anchor(company="acme", weight=2),
        "Boots GmbH",
        negatives=["as-nord"],
        country=["France", "Spain", "United States"],
        filters=[FieldFilter(field="industry", none_of=("Airlines",))],
        exclude="zapatos",
        rank="comparable",
        min_probability=0.01,
        k=5,
        reasons=0,
        fields=["name"],
    )
    assert [hit.company.id for hit in ranking.hits] == ["clogs"]
    assert [hit.company.country for hit in ranking.hits] == [""]
    assert [negative.company.id for negative in ranking.negatives] == ["as-nord"]


def test_a_description_is_taken(ask: Asks) -> None:
    ranking = ask("similar_text", "makes shoes of wood", k=3)
    assert len(ranking.hits) == 3
    assert ranking.anchors[0].text == "makes shoes of wood"


def test_pages_cover_all_hits_once(ask: Asks) -> None:
    whole = [hit.company.id for hit in ask("similar", "acme", k=10).hits]
    pages = ask("pages", "acme", k=2)
    assert [hit.company.id for page in pages for hit in page.hits] == whole
    assert [len(page.hits) for page in pages][:2] == [2, 2]
    hits = ask("hits", "acme", k=2)
    assert [hit.company.id for hit in hits] == whole
    assert [hit.rank for hit in hits] == list(range(1, len(whole) + 1))


def test_a_batch_has_an_answer_or_a_problem_each(ask: Asks) -> None:
    found, unknown, contested = ask("batch", ["acme", Question.about("bootz", k=3), "delta"])
    assert found.hits[0].company.id == "boots"
    assert isinstance(unknown, UnknownCompany)
    assert [company.id for company in unknown.suggestions] == ["boots"]
    assert isinstance(contested, ContestedName)


def test_one_unknown_anchor_among_several_is_a_miss(ask: Asks) -> None:
    ranking = ask("similar", "acme", "bootz")
    (miss,) = ranking.misses
    assert (miss.asked, miss.role, miss.problem) == ("bootz", "anchor", "unknown-company")
    assert [company.id for company in miss.suggestions] == ["boots"]


def test_no_known_anchor_is_an_error_with_suggestions(ask: Asks) -> None:
    with pytest.raises(UnknownCompany) as raised:
        ask("similar", "bootz")
    assert [company.id for company in raised.value.suggestions] == ["boots"]


def test_a_contested_name_is_an_error_with_candidates(ask: Asks) -> None:
    with pytest.raises(ContestedName) as raised:
        ask("company", "Delta")
    assert {company.id for company in raised.value.candidates} == {"clogs", "delta-air"}


def test_what_is_out_of_range_is_named(ask: Asks) -> None:
    with pytest.raises(InvalidRequest) as raised:
        ask("similar", "acme", k=251)
    assert any("k" in offence.parameter for offence in raised.value.errors)


def test_companies_are_looked_up(ask: Asks) -> None:
    assert [company.id for company in ask("find", "boo").companies] == ["boots"]
    found = ask("find", "boo")
    assert ([company.name for company in found], len(found)) == (["Boots GmbH"], 1)
    stored = ask("company", "boots.de")
    assert (stored.company.name, stored.redirected_from) == ("Boots GmbH", "boots.de")
    assert stored.company.as_company().attributes == {"employees": 12}


def test_a_slash_in_a_name_reaches_the_service(ask: Asks) -> None:
    assert ask("company", "A/S Nord").company.id == "as-nord"


def test_a_table_is_csv(ask: Asks) -> None:
    header, first, *_ = ask("table", Question.about("acme", k=2)).splitlines()
    assert header.startswith("rank,id,name")
    assert first.startswith("1,boots,")


def test_what_a_table_has_no_place_for_is_a_warning(ask: Asks) -> None:
    anchors = Anchor(company="acme"), Anchor(company="Nobody & Söhne")
    atlantis = FieldFilter(field="country", any_of=("Atlantis",))
    with (
        pytest.warns(UserWarning, match="^left out, because no company has this name: Nobody & Söhne$"),
        pytest.warns(UserWarning, match="no company has the value 'Atlantis' of country"),
    ):
        assert ask("table", Question(anchors=anchors, filters=(atlantis,))).startswith("rank,id,name")


def test_the_service_says_that_it_is_ready(ask: Asks) -> None:
    ready = ask("ready")
    assert (ready.generation, ready.companies, ready.free_text) == ("first", 6, True)


def test_an_index_that_is_still_empty_is_unavailable_and_waited_for_no_longer_than_the_deadline(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "empty.db")) as index, TestClient(create_app(index=index)) as http:
        client = Client(URL, http=http, retries=Retries(deadline=5))
        with pytest.raises(Problem) as raised:
            client.ready()
    assert (raised.value.kind, raised.value.retry_after) == ("no-live-generation", 30)
