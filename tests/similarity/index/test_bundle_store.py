import errno
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from similarity.bundle import ModelBundle, seed_folder
from similarity.errors import InvalidBundle
from similarity.index.bundle_store import (
    StoredEncoders,
    bundle_for,
    check_bundles,
    keep_bundle,
    store_folder,
    stored_bundle,
)
from similarity.index.sqlite import SqliteIndex
from tests.contract.steps import add_candidate, add_live
from tests.fakes import CountingEncoder
from tests.tiny_bundle import write_tiny_bundle

GUEST = 65534


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        yield index


@pytest.fixture
def bundle(tmp_path: Path) -> ModelBundle:
    return write_tiny_bundle(tmp_path / "tiny")


def go_live(index: SqliteIndex, bundle: ModelBundle) -> None:
    add_live(index, "first", encoder_id=bundle.encoder_id)


def test_a_new_index_starts_with_the_bundle_that_ships(index: SqliteIndex) -> None:
    assert bundle_for(index, store_folder(index.path)).folder == seed_folder()


def test_an_index_goes_on_with_its_own_bundle_whatever_ships_now(index: SqliteIndex, bundle: ModelBundle) -> None:
    store = store_folder(index.path)
    go_live(index, bundle)
    keep_bundle(bundle, store)
    keep_bundle(bundle, store)
    assert bundle_for(index, store).encoder_id == bundle.encoder_id
    assert [folder.name for folder in store.iterdir()] == [bundle.encoder_id]


def test_what_a_killed_process_left_goes_after_an_hour(
    bundle: ModelBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    draft, snapshot, other = store / f".{bundle.encoder_id}.x1y2", store / ".snapshot", store / ("ab" * 8)
    for folder in (draft, snapshot, other):
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(b"half")
        os.utime(folder, (0, 0))  # as copied from an old folder
    keep_bundle(bundle, store)
    assert draft.is_dir()  # somebody may be at it
    shutil.rmtree(store / bundle.encoder_id)
    monkeypatch.setattr("similarity.index.bundle_store.time.time", lambda: draft.stat().st_ctime + 3601)
    keep_bundle(bundle, store)
    assert {folder.name for folder in store.iterdir()} == {".snapshot", "ab" * 8, bundle.encoder_id}


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_half_a_bundle_that_an_older_release_left_behind_is_replaced(index: SqliteIndex, bundle: ModelBundle) -> None:
    store = store_folder(index.path)
    kept = store / bundle.encoder_id
    keep_bundle(bundle, store)
    for name in ("model.onnx", "manifest.json"):
        (kept / name).unlink()
        keep_bundle(bundle, store)
        assert files(kept) == files(bundle.folder)
        (kept / name).write_bytes(b"cut off")
        keep_bundle(bundle, store)
        assert files(kept) == files(bundle.folder)
    shutil.rmtree(kept)
    kept.mkdir()
    keep_bundle(bundle, store)
    assert files(kept) == files(bundle.folder)
    assert [folder.name for folder in store.iterdir()] == [bundle.encoder_id]


def test_a_sound_bundle_of_the_store_is_left_alone(index: SqliteIndex, bundle: ModelBundle) -> None:
    store = store_folder(index.path)
    keep_bundle(bundle, store)
    before = (store / bundle.encoder_id).stat()
    keep_bundle(bundle, store)
    after = (store / bundle.encoder_id).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("half", [True, False])
def test_of_two_who_keep_a_bundle_at_once_the_first_wins(
    index: SqliteIndex, bundle: ModelBundle, monkeypatch: pytest.MonkeyPatch, *, half: bool
) -> None:
    store = store_folder(index.path)
    kept = store / bundle.encoder_id
    if half:
        keep_bundle(bundle, store)
        (kept / "model.onnx").unlink()
    copy, inodes = shutil.copytree, []

    def copy_beside_another(source: Path, target: str, *, dirs_exist_ok: bool = False) -> str:
        monkeypatch.undo()
        keep_bundle(bundle, store)  # the other one is faster
        inodes.append(kept.stat().st_ino)
        return copy(source, target, dirs_exist_ok=dirs_exist_ok)

    monkeypatch.setattr(shutil, "copytree", copy_beside_another)
    keep_bundle(bundle, store)
    assert [kept.stat().st_ino] == inodes
    assert [folder.name for folder in store.iterdir()] == [bundle.encoder_id]
    assert files(kept) == files(bundle.folder)


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o555])
def test_a_kept_bundle_can_be_read_by_whom_its_source_lets_read(mode: int, bundle: ModelBundle) -> None:
    with tempfile.TemporaryDirectory() as name:
        # Root may do all of it in any case, so the test runs as a user without rights where it can.
        source = Path(shutil.copytree(bundle.folder, Path(name) / "source"))
        store = Path(name) / "store"
        store.mkdir()
        for folder in (Path(name), store, source):
            folder.chmod(0o777)
        user = os.geteuid()
        if user == 0:
            os.chown(source, GUEST, -1)
            os.seteuid(GUEST)
        try:
            source.chmod(mode)
            keep_bundle(ModelBundle.load(source), store)
            assert stat.S_IMODE((store / bundle.encoder_id).stat().st_mode) == mode
            assert [folder.name for folder in store.iterdir()] == [bundle.encoder_id]
        finally:
            os.seteuid(user)


