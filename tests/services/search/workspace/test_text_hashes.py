"""Texts of judged companies are prepared once, not with every export of ids."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from services.search.asking.service import SearchService
from services.search.workspace.feedback import FeedbackService, TextHashes
from similarity.company import Company
from similarity.feedback.protocol import Verdict
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from similarity.search.searcher import Searcher
from similarity.text import embedding_text
from tests.factories import make_embedded
from tests.services.search.corpus import company
from tests.workspace_records import make_event, moment


class Counting:
    """Prepares texts and counts them by company."""

    def __init__(self) -> None:
        self.prepared = Counter[str]()

    def __call__(self, company: Company) -> str:
        self.prepared[company.id] += 1
        return embedding_text(company)


def test_a_text_is_prepared_again_only_when_its_company_has_changed() -> None:
    counting = Counting()
    hashes = TextHashes(prepare=counting)
    acme, boots = make_embedded("acme", description="Makes shoes."), make_embedded("boots", description="Makes boots.")
    first = hashes.of({"acme": acme, "boots": boots})
    assert hashes.of({"acme": acme, "boots": boots}) == first
    assert counting.prepared == {"acme": 1, "boots": 1}
    changed = make_embedded("acme", description="Makes boots.", version=acme.version + 2)
    assert hashes.of({"acme": changed, "boots": boots}) == {"acme": first["boots"], "boots": first["boots"]}
    assert counting.prepared == {"acme": 2, "boots": 1}


def test_the_number_of_remembered_texts_is_bounded() -> None:
    counting = Counting()
    hashes = TextHashes(most=1, prepare=counting)
    for each in ("a", "b", "a", "a"):
        hashes.of({each: make_embedded(each)})
    assert counting.prepared == {"a": 2, "b": 1}


def test_the_page_can_ask_for_ids_again_and_again(index: SqliteIndex, tmp_path: Path) -> None:
    twins = {name: company(name, 0.5, 6, name="Twin", description="Rents out twins.") for name in ("twin", "twin-2")}
    index.upsert("first", list(twins.values()))
    workspace = SqliteWorkspace(tmp_path / "workspace")
    judged = {("acme", "boots"): Verdict.COMPETITOR, ("twin", "acme"): Verdict.COMPETITOR}
    judged |= {("twin-2", "acme"): Verdict.NOT_COMPETITOR, ("acme", "gone"): Verdict.COMPETITOR}
    for number, ((anchor, hit), verdict) in enumerate(judged.items()):
        workspace.add_event(make_event(str(number), anchor=anchor, hit=hit, verdict=verdict, at=moment(number)))
    counting = Counting()
    service = FeedbackService(SearchService(Searcher(index)), workspace, text_hashes=TextHashes(prepare=counting))
    told = [list(service.id_pairs()) for _ in range(3)]
    # Two companies of one text that were judged differently have no label, with ids as with texts.
    labels = [("acme", "boots", "positive"), ("twin", "acme", ""), ("twin-2", "acme", "")]
    assert [(each["company_a"], each["company_b"], each["label"]) for each in told[0]] == labels
    assert told[1] == told[2] == told[0]
    assert [each["label"] for each in service.text_pairs()] == [label for _, _, label in labels]
    assert counting.prepared == {"acme": 1, "boots": 1, "twin": 1, "twin-2": 1}
    workspace.close()


def test_texts_of_pairs_are_read_a_few_at_a_time_and_left_out_if_they_changed(
    index: SqliteIndex, tmp_path: Path
) -> None:
    index.upsert("first", [company(f"c{number}", 0.5, 6, description=f"Makes {number}.") for number in range(200)])
    workspace = SqliteWorkspace(tmp_path / "workspace")
    for number in range(0, 200, 2):
        pair = {"anchor": f"c{number}", "hit": f"c{number + 1}"}
        workspace.add_event(make_event(str(number), **pair, verdict=Verdict.COMPETITOR, at=moment(number)))
    pairs = FeedbackService(SearchService(Searcher(index)), workspace).text_pairs()
    first = next(pairs)
    last = sorted(f"c{number}" for number in range(0, 200, 2))[-1]
    changed = company(last, 0.5, 6, description="Makes what it did not make.")
    index.upsert("first", [replace(changed, version=changed.version + 2)])
    others = list(pairs)
    assert first["anchor_id"] == "c0"
    assert len(others) == 98
    assert last not in {each["anchor_id"] for each in others}
    workspace.close()
