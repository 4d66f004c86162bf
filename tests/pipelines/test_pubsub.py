from datetime import UTC, datetime

import apache_beam as beam
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from pipelines.sources.pubsub import ReadPubSub, message_of
from similarity.company import DeletedCompany
from similarity.errors import InvalidInput
from similarity.ingest.messages import Message, decode

pytestmark = pytest.mark.pipelines
PUBLISHED = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
SUBSCRIPTION = "projects/companies/subscriptions/changes"


class NanosecondDatetime(datetime):
    """As Google's library has it."""


def published(data: bytes, attributes: dict[str, str]) -> PubsubMessage:
    when = NanosecondDatetime.combine(PUBLISHED.date(), PUBLISHED.timetz())
    return PubsubMessage(data, attributes, message_id="42", publish_time=when)


def test_a_published_message_keeps_its_id_its_bytes_and_its_time() -> None:
    message = message_of(published(b'{"name": "A"}', {"id": "a", "other": "x"}))
    assert message == Message(position="pubsub:42", key=b"a", value=b'{"name": "A"}', time=PUBLISHED)
    assert type(message.time) is datetime


def test_the_id_may_be_in_the_value_alone() -> None:
    assert message_of(published(b"{}", {})).key is None


def test_a_message_without_data_deletes_the_company_of_its_id() -> None:
    change = decode(message_of(published(b"", {"id": "a"}))).change
    assert isinstance(change, DeletedCompany)
    assert change.id == "a"


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.sources.pubsub.is_installed", lambda library: False)
    with pytest.raises(InvalidInput, match=r"pip install 'apache-beam\[gcp\]'"):
        ReadPubSub(SUBSCRIPTION)


def test_a_subscription_is_named_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.sources.pubsub.is_installed", lambda library: True)
    with pytest.raises(InvalidInput, match="projects/<project>/subscriptions/<subscription>"):
        ReadPubSub("changes")


def test_a_job_is_built_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.sources.pubsub.is_installed", lambda library: True)
    pipeline = beam.Pipeline(runner="FnApiRunner")
    messages = pipeline | ReadPubSub(SUBSCRIPTION)
    assert messages.element_type is Message
    assert not messages.is_bounded
