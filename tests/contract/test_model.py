"""Random histories of an index, compared step by step with a dict that follows the contract's words."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from similarity.company import EPOCH, DeletedCompany, EmbeddedCompany, name_key
from similarity.errors import GenerationConflict
from similarity.generations.plan import former_bundles
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, GenerationState, WriteOutcome
from tests.contract.steps import outcomes
from tests.factories import make_embedded, make_generation, unit_vector

Document = EmbeddedCompany | DeletedCompany

IDS = tuple("abcdef")
NAMES = ("Acme", "acme", "Bolt", "Zürich Öl")
COUNTRIES = ("", "FR", "fr", "DE")


def company(company_id: str, version: int, name: str, country: str, seed: int) -> EmbeddedCompany:
    return make_embedded(company_id, version=version, name=name, country=country, vector=unit_vector(seed))


# Few values, so that ties of ids, versions, names and vectors are common. Even versions write, odd ones delete.
WRITES = st.builds(
    company,
    st.sampled_from(IDS),
    st.integers(1, 8).map(lambda moment: 2 * moment),
    st.sampled_from(NAMES),
    st.sampled_from(COUNTRIES),
    st.integers(0, 4),
)
DELETES = st.builds(
    lambda company_id, moment: DeletedCompany(id=company_id, version=2 * moment + 1),
    st.sampled_from(IDS),
    st.integers(1, 8),
)


@dataclass
class ModelGeneration:
    bundle: str
    state: GenerationState = GenerationState.BUILDING
    went_live: int = 0
    documents: dict[str, Document] = field(default_factory=dict)

    def write(self, document: Document) -> WriteOutcome:
        stored = self.documents.get(document.id)
        if stored is None or document.version > stored.version:
            self.documents[document.id] = document
            return WriteOutcome.APPLIED
        if document.version < stored.version:
            return WriteOutcome.SUPERSEDED
        return WriteOutcome.UNCHANGED if content(document) == content(stored) else WriteOutcome.REJECTED

    def companies(self) -> list[EmbeddedCompany]:
        return [document for document in self.documents.values() if isinstance(document, EmbeddedCompany)]


def content(document: Document) -> object:
    return (document.company, document.text_hash) if isinstance(document, EmbeddedCompany) else None


def seen(document: Document) -> object:
    """A document without what floating point and the store may change."""
    return document.id, document.version, content(document)


class IndexHistory(RuleBasedStateMachine):
    """One index and its model. Generations are called g0, g1, ... in the order they were made."""

    def __init__(self) -> None:
        super().__init__()
        self.index = self.open_index()
        self.model: dict[str, ModelGeneration] = {}
        self.bundles_once_live: set[str] = set()
        self.made = 0
        self.steps = 0
        self.states: dict[str, GenerationState] = {}
        self.revision = self.index.revision()

    def open_index(self) -> CompanyIndex:
        raise NotImplementedError("the test says which store it runs on")

    def teardown(self) -> None:
        self.index.close()

    def named(self, state: GenerationState) -> list[str]:
        return [name for name, generation in self.model.items() if generation.state is state]

    def go_live(self, name: str) -> None:
        for current in self.named(GenerationState.LIVE):
            self.model[current].state = GenerationState.PREVIOUS
        self.steps += 1
        self.model[name].state = GenerationState.LIVE
        self.model[name].went_live = self.steps
        self.bundles_once_live.add(self.model[name].bundle)

    @initialize(documents=st.lists(WRITES, min_size=4, max_size=8))
    def begin_with_a_live_generation(self, documents: list[Document]) -> None:
        self.create(promoted=True, bundle="b0")
        self.write("g0", documents)

    @precondition(lambda self: len(self.model) < 3)
    @rule(promoted=st.booleans(), bundle=st.sampled_from(["b0", "b1", "b2"]))
    def create(self, promoted: bool, bundle: str) -> None:
        name = f"g{self.made}"
        self.made += 1
        self.index.create_generation(make_generation(name, bundle_id=bundle))
        self.model[name] = ModelGeneration(bundle)
        if promoted:
            self.index.register_candidate(name)
            self.index.promote(name)
            self.go_live(name)

    @rule(data=st.data())
    def register(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        if self.model[name].state is GenerationState.BUILDING:
            self.index.register_candidate(name)
            self.model[name].state = GenerationState.CANDIDATE
        else:
            with pytest.raises(GenerationConflict):
                self.index.register_candidate(name)

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        if self.model[name].state is GenerationState.CANDIDATE:
            self.index.withdraw_candidate(name)
            self.model[name].state = GenerationState.BUILDING
        else:
            with pytest.raises(GenerationConflict):
                self.index.withdraw_candidate(name)

    @rule(data=st.data())
    def promote(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        if self.model[name].state is GenerationState.CANDIDATE:
            self.index.promote(name)
            self.go_live(name)
        else:
            with pytest.raises(GenerationConflict):
                self.index.promote(name)

    @rule(force=st.booleans())
    def rollback(self, force: bool) -> None:
        [live] = self.named(GenerationState.LIVE)
        previous = self.named(GenerationState.PREVIOUS)
        target = max(previous, key=lambda name: self.model[name].went_live, default=None)
        if target is None or (not force and self.lags(target, live)):
            with pytest.raises(GenerationConflict):
                self.index.rollback(force=force, wait=0)
        else:
            assert self.index.rollback(force=force).name == target
            self.go_live(target)

    def lags(self, target: str, live: str) -> bool:
        held = self.model[target].documents
        return any(
            document.id not in held or held[document.id].version < document.version
            for document in self.model[live].documents.values()
        )

    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        if self.model[name].state is GenerationState.LIVE:
            with pytest.raises(GenerationConflict):
                self.index.retire(name)
        else:
            self.index.retire(name)
            del self.model[name]

    @rule(data=st.data(), documents=st.lists(WRITES | DELETES, min_size=1, max_size=6))
    def upsert(self, data: st.DataObject, documents: list[Document]) -> None:
        self.write(data.draw(st.sampled_from(sorted(self.model))), documents)

    @rule(documents=st.lists(WRITES | DELETES, min_size=1, max_size=6))
    def upsert_everywhere(self, documents: list[Document]) -> None:
        for name in self.model:
            self.write(name, documents)

    def write(self, name: str, documents: list[Document]) -> None:
        results = self.index.upsert(name, documents)
        assert [result.id for result in results] == [document.id for document in documents]
        assert outcomes(results) == [self.model[name].write(document) for document in documents]

    @rule(data=st.data(), version=st.integers(1, 18))
    def purge(self, data: st.DataObject, version: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        documents = self.model[name].documents
        gone = [
            held.id for held in documents.values() if isinstance(held, DeletedCompany) and held.version // 2 < version
        ]
        assert self.index.purge_deleted(name, before=EPOCH + timedelta(microseconds=version)) == len(gone)
        for company_id in gone:
            del documents[company_id]

    @rule(seed=st.integers(0, 6))
    def search_everything(self, seed: int) -> None:
        self.search(seed=seed, k=8, country="", keep=True, exclude=set())

    @rule(
        seed=st.integers(0, 6),
        k=st.integers(1, 8),
        country=st.sampled_from(COUNTRIES),
        keep=st.booleans(),
        exclude=st.sets(st.sampled_from(IDS), max_size=2),
    )
    def search(self, seed: int, k: int, country: str, keep: bool, exclude: set[str]) -> None:
        query = unit_vector(seed)
        any_of, none_of = ((country,), ()) if keep else ((), (country,))
        filters = [FieldFilter(field="country", any_of=any_of, none_of=none_of)] if country else []
        for name, generation in self.model.items():
            expected = sorted(
                (-float((held.vector * query.astype(np.float64)).sum()), held.id)
                for held in generation.companies()
                if held.id not in exclude
                and (not country or (name_key(held.company.country) == name_key(country)) is keep)
            )[:k]
            hits = self.index.similar(name, query, k=k, filters=filters, exclude=exclude).hits
            assert [hit.company.id for hit in hits] == [company_id for _, company_id in expected]
            assert [hit.score for hit in hits] == pytest.approx([-score for score, _ in expected], abs=1e-4)

    @invariant()
    def generations_are_those_of_the_model(self) -> None:
        states = {generation.name: generation.state for generation in self.index.generations()}
        assert states == {name: generation.state for name, generation in self.model.items()}
        revision = self.index.revision()
        assert revision > self.revision if states != self.states else revision == self.revision
        self.states, self.revision = states, revision

    @invariant()
    def former_bundles_are_those_that_were_live(self) -> None:
        live = {self.model[name].bundle for name in self.named(GenerationState.LIVE)}
        assert former_bundles(self.index) == self.bundles_once_live - live

    @invariant()
    def documents_are_those_of_the_model(self) -> None:
        for name, generation in self.model.items():
            scanned = [document for batch in self.index.scan(name, batch_size=2) for document in batch]
            expected = [generation.documents[company_id] for company_id in sorted(generation.documents)]
            assert list(map(seen, scanned)) == list(map(seen, expected))
            versions = [held for batch in self.index.versions(name, batch_size=4) for held in batch]
            assert [(held.id, held.version) for held in versions] == [(held.id, held.version) for held in expected]
            stats = self.index.stats(name)
            assert stats.companies == len(generation.companies())
            assert stats.companies + stats.deleted == len(expected)
            assert stats.last_version == max((document.version for document in expected), default=0)

    @invariant()
    def names_lead_to_the_companies_that_bear_them(self) -> None:
        for name, generation in self.model.items():
            for wanted in ("ACME", "bolt"):
                bearers = sorted(
                    held.id for held in generation.companies() if name_key(held.company.name) == name_key(wanted)
                )
                assert self.index.resolve(name, wanted) == bearers
                assert sorted(company.id for company in self.index.find(name, wanted)) == bearers


def test_every_history_agrees_with_the_model(open_index: Callable[[], CompanyIndex], histories: int) -> None:
    class History(IndexHistory):
        def open_index(self) -> CompanyIndex:
            return open_index()

    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=histories,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
