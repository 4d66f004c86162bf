import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import EPOCH
from similarity.errors import InvalidInput
from similarity.ingest.messages import Message, decode
from similarity.kafka import KafkaSettings, KeyedProducer, Record, TopicConsumer, topic_partitions
from similarity.kafka.records import SLOTS

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def record(timestamp: int | None) -> Record:
    return Record(topic="companies", partition=2, offset=7, key=b"acme", value=None, timestamp=timestamp)


def test_a_record_is_a_message_with_its_place_and_the_time_of_the_topic() -> None:
    assert record(1_790_000_000_123).message(NOW) == Message(
        position="kafka:companies/2/7",
        key=b"acme",
        value=None,
        time=datetime(2026, 9, 21, 14, 13, 20, 123_007, tzinfo=UTC),
    )


@pytest.mark.parametrize("offset", [0, SLOTS - 2, SLOTS - 1])
def test_changes_of_one_millisecond_keep_the_order_of_their_offsets(offset: int) -> None:
    time, versions = EPOCH, []
    for number, value in enumerate([b'{"name":"A","description":"Old."}', None, b'{"name":"A","description":"New."}']):
        message = replace(record(1_790_000_000_123), offset=offset + number, value=value).message(NOW, after=time)
        time = message.time
        versions.append(decode(message).change.version)
    assert versions == sorted(set(versions))
    assert time < record(1_790_000_000_124).message(NOW).time


def test_a_record_without_a_time_has_the_time_at_which_it_is_received() -> None:
    assert record(None).message(NOW).time == NOW


@given(timestamp=st.integers(0, 2**63 - 1))
def test_a_record_is_a_message_whatever_time_its_producer_claims(timestamp: int) -> None:
    assert record(timestamp).message(NOW).time >= EPOCH


def environ(**values: str) -> dict[str, str]:
    return {"PATH": "/bin", **{f"SIMILARITY_KAFKA_{name}": value for name, value in values.items()}}


def test_without_settings_a_broker_on_this_machine_is_meant() -> None:
    settings = KafkaSettings.from_environment({"PATH": "/bin"})
    assert settings == KafkaSettings(servers="127.0.0.1:9092")
    assert settings.client() == {"bootstrap.servers": "127.0.0.1:9092", "security.protocol": "PLAINTEXT"}


def test_every_setting_is_read() -> None:
    settings = KafkaSettings.from_environment(
        environ(
            SERVERS="a.example:9093,b.example:9093",
            USERNAME="me",
            PASSWORD="s3cret",
            MECHANISM="PLAIN",
            TLS="true",
            CA_FILE="ca.pem",
            CERTIFICATE_FILE="me.pem",
            KEY_FILE="me.key",
            KEY_PASSWORD="0pen",
        )
    )
    assert settings.client() == {
        "bootstrap.servers": "a.example:9093,b.example:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "s3cret",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.key.location": "me.key",
        "ssl.key.password": "0pen",
    }
    assert "s3cret" not in repr(settings)
    assert "0pen" not in repr(settings)


def test_servers_that_a_job_names_go_before_the_environment() -> None:
    assert KafkaSettings.from_environment(environ(SERVERS="a:1"), servers="b:2").servers == "b:2"


@pytest.mark.parametrize(
    ("given", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"TLS": "true"}, "SSL"),
        ({"CA_FILE": "ca.pem"}, "SSL"),
        ({"USERNAME": "me", "PASSWORD": "x"}, "SASL_SSL"),
        ({"USERNAME": "me", "PASSWORD": "x", "TLS": "no"}, "SASL_PLAINTEXT"),
    ],
)
def test_a_login_is_encrypted_unless_that_is_switched_off(given: dict[str, str], protocol: str) -> None:
    assert KafkaSettings.from_environment(environ(**given)).client()["security.protocol"] == protocol


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"SERVER": "a:1"}, "SIMILARITY_KAFKA_SERVER is not a setting; the settings are SIMILARITY_KAFKA_SERVERS"),
        ({"SERVERS": "broker"}, "must be HOST:PORT"),
        ({"SERVERS": "a:1,"}, "must be HOST:PORT"),
        ({"SERVERS": "me:s3cret@broker:9092"}, "must not contain a scheme or a password"),
        ({"SERVERS": "kafka://broker:9092"}, "must not contain a scheme or a password"),
        ({"USERNAME": "me"}, "USERNAME and SIMILARITY_KAFKA_PASSWORD belong together"),
        ({"PASSWORD": "s3cret"}, "USERNAME and SIMILARITY_KAFKA_PASSWORD belong together"),
        ({"CERTIFICATE_FILE": "me.pem"}, "KEY_FILE belong together"),
        ({"MECHANISM": "GSSAPI"}, "must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"TLS": "maybe"}, "must be true or false"),
        ({"TLS": "false", "CA_FILE": "ca.pem"}, "TLS is off, but certificates are set"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_without_showing_a_secret(given: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        KafkaSettings.from_environment(environ(**given))
    assert "s3cret" not in str(refused.value)


def test_without_the_client_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    settings = KafkaSettings()
    for use in (
        lambda: KeyedProducer(settings),
        lambda: TopicConsumer(settings, topic="companies", group="g"),
        lambda: topic_partitions(settings, "companies"),
    ):
        with pytest.raises(InvalidInput, match=r"pip install -e '\.\[kafka\]'"):
            use()
