from pathlib import Path
from typing import Any, Literal

import pytest

from similarity.errors import InvalidInput
from similarity.settings import Settings, read_variables


def test_without_variables_the_defaults_hold() -> None:
    assert Settings.from_environment({"PATH": "/bin"}) == Settings(index="similarity.db", bundle=None, threads=None)


def test_an_index_that_is_named_like_a_folder_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"the index trail/ ends with '/'"):
        Settings(index="trail/")
    assert Settings(index="http://localhost:9200/companies/").index.endswith("/")


def test_every_setting_is_read() -> None:
    given = {"INDEX": "a.db", "BUNDLE": "b", "BUNDLES": "c", "THREADS": "3", "RUNTIME": "openvino", "AUDIT": "-"}
    given |= {"URL": "http://search", "API_KEY": "s3cret"}
    environ = {f"SIMILARITY_{name}": value for name, value in given.items()}
    expected = Settings(
        index="a.db",
        bundle=Path("b"),
        bundles=Path("c"),
        threads=3,
        runtime="openvino",
        audit="-",
        url="http://search",
        api_key="s3cret",
    )
    assert Settings.from_environment(environ) == expected
    assert "s3cret" not in repr(expected)


def test_an_option_wins_over_its_variable() -> None:
    environ = {"SIMILARITY_INDEX": "a.db", "SIMILARITY_THREADS": "3"}
    assert Settings.from_environment(environ, index="b.db", threads=None) == Settings(index="b.db", threads=3)


def test_an_index_behind_a_symbolic_link_has_the_files_beside_the_index(tmp_path: Path) -> None:
    file, link = tmp_path / "data" / "i.db", tmp_path / "current.db"
    link.symlink_to(file)
    assert Settings(index=str(link)).index == str(file)
    (tmp_path / "current.db.workspace").touch()
    with pytest.raises(InvalidInput, match=r"is a symbolic link to .*move it to .*data/i\.db\.workspace"):
        Settings(index=str(link))


@pytest.mark.parametrize("name", ["SIMILARITY_ELASTICSEARCH_API_KEY", "SIMILARITY_KAFKA_PASSWORD"])
def test_settings_of_a_server_are_left_to_whoever_connects(name: str) -> None:
    assert Settings.from_environment({name: "secret"}) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("INDX", "a", "SIMILARITY_INDX is not a setting; the settings are SIMILARITY_INDEX"),
        ("THREADS", "0", "SIMILARITY_THREADS is 0; it must be 1 or more"),
        ("THREADS", "many", "SIMILARITY_THREADS is 'many'; it must be a whole number"),
        ("RUNTIME", "torch", "must be one of onnxruntime, openvino, auto, cuda, tensorrt"),
    ],
)
def test_a_bad_setting_is_refused_with_what_would_do(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Settings.from_environment({f"SIMILARITY_{name}": value})


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (str, "a b", "a b"),
        (Path | None, "a/b", Path("a/b")),
        (bool, "1", True),
        (bool | None, "No", False),
        (int, "-3", -3),
        (float, "1e3", 1000.0),
        (tuple[str, ...], "a, b,,", ("a", "b")),
        (Literal["x", "y"], "y", "y"),
        (int | Literal["auto"], "auto", "auto"),
        (int | Literal["auto"], "2", 2),
    ],
)
def test_a_value_is_read_as_its_type_says(type_: Any, text: str, value: object) -> None:
    assert read_variables({"APP_FIELD": text, "FIELD": "another's"}, "APP_", {"field": type_}) == {"field": value}


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        (bool, "maybe", "APP_FIELD is 'maybe'; it must be true or false"),
        (int, "1.5", "must be a whole number"),
        (float | None, "nan", "must be a number"),
        (Literal["x", "y"], "z", "must be one of x, y"),
        (int | Literal["auto"], "some", "must be a whole number or 'auto'"),
    ],
)
def test_a_value_of_another_type_is_refused(type_: Any, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_variables({"APP_FIELD": text}, "APP_", {"field": type_})


def test_an_empty_variable_counts_as_not_set() -> None:
    assert read_variables({"APP_FIELD": ""}, "APP_", {"field": int}) == {}
