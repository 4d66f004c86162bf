import pytest

from services.search.settings import Address
from similarity.errors import InvalidInput


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_may_listen_to_itself(host: str) -> None:
    assert Address(host=host).port == 8080


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com", ""])
def test_the_network_must_be_asked_for_twice(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"listen on 127\.0\.0\.1, or add --allow-unauthenticated-network"):
        Address(host=host)
    assert Address(host=host, allow_unauthenticated_network=True).host == host


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(InvalidInput, match=f"port {port} is out of range"):
        Address(port=port)
