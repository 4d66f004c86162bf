import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import DOT_SEGMENTS, EPOCH, Company, DeletedCompany, version_of
from similarity.errors import InvalidCompany
from similarity.ingest.encodings import before_wrong_decoding
from similarity.ingest.field_values import MISSING, clean_text
from similarity.ingest.messages import MAX_BYTES, MAX_FOLLOWED_VERSION, Message, decode, encode, following
from similarity.ingest.records import Change, Columns, VersionedCompany

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ACME = {"id": "acme", "name": "Acme", "description": "Makes anvils."}


def message(value: object, *, key: bytes | None = None, time: datetime = NOW) -> Message:
    held = value if isinstance(value, bytes | None) else json.dumps(value).encode()
    return Message(position="kafka:companies/0/1", key=key, value=held, time=time)


def clean(text: str) -> bool:
    """Whether it is a text as it is stored: trimmed, in NFC, not empty; and none that looks wrongly decoded."""
    return bool(text) and clean_text(text, "text") == text and not before_wrong_decoding(text)


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12).filter(clean)
ids = st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True).filter(
    lambda company_id: company_id not in DOT_SEGMENTS and company_id.casefold() not in MISSING
)
versions_of = st.datetimes(
    min_value=EPOCH.replace(tzinfo=None), max_value=NOW.replace(tzinfo=None), timezones=st.just(UTC)
)
several = st.lists(words, max_size=3, unique=True).map(tuple)
attributes = st.dictionaries(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,63}", fullmatch=True),
    words | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    max_size=4,
)
optional = st.just("") | words
companies = st.builds(
    Company,
    id=ids,
    name=words,
    description=words,
    aliases=several,
    domain=st.sampled_from(["", "example.com", "a_b.example.co.uk", "xn--bcher-kva.example"]),
    country=optional,
    industry=optional,
    tags=several,
    attributes=attributes,
)
changes: st.SearchStrategy[Change] = st.builds(
    lambda company, time: VersionedCompany(company=company, version=version_of(time, now=NOW)), companies, versions_of
) | st.builds(
    lambda company_id, time: DeletedCompany(id=company_id, version=version_of(time, now=NOW, deleted=True)),
    ids,
    versions_of,
)


@given(change=changes, later=st.timedeltas(timedelta(0), timedelta(days=3650)))
def test_a_change_survives_the_way_through_a_message_whenever_it_is_read(change: Change, later: timedelta) -> None:
    key, value = encode(change)
    parsed = decode(message(value, key=key, time=NOW + later))
    assert parsed.change == change
    assert parsed.warnings == ()


@given(change=changes, follows=st.integers(0, MAX_FOLLOWED_VERSION))
def test_a_change_that_follows_a_version_is_right_above_it_or_newer(change: Change, follows: int) -> None:
    key, value = encode(change, follows=follows)
    version = decode(message(value, key=key)).change.version
    assert version == following(change, follows).version
    assert version % 2 == change.version % 2
    assert version in {follows + 1, follows + 2} if version != change.version else version > follows


def test_a_message_is_never_raised_when_it_is_read_again() -> None:
    for value in (ACME, {"id": "acme", "deleted": True}, None):
        assert not decode(message(value, key=b"acme")).change.untimed


def test_the_version_that_a_message_follows_is_no_field_of_a_record() -> None:
    change = decode(message({**ACME, "follows_version": 2**61, "attributes": {"follows_version": 3}})).change
    assert isinstance(change, VersionedCompany)
    assert (change.version, change.company.attributes) == (2**61 + 2, {"follows_version": 3})
    assert decode(message({**ACME, "follows_version": None})).change.version == version_of(NOW, now=NOW)


@given(change=changes)
def test_the_key_may_be_missing_from_what_names_its_company_itself(change: Change) -> None:
    _, value = encode(change)
    assert decode(message(value)).change == change


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
offsets = st.timedeltas(-timedelta(hours=23), timedelta(hours=23)).map(timezone)
times = st.datetimes(timezones=st.none() | offsets).map(datetime.isoformat)
fields = st.sampled_from(
    [
        "id",
        "name",
        "description",
        "aliases",
        "tags",
        "domain",
        "website",
        "event_time",
        "deleted",
        "schema",
        "follows_version",
        "attributes",
    ]
)


@given(
    record=st.dictionaries(fields, json_values | times),
    key=st.none() | st.binary(max_size=8),
)
def test_whatever_json_holds_is_a_change_or_is_refused(record: dict[str, object], key: bytes | None) -> None:
    try:
        first = decode(message({**ACME, **record}, key=key))
    except InvalidCompany:
        return
    assert decode(message({**ACME, **record}, key=key)) == first