def test_a_bundle_whose_copy_fails_is_not_kept_by_half(index: SqliteIndex, bundle: ModelBundle) -> None:
    store = store_folder(index.path)
    (store / bundle.encoder_id).parent.mkdir()
    (store / bundle.encoder_id).write_text("not a folder")
    with pytest.raises(OSError, match="Not a directory"):
        keep_bundle(bundle, store)
    assert [each.name for each in store.iterdir()] == [bundle.encoder_id]


def test_a_full_disk_is_one_reason(index: SqliteIndex, bundle: ModelBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", source)

    monkeypatch.setattr(shutil, "copytree", partial(shutil.copytree, copy_function=full))
    with pytest.raises(OSError, match=r"^the model cannot be copied: \[Errno 28\] No space left on device"):
        keep_bundle(bundle, store_folder(index.path))


def test_a_candidates_bundle_serves_where_nothing_is_live(index: SqliteIndex, bundle: ModelBundle) -> None:
    add_candidate(index, "first", encoder_id=bundle.encoder_id)
    keep_bundle(bundle, store_folder(index.path))
    assert bundle_for(index, store_folder(index.path)).encoder_id == bundle.encoder_id


def test_a_chosen_bundle_wins(index: SqliteIndex, bundle: ModelBundle) -> None:
    assert bundle_for(index, store_folder(index.path), chosen=bundle.folder).encoder_id == bundle.encoder_id


def test_a_damaged_stored_bundle_is_refused_not_replaced(index: SqliteIndex, bundle: ModelBundle) -> None:
    store = store_folder(index.path)
    go_live(index, bundle)
    keep_bundle(bundle, store)
    (store / bundle.encoder_id / "model.onnx").write_bytes(b"cut off")
    with pytest.raises(InvalidBundle, match="does not match its SHA-256"):
        bundle_for(index, store)


@pytest.mark.parametrize(
    ("target", "folder"),
    [
        ("data/similarity.db", "data/similarity.db.bundles"),
        ("https://search.example.com:9200/companies", "companies.bundles"),
        ("https://a:9200,b:9200/behind/companies/", "companies.bundles"),
    ],
)
def test_the_store_lies_beside_the_file_or_here_for_a_url(target: str, folder: str) -> None:
    assert store_folder(target) == Path(folder)
    assert store_folder(target, Path("chosen")) == Path("chosen")


def test_a_bundle_in_the_folder_of_another_encoder_is_refused_and_replaced_by_its_own(
    index: SqliteIndex, bundle: ModelBundle, tmp_path: Path
) -> None:
    store = store_folder(index.path)
    go_live(index, bundle)
    other = write_tiny_bundle(tmp_path / "other", max_tokens=7)
    shutil.copytree(other.folder, store / bundle.encoder_id)
    with pytest.raises(InvalidBundle, match=f"holds the bundle of encoder {other.encoder_id}, not of"):
        stored_bundle(store, bundle.encoder_id)
    with pytest.raises(InvalidBundle, match="not of"):
        bundle_for(index, store)
    assert check_bundles(store, index.generations())[0]
    keep_bundle(bundle, store)
    assert check_bundles(store, index.generations()) == ([], [])
    shutil.rmtree(store)
    assert check_bundles(store, index.generations()) == ([], [bundle.encoder_id])


def test_the_bundle_that_ships_needs_no_copy(tmp_path: Path) -> None:
    seed = ModelBundle.load(seed_folder())
    found = stored_bundle(tmp_path, seed.encoder_id)
    assert found is not None
    assert found.folder == seed.folder
    assert stored_bundle(tmp_path, "unheard-of") is None


def test_an_encoder_is_opened_when_it_is_first_asked_for(tmp_path: Path, bundle: ModelBundle) -> None:
    opened: list[str] = []

    def open_encoder(found: ModelBundle) -> CountingEncoder:
        opened.append(found.encoder_id)
        return CountingEncoder()

    at_hand = CountingEncoder()
    encoders = StoredEncoders(tmp_path / "store", open_encoder, opened=[at_hand])
    assert encoders[at_hand.encoder_id] is at_hand
    assert bundle.encoder_id not in encoders
    keep_bundle(bundle, tmp_path / "store")
    assert list(encoders) == sorted([bundle.encoder_id, at_hand.encoder_id])
    assert len(encoders) == 2
    assert opened == []
    assert encoders[bundle.encoder_id] is encoders[bundle.encoder_id]
    assert opened == [bundle.encoder_id]


def test_encoders_that_are_not_needed_are_let_go_of_and_opened_again_when_asked_for(
    tmp_path: Path, bundle: ModelBundle
) -> None:
    opened: list[str] = []

    def open_encoder(found: ModelBundle) -> CountingEncoder:
        opened.append(found.encoder_id)
        return CountingEncoder()

    keep_bundle(bundle, tmp_path / "store")
    encoders = StoredEncoders(tmp_path / "store", open_encoder)
    encoder = weakref.ref(encoders[bundle.encoder_id])
    encoders.keep_only({bundle.encoder_id, "unheard-of"})
    assert encoder() is encoders[bundle.encoder_id]
    encoders.keep_only({"unheard-of"})
    assert encoder() is None
    assert bundle.encoder_id in encoders
    assert opened == [bundle.encoder_id] * 2


def test_an_encoder_that_could_not_be_opened_again_is_kept(tmp_path: Path) -> None:
    at_hand = CountingEncoder()
    encoders = StoredEncoders(tmp_path / "store", lambda _: CountingEncoder(), opened=[at_hand])
    encoders.keep_only(())
    assert encoders[at_hand.encoder_id] is at_hand
