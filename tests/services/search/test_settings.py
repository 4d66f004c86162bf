import re
from pathlib import Path

import pytest

from services.search.settings import Address, ServiceSettings, settings_table
from similarity.errors import InvalidInput

LOOPBACK = ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"]
NETWORK = ["0.0.0.0", "::", "[::]", "192.168.1.7", "2001:db8::7", "example.com", "127.0.0.1.example.com", "127.1"]


@pytest.mark.parametrize("host", LOOPBACK)
def test_without_keys_this_machine_may_reach_the_service(host: str) -> None:
    assert Address(host=host).port == 8080
    assert Address(host="0.0.0.0", published=host).reached == host


@pytest.mark.parametrize("host", [*NETWORK, ""])
def test_without_keys_the_service_does_not_listen_to_the_network(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"python -m services\.search\.keys add NAME --scope read --file keys\.json"):
        Address(host=host)
    assert Address(host=host, authenticated=True).host == host


@pytest.mark.parametrize("published", NETWORK)
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_without_keys_the_port_is_not_published_to_the_network(host: str, published: str) -> None:
    with pytest.raises(InvalidInput, match=r"docker compose run --rm keys .* set SEARCH_KEYS="):
        Address(host=host, published=published)
    assert Address(host=host, published=published, authenticated=True).reached == published


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(InvalidInput, match=f"port {port} is out of range"):
        Address(port=port)


def test_every_setting_has_a_variable_and_a_default_that_is_allowed() -> None:
    assert ServiceSettings.from_environment({"SIMILARITY_INDEX": "x.db", "PATH": "/bin"}) == ServiceSettings()


def test_variables_are_read_by_the_type_of_their_setting() -> None:
    read = ServiceSettings.from_environment(
        {
            "SIMILARITY_SERVICE_KEYS": "/etc/keys.json",
            "SIMILARITY_SERVICE_HOSTS": "search.example, search",
            "SIMILARITY_SERVICE_RATE": "0.5",
            "SIMILARITY_SERVICE_BURST": "7",
            "SIMILARITY_SERVICE_LOGS": "json",
            "SIMILARITY_SERVICE_OTEL": "1",
        }
    )
    assert read == ServiceSettings(
        keys=Path("/etc/keys.json"), hosts=("search.example", "search"), rate=0.5, burst=7, logs="json", otel=True
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("RAET", "1", "SIMILARITY_SERVICE_RAET is not a setting; the settings are SIMILARITY_SERVICE_KEYS"),
        ("RATE", "fast", "SIMILARITY_SERVICE_RATE is 'fast'; it must be a number"),
        ("RATE", "nan", "must be a number"),
        ("RATE", "-1", "it must be from 0 to 1e"),
        ("BURST", "1.5", "must be a whole number"),
        ("AT_ONCE", "25", "SIMILARITY_SERVICE_AT_ONCE is 25; it must be from 0 to 24"),
        ("OTEL", "maybe", "it must be true or false"),
        ("LOGS", "xml", "it must be one of json, text"),
        ("PROXIES", "10.0.0.1,nginx", "PROXIES contains 'nginx'; it must be an IP address or a network"),
        ("PROXIES", "10.0.0.0/33", "it must be an IP address or a network"),
        ("ORIGINS", "example.com", "it must be an origin in small letters without path, such as https://example.com"),
        ("ORIGINS", "https://example.com/", "it must be an origin in small letters without path"),
        ("ORIGINS", "https://Example.com", "it must be an origin in small letters without path"),
        ("ORIGINS", "https://*", "it must be an origin in small letters without path"),
        ("HOSTS", "https://x.example.com", "it must be a host name without scheme, port and path"),
        ("HOSTS", "x.example.com.", "it must be a host name without scheme, port and path"),
        ("HOSTS", "x.example.com:443", "it must be a host name without scheme, port and path"),
        ("WRITES", "on", "it must be one of direct, kafka, off"),
    ],
)
def test_a_bad_setting_is_refused_with_what_would_do(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ServiceSettings.from_environment({f"SIMILARITY_SERVICE_{name}": value})


def test_lists_of_names_and_addresses_are_accepted() -> None:
    settings = ServiceSettings.from_environment(
        {
            "SIMILARITY_SERVICE_HOSTS": "X.example.com,search,2001:db8::7",
            "SIMILARITY_SERVICE_ORIGINS": "https://example.com,http://localhost:3000,null,capacitor://localhost",
            "SIMILARITY_SERVICE_PROXIES": "127.0.0.1,10.0.0.0/8,2001:db8::/32",
        }
    )
    assert (len(settings.hosts), len(settings.origins), len(settings.proxies)) == (3, 4, 3)


@pytest.mark.parametrize("cores", [None, 1, 2, 8, 64])
def test_places_leave_worker_threads_for_health_checks(monkeypatch: pytest.MonkeyPatch, cores: int | None) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    settings = ServiceSettings()
    assert 2 <= settings.heavy_places <= settings.places
    # There are 40 worker threads.
    assert settings.places + settings.heavy_places <= 33
    assert ServiceSettings(at_once=3, heavy_at_once=2).places == 4


def test_one_heavy_place_is_two_because_no_key_holds_all() -> None:
    assert ServiceSettings(heavy_at_once=1).heavy_places == 2


def test_the_guide_lists_every_setting_with_its_default_and_no_other() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "service-settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(SIMILARITY_SERVICE_\w+)` \| (.*?) \| (.*?) \|$", guide, re.MULTILINE)
    assert rows == settings_table()
