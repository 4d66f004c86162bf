"""The check of killed streams finds what is wrong, and nothing else."""

from tests.faults.stream_check import Content, Topic, Written, acknowledged, invented, outdated, unsettled
from tests.faults.stream_inputs import Sent

POISON = Written(sent=Sent(key=b"a", value=b"{", company="a", poison="not JSON"), microseconds=5000)


def written(company: str, version: int | None, description: str | None = "boats") -> Written:
    sent = Sent(key=company.encode(), value=b"", company=company, version=version, description=description)
    return Written(sent=sent, microseconds=5000)


TOPIC: Topic = {
    (0, 0): written("a", 2, "anvils"),
    (0, 1): written("a", 4, "boats"),
    (0, 2): POISON,
    (1, 0): written("b", 3, None),
}
WHOLE = {"a": Content(version=4, description="boats"), "b": Content(version=3, description=None)}


def test_only_what_lies_before_the_committed_offset_is_acknowledged() -> None:
    assert acknowledged(TOPIC, {0: 2}) == [(0, 0), (0, 1)]
    assert acknowledged(TOPIC, {}) == []


def test_what_is_stored_as_it_is_or_newer_is_settled_and_so_is_kept_poison() -> None:
    assert unsettled(TOPIC, TOPIC, documents=WHOLE, dead={(0, 2)}) == {}


def test_a_missing_company_an_older_version_and_forgotten_poison_are_losses() -> None:
    documents = {"a": Content(version=2, description="anvils")}
    assert unsettled(TOPIC, TOPIC, documents=documents, dead=set()) == {
        (0, 1): "0/1 (a) asks for version 4, stored is version 2",
        (0, 2): "0/2 (a), poison (not JSON), is among no dead letters",
        (1, 0): "1/0 (b) asks for version 3, stored is nothing",
    }


def test_what_nobody_sent_is_invented() -> None:
    documents = {**WHOLE, "c": Content(version=2, description="cars"), "a": Content(version=4, description="cars")}
    problems = invented(TOPIC, documents=documents, dead={(0, 2), (0, 0), (1, 9)})
    assert [problem.split()[0] for problem in problems] == ["a", "c", "0/0", "1/9"]
    assert invented(TOPIC, documents=WHOLE, dead={(0, 2)}) == []


def test_at_the_end_only_the_highest_version_with_its_content_will_do() -> None:
    assert outdated(TOPIC, documents=WHOLE) == []
    raised = WHOLE | {"b": Content(version=2, description="back again")}
    older = {"b": WHOLE["b"], "a": Content(version=2, description="anvils")}
    assert [len(outdated(TOPIC, documents=each)) for each in (raised, older, {})] == [1, 1, 2]


def test_without_an_event_time_the_time_of_the_message_is_the_version() -> None:
    assert written("a", None).content.version == 2 * 5 * 1000
    assert written("a", None, None).content.version == 2 * 5 * 1000 + 1
