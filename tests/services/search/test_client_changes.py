"""The Python client on what changes something (companies, verdicts, lists), on the map, and on names to match."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.client import Client, InvalidRequest, Question, UnknownList
from similarity.client.writes import Change
from similarity.company import Company
from similarity.feedback.sqlite import SqliteWorkspace
from tests.fakes import CountingEncoder
from tests.services.search.corpus import CALIBRATION, filled_index

ANVILS = Company(
    id="anvils", name="Anvils Ltd.", description="Forges iron and steel.", tags=("tools",), attributes={"staff": 3}
)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Client]:
    """The client of a service of its own, which this test may change."""
    with (
        closing(filled_index(tmp_path / "index.db", calibration=CALIBRATION)) as index,
        closing(SqliteWorkspace(tmp_path / "index.db.workspace")) as workspace,
        TestClient(create_app(index=index, encoder=CountingEncoder(), workspace=workspace)) as http,
    ):
        yield Client("http://testserver", http=http)


def test_a_company_that_is_put_is_found_as_it_was_put(service: Client) -> None:
    written = service.put(ANVILS, event_time=NOON)
    assert (written.id, written.outcome) == ("anvils", "applied")
    stored = service.company("anvils")
    assert stored.company.as_company() == ANVILS
    assert stored.updated_at == NOON


def test_a_change_without_an_event_time_follows_one_that_lies_ahead(service: Client) -> None:
    ahead = service.put(ANVILS, event_time=datetime.now(UTC) + timedelta(minutes=4))
    deleted = service.delete("anvils")
    assert deleted.outcome == "applied"
    assert ahead.version is not None
    assert deleted.version == ahead.version + 1
    status = service.write_status("anvils", ahead.version)
    assert (status.id, status.outcome, status.stored) == ("anvils", "superseded", deleted.version)
    assert service.write_status("anvils", deleted.version).outcome == "applied"
    assert service.write_status("boots", ahead.version).outcome == "accepted"


def test_bulk_says_what_became_of_every_line(service: Client) -> None:
    changes: list[Change] = [
        ANVILS,
        {"id": "boots", "deleted": True},
        {"id": "no-words"},
        {"id": "clogs", "nonsense": 1},
    ]
    results = list(service.bulk(changes, at_once=2))
    assert [(each.line, each.id, each.outcome) for each in results] == [
        (1, "anvils", "applied"),
        (2, "boots", "applied"),
        (3, "no-words", "rejected"),
        (4, "clogs", "rejected"),
    ]
    assert all(each.reason for each in results[2:])


def test_a_company_is_erased_with_what_was_said_of_it(service: Client) -> None:
    service.feedback("acme", "boots", "competitor")
    assert (service.erase("boots").erased, service.similar("acme").hits[0].company.id) == (True, "clogs")
    deadline = time.monotonic() + 30
    while (erased := service.erasure("boots")).state == "running":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (erased.state, erased.forgotten.events, erased.compaction) == ("done", 1, "done")
    assert [each.outcome for each in erased.generations] == ["applied"]
    assert service.history().events == ()


def test_what_cannot_be_stored_is_an_invalid_request(service: Client) -> None:
    with pytest.raises(InvalidRequest, match="future"):
        service.put(ANVILS, event_time=datetime(2999, 1, 1, tzinfo=UTC))


def test_a_verdict_on_a_hit_keeps_what_was_shown(service: Client) -> None:
    ranking = service.similar("acme", k=1)
    event = service.feedback("acme", ranking.hits[0], "competitor", ranking=ranking, note="obviously")
    assert (event.user, event.hit, event.rank, event.generation) == ("local", "boots", 1, "first")
    assert event.probability == ranking.hits[0].probability
    assert [(each.hit, each.verdict) for each in service.verdicts("acme")] == [("boots", "competitor")]
    assert (event.score, event.bundle_id) == (ranking.hits[0].score, "bundle-1")
    assert service.history(user="nobody", limit=5).events == ()
    assert service.history(anchor="acme").events == (event,)


def test_a_verdict_that_is_sent_again_is_one_event(service: Client) -> None:
    for _ in range(2):
        service.feedback("acme", "boots", "not_competitor", event_id="e1")
    assert [event.id for event in service.history().events] == ["e1"]


def test_verdicts_become_labelled_pairs(service: Client) -> None:
    service.feedback("acme", "boots", "competitor")
    service.feedback("acme", "delta-air", "not_competitor")
    service.feedback("acme", "clogs", "competitor")
    service.feedback("acme", "clogs", "withdrawn")
    pairs = {(pair.anchor_id, pair.hit_id): pair for pair in service.pairs()}
    assert {names: pair.label for names, pair in pairs.items()} == {
        ("acme", "boots"): "positive",
        ("acme", "delta-air"): "negative",
    }
    assert pairs["acme", "boots"].text_b
    assert pairs["acme", "boots"].judged_at is not None


def test_what_to_judge_next_comes_with_reasons(service: Client) -> None:
    suggestions = service.next_to_label(anchor="acme", k=2)
    assert len(suggestions) == 2
    assert all(each.anchor.id == "acme" and each.why for each in suggestions)


def test_a_list_says_what_is_new_since_the_last_look(service: Client) -> None:
    service.save_list("shoes", Question.about("acme", industry="Footwear", k=5))
    assert [each.name for each in service.lists()] == ["shoes"]
    first = service.list_hits("shoes")
    assert (first.name, first.looked_at, [hit.new for hit in first.hits]) == ("shoes", None, [True] * 3)
    look = service.looked("shoes")
    assert look.seen == 3
    assert service.list_hits("shoes").looked_at == look.looked_at
    service.put(replace(ANVILS, industry="Footwear"))
    assert {hit.company.id: hit.new for hit in service.list_hits("shoes").hits} == {
        "boots": False,
        "clogs": False,
        "zapatos": False,
        "anvils": True,
    }
    assert [each.new for each in service.lists(new=True)] == [1]
    saved = service.saved_list("shoes").question
    assert saved is not None
    assert service.save_list("more shoes", saved).question == saved
    assert service.ask(saved).hits == next(iter(service.ask_on(saved))).hits != ()
    assert service.locate("boots", saved).company.id == "boots"
    with pytest.raises(TypeError, match=r"'acme' is one name; give a list of questions: \['acme'\]"):
        service.batch("acme")


def test_a_look_may_be_at_some_hits_and_a_deleted_list_is_unknown(service: Client) -> None:
    service.save_list("shoes & more", Question.about("acme"))
    assert service.looked("shoes & more", ids=["boots"]).seen == 1
    service.delete_list("shoes & more")
    with pytest.raises(UnknownList):
        service.list_hits("shoes & more")


def test_a_map_places_anchors_and_hits(service: Client) -> None:
    drawn = service.map(Question.about("acme", k=2))
    assert [(point.id, point.role) for point in drawn.points] == [
        ("acme", "anchor"),
        ("boots", "hit"),
        ("clogs", "hit"),
    ]
    assert all(-1 <= value <= 1 for point in drawn.points for value in (point.x, point.y))
    assert drawn.generation == "first"


def test_names_are_matched_with_companies(service: Client) -> None:
    by_name, by_website, missed = service.match(["Boots GmbH", {"domain": "https://www.acme.com/x"}, "Xyzzy"])
    assert (by_name.id, by_name.how, by_name.asked.name) == ("boots", "name", "Boots GmbH")
    assert (by_website.row, by_website.id, by_website.how) == (2, "acme", "domain")
    assert by_website.company is not None
    assert by_website.confidence is not None
    assert (missed.id, missed.confidence) == (None, None)
    assert missed.miss


def test_a_shortlist_is_saved_changed_excluded_and_compared(service: Client) -> None:
    saved = service.save_shortlist("already contacted", ["boots.de", "acme"])
    assert (saved.companies, saved.size, saved.question) == (("boots", "acme"), 2, None)
    assert service.change_shortlist("already contacted", add="zapatos", remove="acme.com").size == 2
    left = service.similar("acme", exclude_lists="already contacted", k=2)
    assert [hit.company.id for hit in left.hits] == ["clogs", "delta-air"]
    service.feedback("acme", "boots", "competitor")
    boots, zapatos = service.shortlist("already contacted", company="acme")
    assert (boots.name, boots.domain, boots.rank, boots.verdict) == ("Boots GmbH", "boots.de", 1, "competitor")
    assert boots.probability is not None
    assert (boots.attributes, zapatos.rank, zapatos.verdict) == ({"employees": 12}, 3, None)
    assert [each.rank for each in service.shortlist("already contacted")] == [None, None]
    beside = service.compare_shortlist("already contacted", company="acme", k=2)
    parts = (beside.in_both, beside.only_here, beside.only_there)
    assert [[each.id for each in part] for part in parts] == [["boots"], ["zapatos"], ["clogs"]]
    service.save_shortlist("clients", ["clogs", "boots"])
    assert [each.id for each in service.compare_shortlist("clients", other="already contacted").only_here] == ["clogs"]
    assert [each.size for each in service.lists()] == [2, 2]
