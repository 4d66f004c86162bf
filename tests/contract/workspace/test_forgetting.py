"""An erased company is in no event, no list and no look any more; everything else stays."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from similarity.errors import LeaseLost
from similarity.feedback import forgetting
from similarity.feedback.protocol import ErasedMeanwhile, Forgotten, Look, Shown, Verdict, Workspace
from tests.workspace_records import NOON, forget, make_erased, make_event, make_list, make_names, make_shortlist, moment


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
    assert forget(workspace, "nike") == Forgotten(events=2)
    assert list(workspace.events()) == [kept]


def test_it_leaves_the_lists_that_ask_about_others_too(workspace: Workspace) -> None:
    workspace.save_list(
        make_list(
            anchors=[{"company": "nike"}, {"company": "puma", "weight": 2.0}, {"text": "makes shoes"}],
            negatives=[{"company": "nike"}, {"text": "nike"}],
            exclude=["adidas", "nike", "Nike, Inc.", "https://www.NIKE.com/shoes", "nikee"],
        )
    )
    forgotten = forget(workspace, "nike", "Nike,  INC.", "nike.com", "")
    assert forgotten == Forgotten(lists=1)
    assert workspace.saved_list("shoes").question == {
        "anchors": [{"company": "puma", "weight": 2.0}, {"text": "makes shoes"}],
        "negatives": [],
        "exclude": ["adidas", "nikee"],
    }


def test_texts_that_contain_a_name_go(workspace: Workspace) -> None:
    texts = ["sells shoes as NIKE does", "Nïke-Inc.: runs", "snikers", "like nike.com, but cheaper"]
    workspace.save_list(
        make_list(anchors=[{"text": text} for text in texts], negatives=[{"text": "Unlike Nike, Inc."}])
    )
    workspace.save_list(make_list("words alone", anchors=[{"text": "a second Nike"}]))
    assert forget(workspace, "c17", "Nike, Inc.", "nike.com") == Forgotten(lists=2)
    assert workspace.saved_list("shoes").question == {"anchors": [{"text": "snikers"}], "negatives": []}
    assert [each.name for each in workspace.lists()] == ["shoes"]


def test_names_in_other_scripts_are_found_without_spaces(workspace: Workspace) -> None:
    workspace.add_event(make_event("1", anchor="puma", note="我们与阿里巴巴竞争"))
    workspace.add_event(make_event("2", anchor="puma", note="삼성전자는 크다"))
    kept = workspace.add_event(make_event("3", anchor="puma", note="阿里山"))
    assert forget(workspace, "c17", "阿里巴巴有限公司", "삼성전자") == Forgotten(notes=2)
    assert [event.note for event in workspace.events() if event.id != kept.id] == ["", ""]
    assert kept in workspace.events()


def test_filter_values_with_a_name_in_them_go(workspace: Workspace) -> None:
    filters = [
        {"field": "domain", "none_of": ["nike.com", "puma.com"]},
        {"field": "attributes.parent", "any_of": ["NIKE, Inc."]},
        {"field": "attributes.size", "any_of": ["Nike Inc"], "at_least": 1},
        {"field": "attributes.rank", "any_of": ["Nike Inc"], "above": "low"},
        {"field": "tags", "any_of": ["nikes", "likes Nike"]},
    ]
    workspace.save_list(make_list(anchors=[{"company": "puma"}], filters=filters))
    assert forget(workspace, "c17", "Nike, Inc.", "nike.com") == Forgotten(lists=1)
    assert workspace.saved_list("shoes").question["filters"] == [
        {"field": "domain", "none_of": ["puma.com"]},
        {"field": "attributes.size", "any_of": [], "at_least": 1},
        {"field": "attributes.rank", "any_of": [], "above": "low"},
        {"field": "tags", "any_of": ["nikes"]},
    ]


def test_a_list_with_a_name_in_its_name_is_renamed_and_its_looks_stay(workspace: Workspace) -> None:
    question: dict[str, Any] = {"anchors": [{"company": "puma"}]}
    workspace.save_list(make_list("Nike's rivals", **question))
    for number in range(60):
        looked(workspace, "Nike's rivals", "adidas", user=f"user {number}")
    assert forget(workspace, "c17", "Nike, Inc.") == Forgotten(lists=1)
    [renamed] = workspace.lists()
    assert "nike" not in renamed.name.casefold()
    assert renamed == make_list(renamed.name, **question)
    assert {seen(workspace, renamed.name, f"user {number}") for number in range(60)} == {("adidas",)}
    workspace.save_list(make_list("Nike's rivals", at=moment(1), **question))
    assert forget(workspace, "c17", "Nike, Inc.") == Forgotten(lists=1)
    assert len({each.name for each in workspace.lists()}) == 2


def test_it_leaves_shortlists_which_stay_even_if_they_are_empty(workspace: Workspace) -> None:
    workspace.save_list(make_shortlist("contacted", "puma", "nike", "nike-japan", "asics"))
    workspace.save_list(make_shortlist("alone", "nike"))
    kept = make_shortlist("others", "puma", "Nike")
    workspace.save_list(kept)
    assert forget(workspace, "nike", "Nike, Inc.") == Forgotten(lists=2)
    assert workspace.saved_list("contacted").companies == ("puma", "nike-japan", "asics")
    assert workspace.saved_list("alone").companies == ()
    assert workspace.saved_list("others") == kept


def test_nothing_is_removed_without_leave(workspace: Workspace) -> None:
    """Another process may have taken the lease, or the company may have been written again."""
    workspace.add_event(make_event("1", anchor="nike", hit="adidas"))
    workspace.add_event(make_event("2", anchor="puma", hit="adidas", note="bigger than Nike"))
    workspace.save_list(make_shortlist("contacted", "nike", "puma"))
    workspace.save_list(make_shortlist("Nike's suppliers", "puma"))
    looked(workspace, "contacted", "nike", "puma")
    before = [*workspace.events()], workspace.lists()

    def refuse(ids: Collection[str]) -> None:
        if ids:
            raise LeaseLost(", ".join(ids))

    with pytest.raises(LeaseLost, match="nike"):
        workspace.forget_companies(make_erased({"nike": ["Nike, Inc."]}, require=refuse))
    assert ([*workspace.events()], workspace.lists()) == before
    assert seen(workspace, "contacted") == ("nike", "puma")


def test_queries_follow_a_shortlist_that_is_renamed(workspace: Workspace) -> None:
    workspace.save_list(make_shortlist("Nike's suppliers", "puma"))
    anchors = [{"company": "puma"}]
    workspace.save_list(make_list("query", anchors=anchors, exclude_lists=["Nike's suppliers", "contacted"]))
    workspace.save_list(make_list("A query about Nike", anchors=anchors, exclude_lists=["Nike's suppliers"]))
    workspace.save_list(make_list("zz", anchors=anchors, exclude_lists=["a deleted list of Nike"]))
    assert forget(workspace, "c17", "Nike, Inc.") == Forgotten(lists=4)
    [renamed] = [each.name for each in workspace.lists() if each.companies == ("puma",)]
    assert renamed.startswith("list ")
    assert workspace.saved_list("query").question["exclude_lists"] == [renamed, "contacted"]
    [other] = [each for each in workspace.lists() if each.name not in {renamed, "query", "zz"}]
    assert other.question["exclude_lists"] == [renamed]
    [unknown] = workspace.saved_list("zz").question["exclude_lists"]
    assert unknown.startswith("list ")
    assert unknown not in {each.name for each in workspace.lists()}


def test_an_interrupted_erasure_goes_on_with_the_same_names_of_lists(workspace: Workspace) -> None:
    """Queries are changed before the lists that they exclude are renamed; such a list may be changed in between."""
    first = forgetting.renamed_lists([make_shortlist("Nike's suppliers", "puma")], make_names("c17", "Nike, Inc."))
    workspace.save_list(make_shortlist("Nike's suppliers", "puma", "asics", at=moment(1)))
    workspace.save_list(make_list("query", anchors=[{"company": "adidas"}], exclude_lists=[*first.values()]))
    forget(workspace, "c17", "Nike, Inc.")
    assert workspace.saved_list(first["Nike's suppliers"]).companies == ("puma", "asics")
    workspace.save_list(make_shortlist("Nike's suppliers", "fila", at=moment(2)))  # of a company added later
    forget(workspace, "c18", "Nike, Inc.")
    assert {each.companies for each in workspace.lists()} == {None, ("puma", "asics"), ("fila",)}


def test_notes_on_other_pairs_that_contain_a_name_are_emptied(workspace: Workspace) -> None:
    for number in range(600):
        note = "bigger than Nike" if number % 200 == 7 else "a likely rival"
        workspace.add_event(make_event(str(number), anchor="puma", hit="adidas", at=moment(number), note=note))
    assert forget(workspace, "c17", "Nike, Inc.") == Forgotten(notes=3)
    events = {event.id: event for event in workspace.events()}
    assert (events["207"].note, events["207"].verdict) == ("", Verdict.COMPETITOR)
    assert sum(not event.note for event in events.values()) == 3


def test_a_name_that_another_company_has_too_stays_where_it_stands_for_a_company(workspace: Workspace) -> None:
    anchors = [{"company": "puma"}, {"company": "Nike, Inc."}]
    question: dict[str, Any] = {"anchors": anchors, "exclude": ["Nike, Inc.", "nike.com", "nike-japan", "Nike Peru"]}
    workspace.save_list(make_list(**question))
    anothers = ("Nike, Inc.", "nike-japan")
    assert forget(workspace, "c17", "Nike, Inc.", "nike.com", anothers=anothers) == Forgotten(lists=1)
    assert workspace.saved_list("shoes").question == {**question, "exclude": ["Nike, Inc.", "nike-japan"]}


def test_words_that_are_everywhere_are_not_taken_for_a_name(workspace: Workspace) -> None:
    notes = ["energy is dear", "there are 360 of them", "turn it on", "an x"]
    for number, note in enumerate(notes):
        workspace.add_event(make_event(str(number), anchor="puma", note=note))
    assert forget(workspace, "42", "Energy", "360", "On", "X") == Forgotten()
    workspace.add_event(make_event("capital", anchor="puma", note="shoes by On"))
    assert forget(workspace, "42", "Energy", "360", "On", "X") == Forgotten(notes=1)


def test_an_ordinary_word_is_a_name_only_where_a_company_is_referred_to(workspace: Workspace) -> None:
    question: dict[str, Any] = {
        "anchors": [{"company": "puma"}, {"text": "renewable energy storage for homes"}],
        "filters": [{"field": "industry", "any_of": ["Energy"]}],
    }
    workspace.save_list(make_list(**question, exclude=["energy", "adidas"]))
    workspace.add_event(make_event(anchor="puma", note="energy is dear"))
    assert forget(workspace, "energy", "Energy") == Forgotten(lists=1)
    assert workspace.saved_list("shoes").question == {**question, "exclude": ["adidas"]}


def test_names_in_places_that_a_client_fills_freely_go(workspace: Workspace) -> None:
    shown = Shown(rank=1, score=0.5, probability=None, generation="of Nike", bundle_id="nike bundle")
    workspace.add_event(make_event(anchor="puma", hit="adidas", shown=shown, note="a rival"))
    filters = [{"field": "attributes.Nike_size", "any_of": ["large"]}, {"field": "country", "any_of": ["Japan"]}]
    workspace.save_list(make_list(anchors=[{"company": "puma"}], filters=filters))
    assert forget(workspace, "c17", "Nike, Inc.") == Forgotten(lists=1, notes=1)
    [event] = workspace.events()
    assert (event.shown.generation, event.shown.bundle_id, event.note) == ("", "", "a rival")
    assert workspace.saved_list("shoes").question["filters"] == filters[1:]


def test_a_list_about_it_alone_goes_with_its_looks(workspace: Workspace) -> None:
    workspace.save_list(make_list("alone"))
    workspace.save_list(make_list("other", anchors=[{"company": "puma"}]))
    looked(workspace, "alone", "adidas")
    assert forget(workspace, "nike") == Forgotten(lists=1)
    assert [each.name for each in workspace.lists()] == ["other"]
    assert workspace.last_look("alone", "ann") is None


def test_it_leaves_what_users_saw(workspace: Workspace) -> None:
    workspace.save_list(make_list())
    looked(workspace, "shoes", "adidas", "puma", "asics")
    looked(workspace, "shoes", "asics", user="bob")
    assert forget(workspace, "puma") == Forgotten(looks=1)
    assert seen(workspace, "shoes") == ("adidas", "asics")
    assert seen(workspace, "shoes", "bob") == ("asics",)


def test_forgetting_twice_or_an_unknown_company_does_nothing(workspace: Workspace) -> None:
    workspace.add_event(make_event())
    workspace.save_list(make_list())
    assert forget(workspace, "nobody") == Forgotten()
    forget(workspace, "adidas")
    assert forget(workspace, "adidas") == Forgotten()
    assert workspace.saved_list("shoes") == make_list()


def test_an_id_is_matched_as_it_is_written(workspace: Workspace) -> None:
    kept = workspace.add_event(make_event(anchor="Nike"))
    workspace.save_list(make_list(anchors=[{"company": "Nike"}]))
    assert forget(workspace, "nike") == Forgotten()
    assert list(workspace.events()) == [kept]


def test_companies_that_are_erased_together_are_counted_each(workspace: Workspace) -> None:
    workspace.add_event(make_event("1", anchor="nike", hit="puma"))
    workspace.add_event(make_event("2", anchor="puma", hit="asics", note="bigger than Fila"))
    kept = workspace.add_event(make_event("3", anchor="adidas", hit="asics", note="both Nike and Fila"))
    workspace.save_list(make_list("query", anchors=[{"company": "adidas"}], exclude=["nike", "Fila S.p.A.", "on"]))
    workspace.save_list(make_list("Fila's rivals", anchors=[{"company": "nike"}, {"text": "like Fila"}]))
    workspace.save_list(make_shortlist("Nike and Fila", "adidas"))
    workspace.save_list(make_list("other", anchors=[{"company": "adidas"}], exclude_lists=["Nike and Fila"]))
    looked(workspace, "query", "nike", "fila", "asics")
    forgotten = workspace.forget_companies(make_erased({"nike": ["Nike, Inc."], "fila": ["Fila S.p.A."], "none": []}))
    assert forgotten == {
        "nike": Forgotten(events=1, lists=4, looks=1, notes=1),
        "fila": Forgotten(lists=4, looks=1, notes=2),
        "none": Forgotten(),
    }
    notes = {event.id: event.note for event in workspace.events()}
    assert notes == {"2": "", kept.id: ""}
    [renamed] = [saved.name for saved in workspace.lists() if saved.companies == ("adidas",)]
    assert {saved.name for saved in workspace.lists()} == {renamed, "other", "query"}
    assert workspace.saved_list("other").question["exclude_lists"] == [renamed]
    assert workspace.saved_list("query").question["exclude"] == ["on"]
    assert seen(workspace, "query") == ("asics",)


def test_many_events_and_lists_go_in_one_call(workspace: Workspace) -> None:
    for number in range(30):
        workspace.add_event(make_event(str(number), hit=f"hit-{number}", at=moment(number)))
        workspace.save_list(make_list(f"{number:02}", anchors=[{"company": "puma"}], exclude=["nike", str(number)]))
    assert forget(workspace, "nike") == Forgotten(events=30, lists=30)
    assert workspace.saved_list("07").question["exclude"] == ["7"]


def test_what_is_left_can_be_read_after_compacting(workspace: Workspace) -> None:
    workspace.add_event(make_event("1"))
    kept = workspace.add_event(make_event("2", anchor="puma"))
    forget(workspace, "nike")
    workspace.compact()
    assert list(workspace.events()) == [kept]
    workspace.add_event(make_event("1"))
    assert len(list(workspace.events())) == 2


SAVES: dict[str, Callable[[Workspace, str], object]] = {
    "event": lambda workspace, mark: workspace.add_event(make_event(), since=mark),
    "new list": lambda workspace, mark: workspace.save_list(make_list("new"), since=mark),
    "list": lambda workspace, mark: workspace.save_list(make_shortlist("contacted", "nike"), since=mark),
    "change": lambda workspace, mark: workspace.change_list(
        "contacted",
        lambda saved: replace(saved, question={"companies": [*(saved.companies or ()), "nike"]}),
        since=mark,
    ),
    "look": lambda workspace, mark: workspace.add_look(
        Look(list_name="contacted", user="ann", at=NOON, seen=("nike",)), since=mark
    ),
}


@pytest.mark.parametrize("save", SAVES.values(), ids=SAVES)
def test_nothing_is_saved_of_what_was_looked_up_before_an_erasure(
    open_named: Callable[[str], Workspace], save: Callable[[Workspace, str], object]
) -> None:
    here, elsewhere = open_named("shared"), open_named("shared")
    here.save_list(make_shortlist("contacted", "puma"))
    mark = here.erasure_mark()
    save(here, mark)
    forget(elsewhere, "nike")
    with pytest.raises(ErasedMeanwhile, match="send it again"):
        save(here, mark)
    assert forget(elsewhere, "nike") == Forgotten()
    assert elsewhere.saved_list("contacted").companies is not None
    save(here, here.erasure_mark())
