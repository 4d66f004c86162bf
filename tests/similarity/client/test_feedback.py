"""The calls about feedback, lists and names, as requests and as answers."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from similarity.client import feedback, queries, saved_lists
from similarity.client.call import Reply
from similarity.client.decoding import decode
from similarity.client.problems import UnreadableAnswer
from similarity.client.question import Question
from similarity.client.ranking import Ranking
from tests.similarity.client.replies import ranking, reply

EVENT = {"id": "e1", "user": "ann", "at": "2026-01-31T12:00:00Z", "anchor": "nike", "hit": "a", "verdict": "competitor"}


def body(call: Any) -> Any:
    return json.loads(call.body)


def test_a_verdict_on_a_hit_says_what_was_shown() -> None:
    seen = decode(Ranking, ranking("adidas", next_cursor=None))
    call = feedback.feedback("nike", seen.hits[0], "competitor", ranking=seen, event_id="e1")
    assert (call.method, call.path) == ("POST", "/feedback")
    assert body(call) == {
        "id": "e1",
        "anchor": "nike",
        "hit": "adidas",
        "verdict": "competitor",
        "rank": 1,
        "score": 0.9,
        "generation": "first",
        "bundle_id": "bundle-1",
    }
    assert call.read(reply(201, {**EVENT, "rank": 1})).user == "ann"


def test_every_verdict_has_an_id_so_that_it_may_be_sent_again() -> None:
    first, second = (body(feedback.feedback("nike", "adidas", "unsure")) for _ in range(2))
    assert first["id"] != second["id"]
    assert set(first) == {"id", "anchor", "hit", "verdict"}


def test_verdicts_and_history_are_two_views_of_feedback() -> None:
    answer = reply(200, {"anchor": "nike", "verdicts": [{"hit": "a", "verdict": "unsure"}], "events": [EVENT]})
    assert feedback.verdicts("nike", who="all").path == "/feedback?anchor=nike&who=all"
    assert [each.verdict for each in feedback.verdicts("nike").read(answer)] == ["unsure"]
    assert feedback.history(user="ann", limit=5).path == "/feedback?user=ann&limit=5"
    assert [each.id for each in feedback.history().read(answer).events] == ["e1"]


def test_labelled_pairs_are_read_line_by_line() -> None:
    lines = (
        b'{"text_a": "x", "text_b": "y", "label": "positive", "users": 2}\n'
        b'{"text_a": "x", "text_b": "z", "label": "", "users": 1}\n'
    )
    call = feedback.pairs()
    found = call.read(Reply(status=200, headers={}, body=lines))
    assert [(pair.text_b, pair.label, pair.users) for pair in found] == [("y", "positive", 2), ("z", "", 1)]
    with pytest.raises(UnreadableAnswer):
        call.read(Reply(status=200, headers={}, body=b"text_a,text_b\n"))


def test_what_to_judge_next_says_why() -> None:
    suggestion = {"anchor": {"id": "nike"}, "hit": {"id": "adidas"}, "worth": 0.6, "why": ["uncertain"]}
    call = feedback.next_to_label(k=1)
    (found,) = call.read(reply(200, {"pairs": [suggestion], "anchors": ["nike"]}))
    assert call.path == "/feedback/next?k=1"
    assert (found.hit.id, found.why) == ("adidas", ("uncertain",))


def test_a_list_is_a_question_with_a_name() -> None:
    question = Question.about("nike", "adidas", country="Japan")
    call = saved_lists.save_list("sports & shoes", question)
    assert (call.method, call.path) == ("PUT", "/lists/sports%20%26%20shoes")
    assert body(call) == {"question": question.body()}
    saved = {"name": "sports & shoes", "saved_by": "ann", "question": question.body()}
    assert call.read(reply(200, saved)).question == question.body()


def test_hits_of_a_list_say_whether_they_are_new() -> None:
    answer = ranking("a", "b")
    answer["hits"][1]["new"] = True
    call = saved_lists.list_hits("shoes", k=5)
    assert call.path == "/lists/shoes/hits?k=5"
    read = call.read(reply(200, {**answer, "name": "shoes", "looked_at": "2026-01-31T12:00:00Z"}))
    assert [hit.new for hit in read.hits] == [None, True]
    assert (read.name, read.looked_at) == ("shoes", datetime(2026, 1, 31, 12, tzinfo=UTC))
    assert call.read(reply(200, {**answer, "name": "shoes", "looked_at": None})).looked_at is None


def test_lists_say_how_much_is_new_where_they_are_asked() -> None:
    assert saved_lists.lists().path == "/lists"
    call = saved_lists.lists(new=True)
    assert call.path == "/lists?new=true"
    rows = [{"name": "boots", "new": 3}, {"name": "shoes", "new": None}, {"name": "of an older service"}]
    assert [each.new for each in call.read(reply(200, {"lists": rows}))] == [3, None, None]


def test_a_look_is_at_all_hits_or_at_those_that_were_seen() -> None:
    assert body(saved_lists.looked("shoes")) == {}
    call = saved_lists.looked("shoes", ids=["a"])
    assert body(call) == {"ids": ["a"]}
    assert call.read(reply(200, {"name": "shoes", "looked_at": "2026-01-31T12:00:00Z", "seen": 1})).seen == 1


def test_names_are_matched_as_they_are_or_with_what_is_known_of_them() -> None:
    call = queries.match(["Nike", {"domain": "adidas.com", "country": "Germany"}])
    assert body(call) == {"rows": [{"name": "Nike"}, {"domain": "adidas.com", "country": "Germany"}]}
    rows = [
        {"row": 1, "asked": {"name": "Nike"}, "id": "nike", "confidence": 0.98, "how": "name"},
        {"row": 2, "asked": {"domain": "adidas.com"}, "id": None, "miss": "no company has this website"},
    ]
    found, missed = call.read(reply(200, {"rows": rows, "matched": 1, "generation": "first"}))
    assert (found.id, found.how, found.asked.name) == ("nike", "name", "Nike")
    assert (missed.id, missed.miss) == (None, "no company has this website")


def test_a_map_and_a_table_are_of_a_question_or_of_one_company() -> None:
    point = {"id": "nike", "name": "Nike", "x": 0, "y": -0.5, "role": "anchor", "score": None, "probability": None}
    drawn = queries.map_of("nike").read(reply(200, {"points": [point], "explained": 0.41}))
    assert (drawn.points[0].y, drawn.explained) == (-0.5, 0.41)
    assert body(queries.map_of("nike")) == body(queries.table(Question.about("nike")))
    assert queries.table("nike").read(Reply(status=200, headers={}, body="é\n".encode())) == "é\n"