@given(value=st.binary() | st.text().map(lambda text: text.encode("utf-16")), key=st.none() | st.binary())
def test_bytes_that_are_no_record_are_refused(value: bytes, key: bytes | None) -> None:
    try:
        change = decode(message(value, key=key)).change
    except InvalidCompany:
        return
    # Nothing but an empty value is short enough to be made by chance.
    assert (value, change.id.encode()) == (b"", key)


@pytest.mark.parametrize("value", [None, b""])
def test_no_value_deletes_the_company_of_the_key_at_the_time_of_the_message(value: bytes | None) -> None:
    deleted = DeletedCompany(id="acme", version=version_of(NOW, now=NOW, deleted=True))
    assert decode(message(value, key=b"acme")).change == deleted


def test_the_time_of_the_message_is_the_version_of_a_record_without_one() -> None:
    assert decode(message(ACME)).change.version == version_of(NOW, now=NOW)


def test_the_key_is_the_id_of_a_record_without_one() -> None:
    record = {name: value for name, value in ACME.items() if name != "id"}
    assert decode(message(record, key=b"acme")).change.id == "acme"
    columns = Columns(fields={"id": "number"})
    assert decode(message(record, key=b"acme"), columns=columns).change.id == "acme"


@pytest.mark.parametrize("company_id", [".", ".."])
def test_an_id_that_addresses_lose_is_refused_and_can_be_deleted(company_id: str) -> None:
    with pytest.raises(InvalidCompany, match="cannot be part of a URL"):
        decode(message(ACME | {"id": company_id}))
    with pytest.raises(InvalidCompany, match="cannot be part of a URL"):
        decode(message({name: value for name, value in ACME.items() if name != "id"}, key=company_id.encode()))
    assert decode(message(None, key=company_id.encode())).change.id == company_id


def test_columns_name_the_fields_of_other_peoples_records() -> None:
    record = {"number": 7, "name": "Acme", "about": "Makes anvils.", "size": 12, "attributes": {"listed": True}}
    columns = Columns(fields={"id": "number", "description": "about"}, attributes={"employees": "size"})
    change = decode(message(record), columns=columns).change
    assert isinstance(change, VersionedCompany)
    assert (change.company.id, change.company.description) == ("7", "Makes anvils.")
    assert change.company.attributes == {"employees": 12, "listed": True}


def test_what_could_not_be_used_is_told() -> None:
    assert decode(message({**ACME, "website": "http://"})).warnings != ()


@pytest.mark.parametrize(
    ("value", "key", "reason"),
    [
        (None, None, "key: an empty value deletes the company that the key names"),
        (None, b"\xff", "key: .* is not UTF-8"),
        (None, b"not an id", "id: 'not an id' must be"),
        (b'{"id": "a"', None, "value: is not JSON"),
        (b"[" * 100_000, None, "value: is not JSON"),
        (b"\xff\xfe\xfa", None, "value: is not JSON"),
        (b'{"id": 1e5, "name": NaN}', None, "value: is not JSON: NaN is not a number"),
        (b'{"id": -Infinity}', None, "value: is not JSON: -Infinity is not a number"),
        (b"9" * 5_000, None, "value: is not JSON"),
        (b"[]", None, "value: must be a JSON object, not list"),
        (b" " * (MAX_BYTES + 1), None, "value: has 2,000,001 bytes; the limit is 2,000,000"),
        ({**ACME, "schema": 2}, None, "schema: is 2; this release reads 1: upgrade the pipeline first"),
        ({**ACME, "attributes": [1]}, None, "attributes: must be a JSON object, not list"),
        ({**ACME, "attributes": {"a": {}}}, None, "attributes.a: must be text, not dict"),
        ({**ACME, "attributes": {"a b": 1}}, None, "attributes: 'a b' is not a name"),
        (ACME, b"other", "id: the key is 'other', but the id is 'acme'; send the same id"),
        (ACME, b"\xff", "key: .* is not UTF-8"),
        ({**ACME, "follows_version": "7"}, None, "follows_version: '7' must be a whole number from 0 to 2"),
        ({**ACME, "follows_version": True}, None, "follows_version: True must be"),
        ({**ACME, "follows_version": -1}, None, "follows_version: -1 must be"),
        ({**ACME, "follows_version": 2**62 + 1}, None, "follows_version: .* must be"),
        ({**ACME, "name": "\ud800"}, None, "name: contains broken Unicode"),
        ({**ACME, "event_time": (NOW + timedelta(minutes=6)).isoformat()}, None, "more than 5 minutes in the future"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_the_reason(value: object, key: bytes | None, reason: str) -> None:
    with pytest.raises(InvalidCompany, match=reason):
        decode(message(value, key=key))


def test_what_the_source_could_not_read_is_refused_as_it_says() -> None:
    with pytest.raises(InvalidCompany, match="value: has 3 values for 2 columns"):
        decode(Message(position="file:a.csv#1", value=b"1,2,3", time=NOW, unreadable="has 3 values for 2 columns"))
