"""Documents as real servers keep them, whichever way their vectors are sent."""

from collections.abc import Sequence

import numpy as np
import pytest
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from similarity.company import EmbeddedCompany
from similarity.index.elastic import ElasticIndex
from similarity.index.elastic.connection import Cluster
from similarity.index.protocol import WriteOutcome
from tests.contract.steps import add_live, outcomes
from tests.factories import make_embedded
from tests.integration.elasticsearch_place import Place
from tests.similarity.index.elastic.companies import DOCUMENTS

pytestmark = pytest.mark.integration


def releases(client: Elasticsearch) -> list[tuple[int, ...]]:
    nodes = client.nodes.info(filter_path=["nodes.*.version"])["nodes"]
    return [tuple(map(int, node["version"].split(".")[:2])) for node in nodes.values()]


def test_vectors_are_packed_from_9_3_on(place: Place) -> None:
    cluster = Cluster(place.settings)
    assert cluster.packs_vectors is (min(releases(place.client)) >= (9, 3))
    cluster.close()


def test_vectors_come_back_and_find_themselves_whichever_way_they_were_sent(place: Place) -> None:
    index = place.open()
    add_live(index, "first")
    # Numbers everywhere; packed too where the server reads it.
    for packed in sorted({False, index._cluster.packs_vectors}):
        index._cluster.packs_vectors = packed
        documents = [make_embedded(f"{packed}-{number}") for number in range(20)]
        index.upsert("first", documents)
        stored = index.get("first", [document.id for document in documents])
        for document in documents:
            np.testing.assert_allclose(stored[document.id].vector, document.vector, atol=1e-6)
            [hit] = index.similar("first", document.vector, k=1).hits
            assert hit.company.id == document.id
            assert hit.score == pytest.approx(1, abs=1e-4)


def check_round_trip(index: ElasticIndex, documents: Sequence[EmbeddedCompany], number: int) -> None:
    """Writes the documents under ids of their own and compares what comes back, kinds of values included."""
    sent = [
        make_embedded(
            f"c{number}.{place}",
            **{name: getattr(document.company, name) for name in FIELDS},
        )
        for place, document in enumerate(documents)
    ]
    assert outcomes(index.upsert("first", sent)) == [WriteOutcome.APPLIED] * len(sent)
    stored = index.get("first", [document.id for document in sent])
    for document in sent:
        back = stored[document.id].company
        assert back == document.company
        assert repr(dict(sorted(back.attributes.items()))) == repr(dict(sorted(document.company.attributes.items())))
        assert document.id in index.resolve("first", document.company.name)
    assert outcomes(index.upsert("first", sent)) == [WriteOutcome.UNCHANGED] * len(sent)


FIELDS = ("name", "description", "aliases", "domain", "country", "industry", "tags", "attributes")


def test_companies_of_every_kind_come_back_as_they_were(place: Place) -> None:
    index = place.open()
    add_live(index, "first")
    numbers = iter(range(1000))

    # No shrinking against a server: a failing example is small enough.
    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(DOCUMENTS, min_size=5, max_size=15))
    def check(documents: list[EmbeddedCompany]) -> None:
        check_round_trip(index, documents, next(numbers))

    check()
    assert next(numbers) > 10
