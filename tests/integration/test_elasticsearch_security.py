"""Logging in: a password and a private authority on a real server, an API key as it is sent, and no secret in words."""

import logging
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from similarity.errors import IndexUnavailable
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.elastic.settings import PREFIX
from tests.contract.steps import add_live, found
from tests.factories import make_embedded, make_generation
from tests.integration.elasticsearch_place import Place

pytestmark = pytest.mark.integration

WRONG = "swordfish"


def problem_of(settings: ElasticSettings, use: Callable[[ElasticIndex], object] = ElasticIndex.generations) -> str:
    """The message that a caller gets; fails if any error behind it tells a secret."""
    with closing(ElasticIndex(settings)) as index, pytest.raises(IndexUnavailable) as raised:
        use(index)
    everything = "".join(traceback.format_exception(raised.value)) + repr(settings)
    cause: BaseException | None = raised.value
    while cause is not None:
        everything += repr(cause) + repr(vars(cause))
        cause = cause.__cause__ or cause.__context__
    assert not told(everything, settings)
    return str(raised.value)


def told(text: str, settings: ElasticSettings) -> bool:
    """Whether a text holds one of the settings' secrets, as it is or as it is sent."""
    basic = b64encode(f"{settings.username}:{settings.password}".encode()).decode()
    return any(secret and secret in text for secret in (settings.password, settings.api_key, basic))


def test_a_password_and_a_private_authority_are_enough(secured_place: Place, caplog: pytest.LogCaptureFixture) -> None:
    given = secured_place.settings
    caplog.set_level(logging.DEBUG)
    settings = ElasticSettings.from_environment(
        f"{given.hosts[0]}/{given.name}",
        {
            f"{PREFIX}USERNAME": given.username,
            f"{PREFIX}PASSWORD": given.password,
            f"{PREFIX}CA_CERTS": given.ca_certs,
        },
    )
    assert settings.hosts[0].startswith("https://")
    with closing(ElasticIndex(settings)) as index:
        add_live(index, "first")
        document = make_embedded("a")
        index.upsert("first", [document])
        assert index.stats("first").companies == 1
        assert found(index.similar("first", document.vector, k=1)) == ["a"]
    assert caplog.records
    assert not told(caplog.text, settings)


def test_a_wrong_password_is_refused_and_the_message_says_what_to_set(secured_place: Place) -> None:
    settings = replace(secured_place.settings, password=WRONG)
    add_live(secured_place.open(), "first")
    uses: list[Callable[[ElasticIndex], object]] = [
        ElasticIndex.generations,
        lambda index: index.create_generation(make_generation("second")),
        lambda index: index.upsert("first", [make_embedded("a")]),
    ]
    for use in uses:
        message = problem_of(settings, use)
        assert "refused access (401)" in message
        assert f"{PREFIX}USERNAME and {PREFIX}PASSWORD" in message


def test_a_password_that_changes_while_a_writer_runs_stops_it_at_once(secured_place: Place) -> None:
    """The writer has read the registry already: the bulk request itself is refused, and not sent again and again."""
    index = secured_place.open()
    add_live(index, "first")
    index.upsert("first", [make_embedded("a")])
    client = secured_place.client.options(basic_auth=(secured_place.settings.username, WRONG))
    index._cluster.client = client
    with pytest.raises(IndexUnavailable, match=r"refused access \(401\)"):
        index.upsert("first", [make_embedded("b")])


def test_without_the_authority_the_message_is_about_the_certificate(secured_place: Place) -> None:
    message = problem_of(replace(secured_place.settings, ca_certs=""))
    assert "CERTIFICATE_VERIFY_FAILED" in message
    assert f"{PREFIX}CA_CERTS" in message


class Recorder(BaseHTTPRequestHandler):
    """Writes down who asks, and refuses."""

    authorizations: list[str | None]

    def do_GET(self) -> None:
        self.authorizations.append(self.headers.get("Authorization"))
        body = b'{"error":{"type":"security_exception","reason":"unable to authenticate"},"status":401}'
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test looks at what was recorded."""


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[str | None]]]:
    """The address of a server that refuses all, and the Authorization headers it was sent."""
    authorizations: list[str | None] = []
    handler = type("OneRecorder", (Recorder,), {"authorizations": authorizations})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/companies", authorizations
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("variables", "header"),
    [
        ({"API_KEY": WRONG}, f"ApiKey {WRONG}"),
        ({"USERNAME": "elastic", "PASSWORD": WRONG}, f"Basic {b64encode(f'elastic:{WRONG}'.encode()).decode()}"),
        ({}, None),
    ],
    ids=["key", "password", "none"],
)
def test_credentials_are_sent_in_their_form(
    recorder: tuple[str, list[str | None]], variables: dict[str, str], header: str | None
) -> None:
    target, authorizations = recorder
    given = {PREFIX + name: value for name, value in variables.items()}
    assert f"check {PREFIX}API_KEY" in problem_of(ElasticSettings.from_environment(target, given))
    assert authorizations == [header]
