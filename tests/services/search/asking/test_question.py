"""The whole question over HTTP: several anchors, negatives, filters, exclusions, pages, and a batch."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from services.search.app import create_app
from similarity.index.sqlite import SqliteIndex
from similarity.text import NO_TEXT
from tests.factories import DIMENSION, make_embedded
from tests.services.search.asking.test_routes import AxisEncoder, ids
from tests.services.search.corpus import CALIBRATION, add_generation, at_cosine, companies, company, filled_index
from tests.services.search.wire.test_failures import problem

EVERYBODY = [each.id for each in companies()]
NAMES = {
    "acme": ["acme", "Acme", "acme.com"],
    "boots": ["boots", "boots.de", "BOOTS GMBH"],
    "zapatos": ["zapatos", "Zapatos SA"],
    "as-nord": ["as-nord", "A/S Nord"],
}
KNOWN = {name: company_id for company_id, names in NAMES.items() for name in names}
ROLES = ("anchor", "negative", "exclude")
UNKNOWN = ["nobody", "zzz.com", "\0", "Delta"]


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    index = filled_index(tmp_path_factory.mktemp("question") / "index.db", calibration=CALIBRATION)
    with TestClient(create_app(index=index, encoder=AxisEncoder())) as client:
        yield client
    index.close()


def about(*references: str, **members: Any) -> dict[str, Any]:
    return {"anchors": [{"company": each} for each in references], **members}


def ask(client: TestClient, *references: str, **members: Any) -> Any:
    answer = client.post("/similar", json=about(*references, **members))
    assert answer.status_code == 200, answer.text
    return answer.json()


def found(answer: Any) -> list[str]:
    return [hit["company"]["id"] for hit in answer["hits"]]


def test_a_question_in_a_body_is_answered_like_the_same_one_in_an_address(asking: TestClient) -> None:
    body = ask(asking, "acme", k=3, filters=[{"field": "industry", "any_of": ["footwear"]}], reasons=0)
    address = asking.get("/similar/acme", params={"k": 3, "industry": "Footwear", "reasons": 0}).json()
    assert {name: address[name] for name in body if name != "took_ms"} == {
        name: value for name, value in body.items() if name != "took_ms"
    }


def test_several_anchors_look_between_them_by_their_weights(asking: TestClient) -> None:
    # boots is at .9 of acme, clogs at .8 and turned elsewhere.
    even = asking.post("/similar", json={"anchors": [{"company": "boots"}, {"company": "clogs"}]}).json()
    heavy = asking.post("/similar", json={"anchors": [{"company": "boots", "weight": 9}, {"company": "clogs"}]}).json()
    assert found(even)[0] == found(heavy)[0] == "acme"
    # Unit vectors b and c with cosine .72: (b + c) . a / |b + c|, and the same with 9 b.
    assert even["hits"][0]["score"] == pytest.approx(1.7 / (2 + 2 * 0.72) ** 0.5, abs=1e-4)
    assert heavy["hits"][0]["score"] == pytest.approx(8.9 / (81 + 1 + 18 * 0.72) ** 0.5, abs=1e-4)
    assert [anchor["weight"] for anchor in heavy["anchors"]] == [9.0, 1.0]


def test_a_negative_turns_the_search_away_and_is_no_hit_itself(asking: TestClient) -> None:
    plain, turned = ask(asking, "acme"), ask(asking, "acme", negatives=[{"company": "boots.de"}])
    assert set(found(turned)) == set(found(plain)) - {"boots"}
    likely = [hit["probability"] for hit in turned["hits"]]
    assert likely == sorted(likely, reverse=True)
    scores = {hit["company"]["id"]: hit["score"] for hit in turned["hits"]}
    assert scores["clogs"] < 0.8
    assert [negative["company"]["id"] for negative in turned["negatives"]] == ["boots"]
    assert turned["negatives"][0]["redirected_from"] == "boots.de"


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[TestClient]:
    """`boots` is there under a second id, with its domain."""
    index = filled_index(tmp_path / "index.db")
    index.upsert("first", [company("boots-old", 0.85, 1, name="Boots (old)", domain="boots.de")])
    with TestClient(create_app(index=index)) as client:
        yield client
    index.close()


@pytest.mark.parametrize("named", ["boots", "boots-old", "boots.de", "https://boots.de/shop"])
def test_what_is_left_out_is_left_out_under_all_its_ids(twice: TestClient, named: str) -> None:
    answer = ask(twice, "acme", exclude=[named])
    assert (found(answer)[0], answer["misses"]) == ("clogs", [])
    assert not {"boots", "boots-old"} & set(found(answer))


def test_a_negative_is_no_hit_under_another_id_either(twice: TestClient) -> None:
    answer = ask(twice, "acme", negatives=[{"company": "boots"}])
    assert "boots-old" not in found(answer)
    assert answer["negatives"][0]["duplicates"] == ["boots-old"]
    assert answer["anchors"][0]["duplicates"] == []


def test_an_anchor_in_free_words_stands_beside_companies(asking: TestClient) -> None:
    answer = asking.post(
        "/similar", json={"anchors": [{"text": "  makes leather shoes "}, {"company": "zapatos"}]}
    ).json()
    assert [(each["asked"], each["text"]) for each in answer["anchors"]] == [
        ("makes leather shoes", "makes leather shoes"),
        ("zapatos", None),
    ]
    assert answer["anchors"][0]["company"] is None
    assert "acme" in found(answer)
    assert "zapatos" not in found(answer)


def test_an_unknown_anchor_among_several_is_a_miss(asking: TestClient) -> None:
    answer = ask(asking, "acme", "boot", "Delta", negatives=[{"company": "nobody"}], exclude=["zapattas"])
    assert [(miss["asked"], miss["role"], miss["problem"]) for miss in answer["misses"]] == [
        ("boot", "anchor", "unknown-company"),
        ("Delta", "anchor", "contested-name"),
        ("nobody", "negative", "unknown-company"),
        ("zapattas", "exclude", "unknown-company"),
    ]
    suggested = [[each["id"] for each in miss["suggestions"]] for miss in answer["misses"]]
    assert suggested == [["boots"], ["clogs", "delta-air"], [], ["zapatos"]]
    assert answer["misses"][0]["detail"].endswith("did you mean Boots GmbH (boots)?")


def test_where_no_anchor_is_left_the_first_ones_problem_is_the_answer(asking: TestClient) -> None:
    document = problem(asking.post("/similar", json=about("nobody", "Delta")), "unknown-company")
    assert document["detail"].startswith("no company has the id, domain, name or alias 'nobody'")
    assert "; 2 companies match" in document["detail"]
    problem(asking.post("/similar", json=about("Delta", "nobody")), "contested-name")


@pytest.mark.parametrize(
    ("address", "parameter"),
    [
        ("/similar/acme?unlike=acme", "unlike"),
        ("/similar/acme?filter=attributes.size>=huge", "filter"),
        ("/similar/acme?also=boots&rank=cosine&min_probability=0.5", "min_probability"),
    ],
)
def test_what_does_not_go_together_is_an_error_with_its_parameter(
    asking: TestClient, address: str, parameter: str
) -> None:
    document = problem(asking.get(address), "invalid-request")
    [error] = document["errors"]
    assert error == {"parameter": parameter, "where": "query", "reason": document["detail"]}


def test_in_a_body_the_parameter_is_the_member(asking: TestClient) -> None:
    document = problem(asking.post("/similar", json=about("acme", negatives=[{"company": "acme"}])), "invalid-request")
    assert [(each["parameter"], each["where"]) for each in document["errors"]] == [("negatives", "body")]


def test_the_company_in_the_path_must_be_known_even_beside_others(asking: TestClient) -> None:
    assert asking.get("/similar/acme?also=nobody").json()["misses"][0]["asked"] == "nobody"
    problem(asking.get("/similar/nobody?also=acme"), "unknown-company")


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_every_name_of_a_question_is_understood_or_missed(asking: TestClient, data: st.DataObject) -> None:
    names = st.sampled_from([*KNOWN, *UNKNOWN])
    anchors = ["acme", *data.draw(st.lists(names, max_size=4))]
    negatives = data.draw(st.lists(names, max_size=3))
    exclude = data.draw(st.lists(names, max_size=4))
    body = about(*anchors, negatives=[{"company": each} for each in negatives], exclude=exclude, reasons=0)
    response = asking.post("/similar", json=body)
    if {KNOWN[each] for each in anchors if each in KNOWN} & {KNOWN[each] for each in negatives if each in KNOWN}:
        assert "is both an anchor and a negative" in problem(response, "invalid-request")["detail"]
        [refused] = asking.post("/similar/batch", json={"questions": [body]}).json()["answers"]
        assert refused["status"] == 422
        return
    answer = response.json()
    missed = {role: [miss["asked"] for miss in answer["misses"] if miss["role"] == role] for role in ROLES}
    assert [each["asked"] for each in answer["anchors"]] == [each for each in anchors if each in KNOWN]
    assert [each["asked"] for each in answer["negatives"]] == [each for each in negatives if each in KNOWN]
    assert missed["anchor"] == [each for each in anchors if each not in KNOWN]
    assert missed["negative"] == [each for each in negatives if each not in KNOWN]
    assert missed["exclude"] == [each for each in dict.fromkeys(exclude) if each not in KNOWN]
    left_out = {KNOWN[each] for each in (*anchors, *negatives, *exclude) if each in KNOWN}
    assert set(found(answer)) == set(EVERYBODY) - left_out


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([{"field": "country", "none_of": ["Germany", "FRANCE"]}], ["zapatos", "delta-air", "as-nord"]),
        ([{"field": "tags", "any_of": ["Cargo"]}], ["as-nord"]),
        ([{"field": "domain", "any_of": ["boots.de"]}], ["boots"]),
        ([{"field": "attributes.employees", "at_least": 12, "at_most": 12.0}], ["boots"]),
        ([{"field": "attributes.employees", "at_least": 12.5}], []),
        ([{"field": "industry", "any_of": ["Footwear"]}, {"field": "country", "any_of": ["Spain"]}], ["zapatos"]),
    ],
)
def test_filters_of_a_body(asking: TestClient, filters: list[dict[str, Any]], expected: list[str]) -> None:
    assert found(ask(asking, "acme", filters=filters)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("filter=country!=Germany&filter=country!=France&k=1", ["zapatos"]),
        ("filter=attributes.employees>=12&filter=attributes.employees<=20", ["boots"]),
        ("filter=country=Spain&country=Germany", ["boots", "zapatos"]),
        ("tag=cargo", ["as-nord"]),
        ("exclude=boots.de&exclude=Clogs&k=1", ["zapatos"]),
        ("also=boots&unlike=clogs&k=1", ["zapatos"]),
        ("min_probability=0.9", ["boots", "clogs"]),
        ("filter=country=", ["boots", "clogs", "zapatos", "delta-air", "as-nord"]),
        ("country=germany&country=SPAIN", ["boots", "zapatos"]),
        ("industry=Footwear&country=France", ["clogs"]),
        ("country=Atlantis", []),
        ("country=&industry=&k=2", ["boots", "clogs"]),
    ],
)
def test_the_parameters_of_an_address(asking: TestClient, query: str, expected: list[str]) -> None:
    assert ids(asking.get(f"/similar/acme?{query}")) == expected


def test_hits_carry_only_the_members_that_are_asked_for(asking: TestClient) -> None:
    for answer in (
        ask(asking, "acme", k=1, fields=["name", "country"]),
        asking.get("/similar/acme?k=1&fields=name,country").json(),
    ):
        assert answer["hits"][0]["company"] == {"id": "boots", "name": "Boots GmbH", "country": "Germany"}
        assert answer["anchors"][0]["company"]["description"]
    assert ask(asking, "acme", k=1, fields=[])["hits"][0]["company"] == {"id": "boots"}


def test_a_hit_says_what_it_shares_with_the_anchors(asking: TestClient) -> None:
    shared = {hit["company"]["id"]: hit["reason"]["shared"] for hit in ask(asking, "acme", "zapatos")["hits"]}
    assert shared["clogs"] == [
        {"field": "country", "values": ["France"]},
        {"field": "industry", "values": ["Footwear"]},
    ]
    assert shared["delta-air"] == []


def test_phrases_that_nobody_could_look_for_are_null_with_one_warning(client: TestClient) -> None:
    answer = ask(client, "acme", reasons=2)
    assert {hit["reason"]["phrases"] for hit in answer["hits"]} == {None}
    [warning] = answer["warnings"]
    assert warning.startswith("no phrases were computed: the bundle of encoder ")
    assert ask(client, "acme", reasons=0)["warnings"] == []


class BootsEncoder(AxisEncoder):
    """Sees only whether a text speaks of boots: those that do not lie at .6 of those that do."""

    def encode(self, texts: Sequence[str], progress: Any = None) -> Any:
        self.texts += texts
        return np.array([at_cosine(1.0 if "boots" in text else 0.6, 2) for text in texts])


def test_the_phrases_of_the_first_hits_say_why(read_only_index: SqliteIndex) -> None:
    client = TestClient(create_app(index=read_only_index, encoder=BootsEncoder()))
    body = {"anchors": [{"text": "Sells shoes to climbers, mountaineers and guides; also makes boots."}], "k": 3}
    answer = client.post("/similar", json={**body, "reasons": 2}).json()
    phrases = [hit["reason"]["phrases"] for hit in answer["hits"]]
    assert found(answer) == ["acme", "boots", "clogs"]
    assert {each["of"] for each in phrases[0]} == {"anchor", "hit"}
    assert [(each["of"], each["anchor"], each["weight"]) for each in phrases[1]] == [
        ("anchor", 0, 0.4),
        ("hit", 0, 0.4),
    ]
    texts = (answer["anchors"][0]["text"], answer["hits"][1]["company"]["description"])
    for text, phrase in zip(texts, phrases[1], strict=True):
        assert text[phrase["start"] : phrase["end"]] == phrase["text"]
        assert "boots" in phrase["text"]
    assert phrases[2] is None
    assert answer["warnings"] == []


def test_without_reasons_no_description_is_encoded(read_only_index: SqliteIndex) -> None:
    encoder = AxisEncoder()
    client = TestClient(create_app(index=read_only_index, encoder=encoder))
    assert client.get("/similar/acme?reasons=0").status_code == 200
    assert encoder.texts == []
    assert client.get("/similar/acme?reasons=1").status_code == 200
    assert encoder.texts != []


def test_pages_of_an_address_and_of_a_body_go_on_with_each_other(asking: TestClient) -> None:
    everybody = found(ask(asking, "acme"))
    first = asking.get("/similar/acme?k=2").json()
    second = ask(asking, "acme", k=1, cursor=first["next_cursor"], fields=["name"])
    third = asking.get("/similar/acme", params={"k": 5, "cursor": second["next_cursor"], "reasons": 0}).json()
    assert [*found(first), *found(second), *found(third)] == everybody
    assert [hit["rank"] for page in (first, second, third) for hit in page["hits"]] == [1, 2, 3, 4, 5]
    assert third["next_cursor"] is None


@pytest.mark.parametrize("change", ["?country=Germany", "?also=boots", "?rank=cosine", "?exclude=boots"])
def test_a_cursor_to_another_question_is_refused(asking: TestClient, change: str) -> None:
    cursor = asking.get("/similar/acme?k=1").json()["next_cursor"]
    problem(asking.get(f"/similar/acme{change}&cursor={cursor}"), "wrong-cursor")
    problem(asking.get(f"/similar/boots?cursor={cursor}"), "wrong-cursor")
    problem(asking.get(f"/similar/acme?cursor=x{cursor}"), "wrong-cursor")


def test_pages_go_on_in_the_generation_they_began_in_until_it_is_gone(index: SqliteIndex) -> None:
    client = TestClient(create_app(index=index))
    first = ask(client, "acme", k=1)
    add_generation(index, "second", [*companies(), company("better", 0.95, 6), company("middle", 0.85, 7)])
    index.promote("second")
    assert found(ask(client, "acme", k=2)) == ["better", "boots"]
    second = ask(client, "acme", k=2, cursor=first["next_cursor"])
    assert (second["generation"], found(second)) == ("first", ["clogs", "zapatos"])
    index.retire("first")
    expired = client.post("/similar", json=about("acme", cursor=first["next_cursor"]))
    assert problem(expired, "cursor-expired")["detail"].startswith("generation first of the previous page")


def test_probability_cannot_be_asked_of_a_generation_without_calibration(client: TestClient) -> None:
    problem(client.get("/similar/acme?min_probability=0.5"), "no-calibration")
    problem(client.post("/similar", json=about("acme", min_probability=0.0)), "no-calibration")


def test_an_empty_answer_says_which_filter_names_nothing(client: TestClient) -> None:
    for answer in (
        client.get("/similar/acme?country=Frnce"),
        client.post("/similar", json=about("acme", filters=[{"field": "country", "any_of": ["Frnce"]}])),
    ):
        assert (answer.status_code, answer.json()["hits"]) == (200, [])
        assert answer.json()["warnings"] == [
            "no company has the value 'Frnce' of country; did you mean 'france'?",
            "no other company passes the filter on country; remove a filter, or allow further values",
        ]


def test_a_query_about_too_few_words_is_refused_by_name(index: SqliteIndex) -> None:
    company = make_embedded("tiny", name="Tiny", description="Sells.", vector=np.zeros(DIMENSION, dtype=np.float32))
    index.upsert("first", [replace(company, text_hash=NO_TEXT)])
    client = TestClient(create_app(index=index))
    refused = [
        client.get("/similar/tiny"),
        client.get("/map/Tiny"),
        client.get("/similar/tiny?also=acme"),
        client.post("/similar/locate", json={"anchors": [{"company": "acme"}], "company": "tiny"}),
    ]
    for answer in refused:
        assert problem(answer, "too-few-words")["detail"] == (
            "the description of Tiny (tiny) has too few words to rank by; write a description of at least 3 words that "
            "say what the company does, or ask with such words as a text"
        )
    for answer in (
        client.get("/similar/acme?also=tiny&unlike=Tiny"),
        client.post("/similar", json=about("acme", "tiny")),
    ):
        assert answer.status_code == 200
        assert {(each["problem"], each["asked"].lower()) for each in answer.json()["misses"]} == {
            ("too-few-words", "tiny")
        }
    text = client.get("/similar", params={"text": "of the"})
    assert problem(text, "too-few-words")["detail"].startswith("the text 'of the' has too few words to rank by")
    assert client.get("/companies/tiny").status_code == 200


def test_a_batch_answers_each_question_with_a_status_of_its_own(asking: TestClient) -> None:
    questions = [
        about("acme", k=1),
        about("nobody"),
        about("Delta"),
        {"anchors": [{"text": "makes leather shoes"}], "k": 1},
    ]
    answer = asking.post("/similar/batch", json={"questions": questions}).json()
    assert [each["status"] for each in answer["answers"]] == [200, 404, 409, 200]
    assert found(answer["answers"][0]["answer"]) == ["boots"]
    assert answer["answers"][1]["problem"]["type"] == "/docs#unknown-company"
    assert [each["id"] for each in answer["answers"][2]["problem"]["candidates"]] == ["clogs", "delta-air"]
    assert answer["answers"][0]["answer"]["generation"] == answer["generation"] == "first"
    assert answer["answers"][0]["answer"]["hits"][0]["reason"]["phrases"] is None


def test_a_batch_encodes_all_its_texts_at_once(read_only_index: SqliteIndex) -> None:
    class CountingEncoder(AxisEncoder):
        calls = 0

        def encode(self, texts: Any, progress: Any = None) -> Any:
            self.calls += 1
            return super().encode(texts, progress)

    encoder = CountingEncoder()
    client = TestClient(create_app(index=read_only_index, encoder=encoder))
    boats, cars, ships = (f"builds large {each}" for each in ("boats", "cars", "ships"))
    questions = [{"anchors": [{"text": text}], "negatives": [{"text": ships}]} for text in (boats, cars, boats)]
    assert client.post("/similar/batch", json={"questions": questions}).status_code == 200
    assert (encoder.calls, encoder.texts) == (1, [boats, ships, cars])
    assert ids(client.get("/similar", params={"text": cars, "k": 1, "reasons": 0})) == ["acme"]
    assert encoder.calls == 1


def test_without_an_encoder_only_the_questions_in_words_of_a_batch_fail(client: TestClient) -> None:
    questions = [about("acme"), {"anchors": [{"text": "makes leather shoes"}]}]
    answer = client.post("/similar/batch", json={"questions": questions}).json()
    assert [each["status"] for each in answer["answers"]] == [200, 503]


BAD_QUESTIONS: list[tuple[dict[str, Any], str]] = [
    ({}, "anchors: is missing"),
    ({"anchors": []}, "anchors: must have at least 1 item, not 0"),
    (about(*["acme"] * 11), "anchors: must have at most 10 items, not 11"),
    ({"anchors": [{}]}, "anchors[0]: give either company or text"),
    ({"anchors": [{"company": "a", "text": "b"}]}, "anchors[0]: give either company or text"),
    ({"anchors": [{"company": "a", "weight": 0}]}, "anchors[0].weight: must be greater than or equal to 0.001"),
    (about("a", negatives=[{"company": "b", "weight": 2}]), "negatives[0].weight: there is no such parameter here; "),
    (about("a", k="10"), "k: must be a valid integer"),
    (about("a", k=251), "k: must be less than or equal to 250"),
    (about("a", reasons=51), "reasons: must be less than or equal to 50"),
    (about("a", mode="hybrid"), "mode: there is no such parameter here; "),
    (about("a", min_probability=1.1), "min_probability: must be less than or equal to 1"),
    (about("a", fields=["age"]), "fields[0]: must be 'id', 'name', "),
    (about("a", exclude=["x"] * 10_001), "exclude: must have at most 10000 items, not 10001"),
    (about("a", filters=[{"field": "colour"}]), "filters[0].field: must be country, industry,"),
    (about("a", filters=[{"field": "country"}]), "filters[0]: the filter on country has no values"),
    (
        about("a", filters=[{"field": "country", "at_least": 1}]),
        "filters[0]: country is text and has no range",
    ),
    (
        about("a", filters=[{"field": "attributes.x", "at_least": 2, "at_most": 1}]),
        "filters[0]: in the filter on attributes.x, at_least=2 is greater than at_most=1",
    ),
]


@pytest.mark.parametrize(("body", "detail"), BAD_QUESTIONS)
def test_a_question_that_cannot_be_read_says_where_and_why(
    asking: TestClient, body: dict[str, Any], detail: str
) -> None:
    document = problem(asking.post("/similar", json=body), "invalid-request")
    assert document["detail"].startswith(detail)
    assert {each["where"] for each in document["errors"]} == {"body"}


def test_a_body_that_is_no_strict_json_is_refused(asking: TestClient) -> None:
    answer = asking.post("/similar", content=b'{"k": 1, "k": 2}', headers={"Content-Type": "application/json"})
    detail = problem(answer, "invalid-request")["detail"]
    assert detail.startswith("body: the JSON cannot be used: the member 'k' occurs twice")


def test_a_body_of_another_type_is_refused(asking: TestClient) -> None:
    for headers, reason in (
        ({}, "the body has no Content-Type"),
        ({"Content-Type": "text/plain"}, "the Content-Type of the body is 'text/plain'"),
    ):
        answer = asking.post("/similar", content=b'{"anchors": [{"company": "acme"}]}', headers=headers)
        detail = problem(answer, "wrong-media-type")["detail"]
        assert detail == f"{reason}; send it with Content-Type: application/json"


def test_hundreds_of_mistakes_are_told_in_a_short_answer(asking: TestClient) -> None:
    answer = asking.post("/similar", json={"anchors": [], **{f"m{number}": 1 for number in range(900)}})
    document = problem(answer, "invalid-request")
    assert len(document["errors"]) == 20
    assert document["detail"].endswith("; and 881 more")


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("filter=colour=red", "filter: 'colour=red' is not a condition; write FIELD=VALUE, FIELD!=VALUE, "),
        ("filter=attributes.x>=much", "'much' is not a number, and attributes.x is not declared"),
        ("filter=country>=1", "filter: country is text and has no range"),
        ("filter=attributes.x>=2&filter=attributes.x<=1", "filter: in the filter on attributes.x, at_least=2"),
        ("fields=name,age", "fields: must be members of a company"),
        ("also=", "also: must have at least 1 character"),
        ("min_probability=nan", "min_probability: must be a finite number"),
        ("format=xml", "format: must be 'json', 'csv' or 'xlsx'"),
        ("cursor=%2F", "cursor: is not a cursor"),
    ],
)
def test_a_parameter_that_cannot_be_read_says_why(asking: TestClient, query: str, detail: str) -> None:
    assert problem(asking.get(f"/similar/acme?{query}"), "invalid-request")["detail"].startswith(detail)


def test_a_batch_is_bounded(asking: TestClient) -> None:
    def refused(body: Any) -> str:
        return str(problem(asking.post("/similar/batch", json=body), "invalid-request")["detail"])

    assert refused({"questions": []}).startswith("questions: must have at least 1 item")
    assert refused({"questions": [about("acme")] * 101}).startswith("questions: must have at most 100 items")
    assert refused({"questions": [about("acme", cursor="x")]}).startswith("questions[0].cursor: there is no such")
    assert refused({"questions": [about("acme", reasons=26)] * 2}) == (
        "body: the queries ask for 52 reasons and segments; a batch may ask for 50 in total"
    )


def test_ten_thousand_exclusions_are_taken(asking: TestClient) -> None:
    names = ["boots.de", "clogs", *(f"nobody-{number}" for number in range(98))]
    answer = ask(asking, "acme", exclude=names * 100)
    assert found(answer) == ["zapatos", "delta-air", "as-nord"]
    assert len(answer["misses"]) == 98


def test_an_excluded_website_means_all_its_companies_however_many_are_excluded(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("similarity.search.names.resolver.MAX_LISTED", 1)
    sites = [f"shop{number}.com" for number in range(3)]
    copies = [company(f"s{number}", 0.9, 6, domain=sites[number % 3], name=f"S {number}") for number in range(9)]
    index.upsert(index.live().name, copies)
    with TestClient(create_app(index=index)) as own:
        answer = ask(own, "acme", exclude=sites, k=50)
    assert not set(found(answer)) & {each.company.id for each in copies}
    assert answer["misses"] == []
