"""The workspace on a real cluster: beside the generations, clean after an erasure, and plain about what is wrong."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from similarity.errors import IndexUnavailable
from similarity.feedback.elastic import ElasticWorkspace
from similarity.feedback.protocol import ErasedMeanwhile, Forgotten, Look, SavedList, Shown
from similarity.index.elastic.documents import document_id
from similarity.index.elastic.mapping import Body
from similarity.index.ledger import ErasureState
from similarity.upkeep.erasure import Eraser
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.integration.elasticsearch_place import Place
from tests.servers.elasticsearch import ElasticsearchCluster
from tests.servers.ports import free_ports
from tests.workspace_records import NOON, forget, make_erased, make_event, make_list, make_shortlist, moment

pytestmark = pytest.mark.integration

SECRET = "zyxwvutsrqponm"


@pytest.fixture
def workspace(place: Place) -> Iterator[ElasticWorkspace]:
    with closing(ElasticWorkspace(place.settings)) as workspace:
        yield workspace


def test_promoting_and_retiring_generations_touches_nothing_of_it(place: Place, workspace: ElasticWorkspace) -> None:
    index = place.open()
    add_live(index, "first")
    workspace.add_event(make_event())
    workspace.save_list(make_list())
    add_live(index, "second")
    index.retire("first")
    assert list(workspace.events()) == [make_event()]
    assert workspace.lists() == [make_list()]
    assert {f"{place.name}-feedback", f"{place.name}-lists"} < set(place.indices())


def test_no_field_is_made_up_by_what_is_written(place: Place, workspace: ElasticWorkspace) -> None:
    workspace.add_event(make_event())
    workspace.save_list(make_list(filters=[{"field": "attributes.size", "at_least": 1}]))
    workspace.add_look(Look(list_name="shoes", user="ann", at=NOON, seen=("adidas",)))
    for name in ("feedback", "lists"):
        index = f"{place.name}-{name}"
        mapping = place.client.indices.get_mapping(index=index)[index]["mappings"]
        assert (mapping["dynamic"], mapping["_meta"]) == ("strict", {"schema": 1})
        assert "properties" not in mapping["properties"].get("question", {})


def test_a_list_that_is_changed_while_an_erasure_renames_it_keeps_the_change(
    workspace: ElasticWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.save_list(make_shortlist("Nike and others", "nike", "puma"))
    workspace.save_list(make_list("runners", anchors=[{"company": "adidas"}], exclude_lists=["Nike and others"]))
    move = workspace._indices.move

    def moved_too_late(hit: Mapping[str, Any], key: str, source: Body) -> Any:
        monkeypatch.undo()
        added = {"companies": ["puma", "asics"]}
        workspace.change_list("Nike and others", lambda kept: replace(kept, question=added, saved_at=moment(9)))
        return move(hit, key, source)

    monkeypatch.setattr(workspace._indices, "move", moved_too_late)
    forget(workspace, "nike", "Nike")
    [left] = [each for each in workspace.lists() if each.companies is not None]
    assert "nike" not in left.name.casefold()
    assert left.companies == ("puma", "asics")
    assert workspace.saved_list("runners").question["exclude_lists"] == [left.name]


def test_an_erasure_whose_lease_was_taken_leaves_none_of_the_companies_in_a_list_that_both_rename(
    place: Place, workspace: ElasticWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.save_list(make_list("Rivals of Nike", anchors=[{"company": "puma"}, {"text": "shoes as by Fila"}]))
    workspace.add_look(Look(list_name="Rivals of Nike", user="ann", at=NOON, seen=("asics",)))
    move = workspace._indices.move

    def moved_by_another(hit: Mapping[str, Any], key: str, source: Body) -> Any:
        monkeypatch.undo()
        with closing(ElasticWorkspace(place.settings)) as other:
            other.forget_companies(make_erased({"nike": ["Nike"], "fila": ["Fila"]}))
        return move(hit, key, source)

    monkeypatch.setattr(workspace._indices, "move", moved_by_another)
    forget(workspace, "nike", "Nike")
    [left] = workspace.lists()
    assert left.name.startswith("list ")
    assert left.question["anchors"] == [{"company": "puma"}]
    assert [look.list_name for look in workspace.looks("ann")] == [left.name]


def test_two_services_that_erase_at_once_keep_every_list(place: Place, workspace: ElasticWorkspace) -> None:
    add_live(place.open(), "first")
    kept = [make_shortlist(f"Nike and Fila {number}", "puma", "nike", "fila") for number in range(12)]
    for each in kept:
        workspace.save_list(each)
    add = [make_embedded("nike", name="Nike"), make_embedded("fila", name="Fila")]
    with closing(ElasticWorkspace(place.settings)) as other, ThreadPoolExecutor(2) as pool:
        erasers = [Eraser(place.open(), each) for each in (workspace, other)]
        erasers[0].index.upsert("first", add)
        for eraser, company in zip(erasers, add, strict=True):
            eraser.accept(company.id)
        records = list(pool.map(lambda eraser: eraser.finish(compact=False), erasers))
    assert {record.state for each in records for record in each} == {ErasureState.DONE}
    assert [each.companies for each in workspace.lists()] == [("puma",)] * len(kept)
    assert {each.name.partition(" ")[0] for each in workspace.lists()} == {"list"}


def test_two_erasures_at_once_empty_the_texts_of_one_event(
    place: Place, workspace: ElasticWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.add_event(make_event(anchor="puma", note="like Nike", shown=Shown(generation="of Fila")))
    replaced = workspace._indices.replace

    def after_another(index: str, hit: Mapping[str, Any], source: Body, **named: Any) -> bool:
        monkeypatch.undo()
        with closing(ElasticWorkspace(place.settings)) as other:
            forget(other, "fila", "Fila")
        return replaced(index, hit, source, **named)

    monkeypatch.setattr(workspace._indices, "replace", after_another)
    forget(workspace, "nike", "Nike")
    [event] = workspace.events()
    assert (event.note, event.shown.generation) == ("", "")


def test_looks_that_a_kill_left_without_their_list_go_with_the_name(workspace: ElasticWorkspace) -> None:
    workspace.save_list(make_list("Rivals of Nike", anchors=[{"company": "puma"}]))
    workspace.add_look(Look(list_name="Rivals of Nike", user="ann", at=NOON, seen=("asics",)))
    workspace._indices.delete(document_id("list", "Rivals of Nike"))
    forget(workspace, "nike", "Nike")
    assert workspace._indices.names_of_looks() == []


def test_a_list_that_was_being_changed_while_an_erasure_searched_stays_as_it_was(
    place: Place, workspace: ElasticWorkspace
) -> None:
    kept = make_shortlist("contacted", "puma")
    workspace.save_list(kept)
    mark = workspace.erasure_mark()

    def erase_first(saved: SavedList) -> SavedList:
        with closing(ElasticWorkspace(place.settings)) as other:
            forget(other, "nike", "Nike")
        return replace(saved, question={"companies": ["puma", "nike"]})

    with pytest.raises(ErasedMeanwhile):
        workspace.change_list("contacted", erase_first, since=mark)
    with pytest.raises(ErasedMeanwhile):
        workspace.save_list(make_shortlist("contacted", "nike"), since=mark)
    assert workspace.lists() == [kept]


def test_an_index_of_a_newer_release_is_refused(place: Place, workspace: ElasticWorkspace) -> None:
    workspace.add_event(make_event())
    place.client.indices.put_mapping(index=f"{place.name}-feedback", meta={"schema": 2})
    with closing(ElasticWorkspace(place.settings)) as older, pytest.raises(IndexUnavailable, match="this release"):
        older.add_event(make_event("2"))


def test_a_cluster_that_is_away_is_said(place: Place) -> None:
    [port] = free_ports(1)
    away = replace(place.settings, hosts=(f"http://127.0.0.1:{port}",))
    with closing(ElasticWorkspace(away)) as workspace:
        with pytest.raises(IndexUnavailable, match="cannot be reached"):
            workspace.lists()
        with pytest.raises(IndexUnavailable, match="cannot be reached"):
            workspace.check()


@pytest.mark.parametrize("part", ["feedback", "lists"])
def test_indices_that_are_closed_or_gone_are_said(place: Place, workspace: ElasticWorkspace, part: str) -> None:
    workspace.check()
    place.client.indices.close(index=f"{place.name}-{part}")
    with pytest.raises(IndexUnavailable):
        workspace.check()
    place.client.indices.delete(index=f"{place.name}-{part}")
    with pytest.raises(IndexUnavailable, match=f"{part} was deleted"):
        workspace.check()


def test_an_erased_company_leaves_the_files(secured_cluster: ElasticsearchCluster, secured_place: Place) -> None:
    place = secured_place
    with closing(ElasticWorkspace(place.settings)) as workspace:
        workspace.add_event(make_event("1", hit=SECRET, note=f"about {SECRET}"))
        kept = workspace.add_event(make_event("2"))
        workspace.save_list(make_list("alone", anchors=[{"company": SECRET}]))
        workspace.save_list(make_list("shared", exclude=[SECRET, "puma"]))
        workspace.add_look(Look(list_name="shared", user="ann", at=NOON, seen=(SECRET, "puma")))
        for name in ("feedback", "lists"):
            place.client.indices.flush(index=f"{place.name}-{name}")
        assert place.files_with(SECRET, secured_cluster)
        assert forget(workspace, SECRET) == Forgotten(events=1, lists=2, looks=1)
        workspace.compact()
        assert place.files_with(SECRET, secured_cluster) == []
        assert list(workspace.events()) == [kept]
        assert workspace.saved_list("shared").question["exclude"] == ["puma"]
