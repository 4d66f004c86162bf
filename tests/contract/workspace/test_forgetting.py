"""An erased company is in no event, no list and no look any more; everything else stays."""

from similarity.workspace.protocol import Forgotten, Look, Workspace
from tests.workspace_records import NOON, make_event, make_list, moment


def looked(workspace: Workspace, name: str, *seen: str, user: str = "ann") -> None:
    workspace.add_look(Look(list_name=name, user=user, at=NOON, seen=seen))


def seen(workspace: Workspace, name: str, user: str = "ann") -> tuple[str, ...]:
    look = workspace.last_look(name, user)
    assert look is not None
    return look.seen


def test_all_events_about_it_go_and_no_other(workspace: Workspace) -> None:
    workspace.add_event(make_event("1", anchor="nike", hit="adidas"))
    workspace.add_event(make_event("2", anchor="puma", hit="nike", user="bob"))
    kept = workspace.add_event(make_event("3", anchor="puma", hit="adidas"))
    assert workspace.forget_company("nike", compact=False) == Forgotten(events=2)
    assert list(workspace.events()) == [kept]


def test_it_leaves_the_lists_that_ask_about_others_too(workspace: Workspace) -> None:
    workspace.save_list(
        make_list(
            anchors=[{"company": "nike"}, {"company": "puma", "weight": 2.0}, {"text": "makes shoes"}],
            negatives=[{"company": "nike"}, {"text": "nike"}],
            exclude=["adidas", "nike", "Nike, Inc.", "https://www.NIKE.com/shoes", "nikee"],
        )
    )
    forgotten = workspace.forget_company("nike", names=("Nike,  INC.", "nike.com", ""), compact=False)
    assert forgotten == Forgotten(lists=1)
    assert workspace.saved_list("shoes").question == {
        "anchors": [{"company": "puma", "weight": 2.0}, {"text": "makes shoes"}],
        "negatives": [{"text": "nike"}],
        "exclude": ["adidas", "nikee"],
    }


def test_a_list_about_it_alone_goes_with_its_looks(workspace: Workspace) -> None:
    workspace.save_list(make_list("alone"))
    workspace.save_list(make_list("other", anchors=[{"company": "puma"}]))
    looked(workspace, "alone", "adidas")
    assert workspace.forget_company("nike", compact=False) == Forgotten(lists=1)
    assert [each.name for each in workspace.lists()] == ["other"]
    assert workspace.last_look("alone", "ann") is None


def test_it_leaves_what_users_saw(workspace: Workspace) -> None:
    workspace.save_list(make_list())
    looked(workspace, "shoes", "adidas", "puma", "asics")
    looked(workspace, "shoes", "asics", user="bob")
    assert workspace.forget_company("puma", compact=False) == Forgotten(looks=1)
    assert seen(workspace, "shoes") == ("adidas", "asics")
    assert seen(workspace, "shoes", "bob") == ("asics",)


def test_forgetting_twice_or_an_unknown_company_does_nothing(workspace: Workspace) -> None:
    workspace.add_event(make_event())
    workspace.save_list(make_list())
    assert workspace.forget_company("nobody", compact=False) == Forgotten()
    workspace.forget_company("adidas", compact=False)
    assert workspace.forget_company("adidas", compact=False) == Forgotten()
    assert workspace.saved_list("shoes") == make_list()


def test_an_id_is_matched_as_it_is_written(workspace: Workspace) -> None:
    kept = workspace.add_event(make_event(anchor="Nike"))
    workspace.save_list(make_list(anchors=[{"company": "Nike"}]))
    assert workspace.forget_company("nike", compact=False) == Forgotten()
    assert list(workspace.events()) == [kept]


def test_many_events_and_lists_go_in_one_call(workspace: Workspace) -> None:
    for number in range(30):
        workspace.add_event(make_event(str(number), hit=f"hit-{number}", at=moment(number)))
        workspace.save_list(make_list(f"{number:02}", anchors=[{"company": "puma"}], exclude=["nike", str(number)]))
    assert workspace.forget_company("nike", compact=False) == Forgotten(events=30, lists=30)
    assert workspace.saved_list("07").question["exclude"] == ["7"]


def test_what_is_left_can_be_read_after_compacting(workspace: Workspace) -> None:
    workspace.add_event(make_event("1"))
    kept = workspace.add_event(make_event("2", anchor="puma"))
    workspace.forget_company("nike")
    assert list(workspace.events()) == [kept]
    workspace.add_event(make_event("1"))
    assert len(list(workspace.events())) == 2
