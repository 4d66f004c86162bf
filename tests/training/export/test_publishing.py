"""A bundle replaces another as a whole, or not at all."""

from pathlib import Path

import pytest

from similarity.bundle import CARD_FILE, ModelBundle, only_bundle
from similarity.errors import InvalidBundle
from tests.tiny_bundle import write_tiny_bundle
from training.export.publishing import publish


def test_a_bundle_replaces_an_older_one(tmp_path: Path) -> None:
    old = write_tiny_bundle(tmp_path / "store" / "id", training_data="old")
    new = write_tiny_bundle(tmp_path / "draft", training_data="new")
    published = publish(tmp_path / "draft", old.folder)
    assert published.bundle_id == new.bundle_id
    assert only_bundle([tmp_path / "store"]) == old.folder
    assert [entry.name for entry in (tmp_path / "store").iterdir()] == ["id"]


def test_a_damaged_draft_leaves_the_old_bundle(tmp_path: Path) -> None:
    old = write_tiny_bundle(tmp_path / "store" / "id")
    write_tiny_bundle(tmp_path / "draft")
    (tmp_path / "draft" / CARD_FILE).write_text("cut off")
    with pytest.raises(InvalidBundle, match="SHA-256"):
        publish(tmp_path / "draft", old.folder)
    assert ModelBundle.load(old.folder).bundle_id == old.bundle_id


def test_a_store_is_made_where_there_is_none(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "draft")
    assert publish(tmp_path / "draft", tmp_path / "new" / "store" / "id").folder.name == "id"
