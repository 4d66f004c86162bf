"""Library, service, client and command line answer the same questions alike, on each store."""

import csv
import io
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow.parquet as pq
import pytest
import uvicorn
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.cli.main import app as command_line
from similarity.client import Client
from similarity.company import EmbeddedCompany
from similarity.index.attributes import AttributeSchema, AttributeType
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex
from similarity.model.calibration import Calibration
from similarity.model.ranker import ComparableWeights, Ranker
from similarity.search.export import export_neighbours
from similarity.search.names.list_matching import RowMatcher
from similarity.search.names.rows import ListedCompany
from similarity.search.queries.question import Anchor, Question
from similarity.search.reranking.rank import Rank
from similarity.search.searcher import Searcher
from tests.contract.steps import add_live
from tests.factories import ENCODER_ID, make_embedded, unit_vector

QUESTIONS = 100
COMPANIES = 60
SCORE_TOLERANCE = 1e-4
COUNTRIES = ("Germany", "Japan", "Mexico")
GOODS = ("anvils", "boats", "clocks", "drums", "engines", "forks", "gloves")
DESCRIPTION = "Makes and sells number {} of many goods, such as {}, to customers everywhere."
RANKER = Ranker(
    encoder_id=ENCODER_ID,
    cosine=4.0,
    shared_words=3.0,
    same_industry=1.0,
    sparsity=2.0,
    intercept=-2.0,
    comparable=ComparableWeights(
        business=0.5, size_gap=-0.5, size_unknown=-1.0, same_country=1.0, slope=1.0, intercept=0.0
    ),
)

Hits: TypeAlias = list[tuple[str, float, float | None, tuple[str, ...]]]
"""Id, score, probability and duplicates of each hit, best first."""


@dataclass(frozen=True)
class Asking:
    """The same corpus behind every way of asking."""

    index: CompanyIndex
    url: str
    http: TestClient
    client: Client


def corpus(chance: random.Random) -> list[EmbeddedCompany]:
    """Companies in three countries; every tenth is another one under a second id."""
    return [
        make_embedded(
            f"c{number:03}",
            name=f"Company {number} Inc.",
            description=_description(number - number % 10 if number % 10 == 1 else number),
            industry=chance.choice(GOODS[:3]),
            vector=unit_vector(number),
            domain=f"c{number // 2}.com" if number % 12 < 2 else "",
            country=chance.choice(COUNTRIES),
            attributes={"employees": number},
        )
        for number in range(COMPANIES)
    ]


def _description(number: int) -> str:
    return DESCRIPTION.format(number, GOODS[number % len(GOODS)])


def questions() -> list[Question]:
    chance = random.Random(1)
    ids = [f"c{number:03}" for number in range(COMPANIES)]
    asked = []
    for number in range(QUESTIONS):
        *anchors, negative, left_out = chance.sample(ids, chance.choice([3, 3, 4]))
        filters = [FieldFilter(field="country", any_of=(chance.choice(COUNTRIES),))] if number % 3 == 1 else []
        filters += [FieldFilter(field="attributes.employees", at_least=10.0)] if number % 5 == 2 else []
        asked.append(
            Question(
                anchors=[Anchor(company=each) for each in anchors],
                negatives=[Anchor(company=negative)] if number % 4 == 3 else [],
                exclude=[left_out] if number % 2 else [],
                filters=filters,
                rank=list(Rank)[number % 3],
                k=chance.choice([1, 5, 10]),
            )
        )
    return asked


@pytest.fixture
def asking(index: CompanyIndex) -> Iterator[Asking]:
    add_live(index, "first", calibration=Calibration(slope=4.0, intercept=-1.0), ranker=RANKER)
    index.declare(AttributeSchema({"employees": AttributeType()}, "employees"))
    index.upsert("first", corpus(random.Random(2)))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(index=index), log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with TestClient(create_app(index=index)) as http, Client(url) as client:
        yield Asking(index, url, http, client)
    server.should_exit = True
    thread.join()


def library(asking: Asking, question: Question) -> Hits:
    hits = Searcher(asking.index).search(question).hits
    return [(hit.company.id, hit.score, hit.probability, hit.duplicates) for hit in hits]


def service(asking: Asking, question: Question) -> Hits:
    body = {
        "anchors": [{"company": each.company} for each in question.anchors],
        "negatives": [{"company": each.company} for each in question.negatives],
        "exclude": list(question.exclude),
        "filters": [_filter(each) for each in question.filters],
        "rank": question.rank.value,
        "k": question.k,
        "reasons": 0,
    }
    hits = asking.http.post("/similar", json=body).json()["hits"]
    return [(hit["company"]["id"], hit["score"], hit["probability"], tuple(hit["duplicates"])) for hit in hits]


