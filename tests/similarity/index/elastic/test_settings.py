from dataclasses import replace
from typing import Any

import pytest

from similarity.errors import InvalidInput
from similarity.index.elastic.settings import (
    PREFIX,
    ElasticSettings,
    parse_target,
)

SECRET = "swordfish"
TARGET = "http://localhost:9200/companies"


def read(target: str = TARGET, /, **variables: str) -> ElasticSettings:
    return ElasticSettings.from_environment(target, {PREFIX + name: value for name, value in variables.items()})


@pytest.mark.parametrize(
    ("target", "hosts", "name"),
    [
        ("http://localhost:9200/companies", ("http://localhost:9200",), "companies"),
        ("http://localhost:9200/companies/", ("http://localhost:9200",), "companies"),
        ("https://a:9200,b:9201/c", ("https://a:9200", "https://b:9201"), "c"),
        ("https://search.example.com/c", ("https://search.example.com:443",), "c"),
        ("http://search.example.com/c", ("http://search.example.com:80",), "c"),
        ("https://a:1,b/proxy/search/c", ("https://a:1/proxy/search", "https://b:443/proxy/search"), "c"),
        ("http://[::1]:9200/c", ("http://[::1]:9200",), "c"),
        ("HTTPS://a:1/c", ("https://a:1",), "c"),
    ],
)
def test_a_target_names_nodes_and_an_index(target: str, hosts: tuple[str, ...], name: str) -> None:
    assert parse_target(target) == (hosts, name)
    assert (read(target).hosts, read(target).name) == (hosts, name)


@pytest.mark.parametrize(
    "target", ["http://localhost:9200", "http://localhost:9200/", "ftp://a:9200/c", "a:9200/c", "http:///c", ""]
)
def test_a_target_of_another_form_is_refused_with_an_example(target: str) -> None:
    with pytest.raises(InvalidInput, match="for example http://localhost:9200/companies"):
        parse_target(target)


def test_a_target_that_is_no_url_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'http://\[::1/x' is not a URL: Invalid IPv6 URL"):
        parse_target("http://[::1/x")


@pytest.mark.parametrize(
    "target",
    [
        f"https://elastic:{SECRET}@localhost:9200/c",
        f"https://a:9200,elastic:{SECRET}@b:9200/c",
        f"https://elastic:{SECRET}/x@localhost:9200/c",
        f"https://elastic:{SECRET}?x@localhost:9200/c",
        f"https://elastic:{SECRET}#x@localhost:9200/c",
    ],
)
def test_a_password_in_the_target_is_refused_without_repeating_it(target: str) -> None:
    with pytest.raises(InvalidInput, match=f"{PREFIX}PASSWORD") as refused:
        parse_target(target)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("name", ["Companies", "1st", "a b", "-a", "a" * 65, "ü"])
def test_a_name_that_no_index_can_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name an index"):
        ElasticSettings(hosts=("http://localhost:9200",), name=name)


def test_without_variables_there_are_the_documented_defaults() -> None:
    settings = read()
    assert settings == ElasticSettings(hosts=("http://localhost:9200",), name="companies")
    assert settings.vectors == "int8_hnsw"
    assert (settings.shards, settings.replicas, settings.oversample) == (1, "auto", None)


def test_of_quantised_vectors_some_are_rescored_however_few_are_asked_for() -> None:
    settings = read()
    assert [settings.oversample_of("int8_hnsw", k) for k in (1, 10, 100)] == [50.0, 5.0, 1.5]
    assert settings.oversample_of("hnsw", 10) == 1.0
    assert read(OVERSAMPLE="2.5").oversample_of("int8_hnsw", 10) == 2.5


def test_every_variable_is_read() -> None:
    given = {
        "USERNAME": "elastic",
        "PASSWORD": SECRET,
        "CA_CERTS": "/etc/ca.pem",
        "VECTORS": "bbq_hnsw",
        "OVERSAMPLE": "2.5",
        "NUM_CANDIDATES": "250",
        "EXACT_LIMIT": "500",
        "SHARDS": "3",
        "REPLICAS": "2",
        "REFRESH_SECONDS": "0.5",
    }
    assert read(**given) == ElasticSettings(
        hosts=("http://localhost:9200",),
        name="companies",
        username="elastic",
        password=SECRET,
        ca_certs="/etc/ca.pem",
        vectors="bbq_hnsw",
        oversample=2.5,
        num_candidates=250,
        exact_limit=500,
        shards=3,
        replicas=2,
        refresh_seconds=0.5,
    )
    assert read(API_KEY=SECRET).api_key == SECRET
    assert read(REPLICAS="auto").replicas == "auto"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PASSWORDS": "x"}, "PASSWORDS is not a setting"),
        ({"VECTORS": "flat"}, "one of hnsw, int8_hnsw, int4_hnsw, bbq_hnsw"),
        ({"OVERSAMPLE": "much"}, "OVERSAMPLE is 'much'; it must be a number"),
        ({"OVERSAMPLE": "0.5"}, r"oversample is 0.5; it must be at least 1 \(1 rescores only the k hits\)"),
        ({"OVERSAMPLE": "nan"}, "must be a number"),
        ({"OVERSAMPLE": "inf"}, "must be a number"),
        ({"NUM_CANDIDATES": "0"}, "1 to 10,000"),
        ({"NUM_CANDIDATES": "10001"}, "1 to 10,000"),
        ({"NUM_CANDIDATES": "99.5"}, "whole number"),
        ({"EXACT_LIMIT": "0"}, "1 to 10,000"),
        ({"EXACT_LIMIT": "inf"}, "whole number"),
        ({"SHARDS": "0"}, "at least one"),
        ({"SHARDS": "nan"}, "whole number"),
        ({"REPLICAS": "-1"}, "number of copies"),
        ({"REPLICAS": "some"}, "whole number"),
        ({"REFRESH_SECONDS": "0"}, "at least 0.001"),
        ({"REFRESH_SECONDS": "-1"}, "at least 0.001"),
        ({"REFRESH_SECONDS": "nan"}, "must be a number"),
        ({"USERNAME": "elastic"}, "belong together"),
        ({"PASSWORD": SECRET}, "belong together"),
        ({"API_KEY": SECRET, "USERNAME": "elastic", "PASSWORD": SECRET}, "set only one of them"),
    ],
    ids=str,
)
def test_a_value_that_cannot_be_used_is_refused_and_no_secret_is_told(variables: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        read(**variables)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("credentials", [{"api_key": SECRET}, {"username": "elastic", "password": SECRET}], ids=str)
def test_secrets_are_not_shown(credentials: dict[str, Any]) -> None:
    settings = replace(read(), **credentials)
    assert SECRET not in f"{settings!r} {settings} {settings.place}"
