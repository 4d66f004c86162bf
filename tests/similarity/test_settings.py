from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from similarity.settings import Settings


def test_without_variables_the_defaults_hold() -> None:
    assert Settings.from_environment({"PATH": "/bin"}) == Settings(index="similarity.db", bundle=None, threads=None)


def test_every_setting_is_read() -> None:
    given = {"INDEX": "a.db", "BUNDLE": "b", "BUNDLES": "c", "THREADS": "3", "RUNTIME": "openvino", "AUDIT": "-"}
    environ = {f"SIMILARITY_{name}": value for name, value in given.items()}
    expected = Settings(index="a.db", bundle=Path("b"), bundles=Path("c"), threads=3, runtime="openvino", audit="-")
    assert Settings.from_environment(environ) == expected


@pytest.mark.parametrize("name", ["SIMILARITY_ELASTICSEARCH_API_KEY", "SIMILARITY_KAFKA_PASSWORD"])
def test_settings_of_a_server_are_left_to_whoever_connects(name: str) -> None:
    assert Settings.from_environment({name: "secret"}) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("INDX", "a", "SIMILARITY_INDX is no setting; there are SIMILARITY_INDEX"),
        ("THREADS", "0", "must be a number of threads"),
        ("THREADS", "many", "must be a number of threads"),
        ("RUNTIME", "torch", "must be one of onnxruntime, openvino, auto"),
    ],
)
def test_a_bad_setting_is_refused_with_what_would_do(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Settings.from_environment({f"SIMILARITY_{name}": value})
