from pathlib import Path

from tests.servers.connection import Connection, external_cluster

ADDRESS = {"ELASTICSEARCH_URL": "https://a.example:9200, https://b.example:9200"}


def test_without_an_address_no_other_cluster_is_meant() -> None:
    assert external_cluster({"ELASTICSEARCH_API_KEY": "secret"}) is None


def test_the_environment_names_another_cluster() -> None:
    connection = external_cluster(
        {**ADDRESS, "ELASTICSEARCH_API_KEY": "secret", "ELASTICSEARCH_CA_CERTS": "authority.pem"}
    )
    assert connection == Connection(
        urls=("https://a.example:9200", "https://b.example:9200"), api_key="secret", ca_certs=Path("authority.pem")
    )
    assert connection.url == "https://a.example:9200"
    assert connection.client_arguments() == {
        "hosts": ["https://a.example:9200", "https://b.example:9200"],
        "api_key": "secret",
        "ca_certs": "authority.pem",
    }


def test_a_user_goes_with_a_password() -> None:
    connection = external_cluster({**ADDRESS, "ELASTICSEARCH_USERNAME": "me", "ELASTICSEARCH_PASSWORD": "secret"})
    assert connection
    assert connection.client_arguments()["basic_auth"] == ("me", "secret")


def test_secrets_are_not_shown() -> None:
    assert "s3cret" not in repr(Connection(urls=("http://a",), user="me", password="s3cret", api_key="s3cret"))
