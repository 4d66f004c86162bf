"""A bundle is either whole, unchanged and what it says it is, or it is refused with advice."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from similarity.bundle import ModelBundle, only_bundle, seed_folder, write_manifest
from similarity.errors import InvalidBundle
from similarity.model.calibration import Calibration
from similarity.text import TextSettings
from tests.tiny_bundle import TINY_MANIFEST, TinyGraph, message, node, write_tiny_bundle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_bundle(tmp_path / "bundle")
    return tmp_path / "bundle"


def test_a_bundle_comes_back_as_it_was_written(folder: Path) -> None:
    bundle = ModelBundle.load(folder)
    assert bundle.manifest == TINY_MANIFEST
    assert set(bundle.sha256) == {"model.onnx", "tokenizer.json", "README.md"}


def test_ids_are_sixteen_digits_and_do_not_depend_on_the_folder(folder: Path, tmp_path: Path) -> None:
    first, second = ModelBundle.load(folder), write_tiny_bundle(tmp_path / "elsewhere")
    assert len(first.encoder_id) == len(first.bundle_id) == 16
    assert (first.encoder_id, first.bundle_id) == (second.encoder_id, second.bundle_id)


@pytest.mark.parametrize(
    "changes", [{"max_tokens": 16}, {"text_settings": TextSettings(drop_places=True)}], ids=["max_tokens", "text"]
)
def test_what_changes_a_vector_changes_both_ids(folder: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    before, after = ModelBundle.load(folder), write_tiny_bundle(tmp_path / "other", **changes)
    assert before.encoder_id != after.encoder_id
    assert before.bundle_id != after.bundle_id


def test_another_graph_or_tokenizer_is_another_encoder(folder: Path) -> None:
    ids = {ModelBundle.load(folder).encoder_id}
    (folder / "model.onnx").write_bytes(TinyGraph(nodes=(node("Identity", ["sum"], "unused"),)).to_bytes())
    ids.add(write_manifest(folder, TINY_MANIFEST).encoder_id)
    with (folder / "tokenizer.json").open("a") as file:
        file.write(" ")
    ids.add(write_manifest(folder, TINY_MANIFEST).encoder_id)
    assert len(ids) == 3


def test_a_new_calibration_is_another_bundle_with_the_same_encoder(folder: Path) -> None:
    before = ModelBundle.load(folder)
    calibration = Calibration(slope=8.0, intercept=-4.0)
    after = write_manifest(folder, replace(before.manifest, calibration=calibration))
    assert after.manifest.calibration == calibration
    assert before.encoder_id == after.encoder_id
    assert before.bundle_id != after.bundle_id


def test_a_new_card_is_another_bundle_with_the_same_encoder(folder: Path) -> None:
    before = ModelBundle.load(folder)
    (folder / "README.md").write_text("Reworded.\n")
    after = write_manifest(folder, before.manifest)
    assert before.encoder_id == after.encoder_id
    assert before.bundle_id != after.bundle_id


def test_the_card_may_be_absent(folder: Path) -> None:
    (folder / "README.md").unlink()
    assert set(write_manifest(folder, TINY_MANIFEST).sha256) == {"model.onnx", "tokenizer.json"}


def edit_manifest(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def flip_a_byte(folder: Path) -> None:
    path = folder / "model.onnx"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_off(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-20])


def link_outwards(folder: Path) -> None:
    outside = folder.parent / "outside.json"
    (folder / "tokenizer.json").rename(outside)
    (folder / "tokenizer.json").symlink_to(outside)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (lambda f: f.rename(f.parent / "gone"), "not a folder"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json is missing"),
    "no model": (lambda f: (f / "model.onnx").unlink(), "model.onnx is missing"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json is missing"),
    "card promised but gone": (lambda f: (f / "README.md").unlink(), "README.md is missing"),
    "a changed byte": (flip_a_byte, "does not match its SHA-256"),
    "a truncated model": (lambda f: cut_off(f, "model.onnx"), "does not match its SHA-256"),
    "a truncated tokenizer": (lambda f: cut_off(f, "tokenizer.json"), "does not match its SHA-256"),
    "an edited card": (lambda f: (f / "README.md").write_text("Better."), "does not match its SHA-256"),
    "a truncated manifest": (lambda f: cut_off(f, "manifest.json"), "manifest.json: "),
    "a manifest that is no object": (lambda f: (f / "manifest.json").write_text("[]"), "not a JSON object"),
    "a manifest of bytes": (lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe"), "manifest.json: "),
    "a deeply nested manifest": (lambda f: (f / "manifest.json").write_text("[" * 200_000), "manifest.json: "),
    "a huge manifest": (lambda f: (f / "manifest.json").write_text(" " * 1_000_001), "more than 1,000,000 bytes"),
    "a file beside": (lambda f: (f / "model.onnx.data").write_bytes(b"weights"), "external ONNX data"),
    "a pickle beside": (lambda f: (f / "extra.pkl").write_bytes(b""), "is not listed"),
    "a folder beside": (lambda f: (f / "more").mkdir(), "not a plain file"),
    "a link to outside": (link_outwards, "is a link"),
    "a path upwards": (lambda f: edit_manifest(f, lambda m: m["sha256"].update({"../x": "0" * 64})), "lists '../x'"),
    "an absolute path": (
        lambda f: edit_manifest(f, lambda m: m["sha256"].update({"/etc/passwd": "0" * 64})),
        "lists '/etc/passwd'",
    ),
    "a hash left out": (lambda f: edit_manifest(f, lambda m: m["sha256"].pop("README.md")), "is not listed"),
    "a hash of no hash": (lambda f: edit_manifest(f, lambda m: m["sha256"].update({"README.md": "abc"})), "64 hexa"),
    "a newer schema": (lambda f: edit_manifest(f, lambda m: m.update(schema_version=4)), "newer than this release"),
    "no schema": (lambda f: edit_manifest(f, lambda m: m.pop("schema_version")), "schema_version"),
    "an unknown field": (lambda f: edit_manifest(f, lambda m: m.update(pool="max")), "unknown field 'pool'"),
    "a missing field": (lambda f: edit_manifest(f, lambda m: m.pop("dimension")), "no field 'dimension'"),
    "a number as text": (lambda f: edit_manifest(f, lambda m: m.update(dimension="4")), "not a whole number"),
    "true for a number": (lambda f: edit_manifest(f, lambda m: m.update(max_tokens=True)), "not a whole number"),
    "an empty name": (lambda f: edit_manifest(f, lambda m: m.update(base_model=" ")), "not a text"),
    "no room for tokens": (lambda f: edit_manifest(f, lambda m: m.update(max_tokens=2)), "max_tokens is 2"),
    "unknown pooling": (lambda f: edit_manifest(f, lambda m: m.update(pooling="cls")), "pooling is 'cls'"),
    "unknown norm": (lambda f: edit_manifest(f, lambda m: m.update(normalisation="l1")), "normalisation is 'l1'"),
    "an unknown text setting": (
        lambda f: edit_manifest(f, lambda m: m["text_settings"].update(mask_everything=True)),
        "unknown field 'mask_everything'",
    ),
    "a text setting of the wrong kind": (
        lambda f: edit_manifest(f, lambda m: m["text_settings"].update(mask_names=1)),
        "not true or false",
    ),
    "texts prepared by other rules": (
        lambda f: edit_manifest(f, lambda m: m["text_settings"].update(revision=99)),
        "revision is 99, but this release prepares texts by revision",
    ),
    "an infinite metric": (lambda f: edit_manifest(f, lambda m: m.update(metrics={"auc": 1e999})), "not a number"),
    "a word as metric": (lambda f: edit_manifest(f, lambda m: m.update(metrics={"auc": "good"})), "not a finite"),
    "half a calibration": (lambda f: edit_manifest(f, lambda m: m.update(calibration={"slope": 1})), "'intercept'"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_bundle_is_refused_with_the_reason(folder: Path, name: str) -> None:
    damage, reason = DAMAGE[name]
    damage(folder)
    with pytest.raises(InvalidBundle, match=reason) as refusal:
        ModelBundle.load(folder)
    assert str(folder) in str(refusal.value)


def test_tensors_in_another_file_are_refused(tmp_path: Path) -> None:
    external = (13, message([(1, "location"), (2, "/etc/passwd")]))
    with pytest.raises(InvalidBundle, match="tensors in another file"):
        write_tiny_bundle(tmp_path / "bundle", TinyGraph(table_extra=(external, (14, 1))))


def test_a_file_changed_after_loading_is_not_handed_out(folder: Path) -> None:
    bundle = ModelBundle.load(folder)
    flip_a_byte(folder)
    with pytest.raises(InvalidBundle, match="does not match"):
        bundle.read("model.onnx")


def test_a_failed_write_leaves_no_draft_behind(folder: Path) -> None:
    write_manifest(folder, TINY_MANIFEST)
    assert [path.name for path in folder.parent.iterdir()] == ["bundle"]


def test_the_bundle_that_ships_is_whole_small_and_lies_under_its_own_id() -> None:
    folder = seed_folder()
    bundle = ModelBundle.load(folder)
    assert folder.name == bundle.encoder_id
    assert sum(path.stat().st_size for path in folder.iterdir()) < 65_000_000


def test_a_store_without_a_bundle_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidBundle, match=r"training\.export"):
        only_bundle([tmp_path])


def test_a_store_with_two_bundles_asks_which(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "a")
    write_tiny_bundle(tmp_path / "b")
    with pytest.raises(InvalidBundle, match=r"several bundles \(a, b\)"):
        only_bundle([tmp_path])


def test_a_folder_of_bundles_names_a_bundle_and_tells_nobody_to_remove_it(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "models" / "a")
    with pytest.raises(InvalidBundle, match=r"models is no bundle.* did you mean .*models/a\?") as refusal:
        ModelBundle.load(tmp_path / "models")
    assert "remove" not in str(refusal.value)