def python_client(asking: Asking, question: Question) -> Hits:
    ranking = asking.client.similar(
        *(each.reference for each in question.anchors),
        negatives=[each.reference for each in question.negatives],
        exclude=question.exclude,
        filters=question.filters,
        rank=question.rank.value,
        k=question.k,
        reasons=0,
    )
    return [(hit.company.id, hit.score, hit.probability, hit.duplicates) for hit in ranking.hits]


def command(asking: Asking, question: Question) -> Hits:
    return _printed(question, "--url", asking.url)


def _filter(chosen: FieldFilter) -> dict[str, object]:
    return {"field": chosen.field, "any_of": list(chosen.any_of), "at_least": chosen.at_least}


def _printed(question: Question, *target: str) -> Hits:
    options = [f"--rank={question.rank}"]
    options += [f"--exclude={each}" for each in question.exclude]
    options += [f"--unlike={each.reference}" for each in question.negatives]
    for each in question.filters:
        options += [f"--filter={each.field}={value}" for value in each.any_of]
        options += [f"--filter={each.field}>={each.at_least}"] if each.at_least is not None else []
    references = [each.reference for each in question.anchors]
    printed = io.StringIO()
    with redirect_stdout(printed):
        command_line(
            ["similar", *references, *options, "-k", str(question.k), "--format=json", *target], standalone_mode=False
        )
    rows = json.loads(printed.getvalue())
    return [(row["id"], row["score"], row["probability"], tuple(row["duplicates"])) for row in rows]


def assert_alike(one: Hits, other: Hits) -> None:
    assert [hit[0] for hit in one] == [hit[0] for hit in other]
    assert [hit[2:] for hit in one] == [hit[2:] for hit in other]
    assert [hit[1] for hit in one] == pytest.approx([hit[1] for hit in other], abs=SCORE_TOLERANCE)


@pytest.mark.parametrize("ask", [service, python_client, command])
def test_every_way_of_asking_gives_the_hits_of_the_library(
    asking: Asking, ask: Callable[[Asking, Question], Hits]
) -> None:
    folded = 0
    for question in questions():
        expected = library(asking, question)
        assert_alike(ask(asking, question), expected)
        folded += sum(len(hit[3]) for hit in expected)
    assert folded  # or duplicates would not have been compared


def test_the_export_holds_the_hits_of_each_company(asking: Asking, tmp_path: Path) -> None:
    export_neighbours(asking.index, asking.index.live(), tmp_path / "n.parquet", k=5)
    rows = pq.read_table(tmp_path / "n.parquet").to_pylist()
    for number in range(COMPANIES):
        company_id = f"c{number:03}"
        exported = [row for row in rows if row["company_id"] == company_id]
        expected = library(asking, Question(anchors=[Anchor(company=company_id)], k=5))
        assert [row["similar_id"] for row in exported] == [hit[0] for hit in expected]
        names = {(row["company_name"], row["similar_id"], row["similar_name"]) for row in exported}
        assert names == {
            (f"Company {number} Inc.", hit[0], f"Company {int(hit[0].removeprefix('c'))} Inc.") for hit in expected
        }
        assert [row["score"] for row in exported] == pytest.approx([hit[1] for hit in expected], abs=SCORE_TOLERANCE)
        assert [row["probability"] for row in exported] == pytest.approx([hit[2] for hit in expected], abs=1e-3)
        assert [set(hit[3]) - set(row["duplicates"]) for row, hit in zip(exported, expected, strict=True)] == [
            set()
        ] * 5


def test_a_list_is_matched_alike_by_library_and_service(asking: Asking) -> None:
    names = ["Company 7", "company 8 inc", "c3.com", "Compagny 12", "nobody at all"]
    matcher = RowMatcher(asking.index, asking.index.live().name)
    expected = [matcher.match(ListedCompany(name=name)) for name in names]
    table = asking.http.post(
        "/match",
        content="name\n" + "\n".join(names) + "\n",
        headers={"Content-Type": "text/csv", "Accept": "text/csv"},
    )
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [(row["id"], row["confidence"]) for row in rows] == [
        (each.company.id if each.company else "", "" if each.confidence is None else str(each.confidence))
        for each in expected
    ]
    assert any(row["id"] for row in rows)
