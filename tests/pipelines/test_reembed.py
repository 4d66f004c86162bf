"""From one bundle to the next as a Beam job on the in-process runner, on a real embedded index."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import reembed, schedule
from pipelines.options import beam_options
from pipelines.reembed import ReembedOptions, run_once, summary
from pipelines.worker_settings import WorkerSettings
from similarity.bundle import ModelBundle, trained_on_path
from similarity.company import DeletedCompany, utc_now
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.gate import GateReport
from similarity.generations.reembed import ReembedReport
from similarity.index.bundle_store import StoredEncoders
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import VersionedCompany
from similarity.ingest.write_path import write_changes
from similarity.ingest.writer_leases import WriterLease
from tests import tiny_bundle
from tests.factories import make_company
from tests.tiny_bundle import write_tiny_bundle

pytestmark = pytest.mark.pipelines

KINDS = ("anvils", "boats", "cars")
COMPANIES = 60


def fill(index: SqliteIndex, store: Path, *, companies: int = COMPANIES) -> None:
    """Companies of three kinds, each with a description that says which; and one that was deleted."""
    changes: list[Any] = [
        VersionedCompany(company=make_company(f"c{n:03}", description=" ".join([KINDS[n % 3]] * 3)), version=2 * n)
        for n in range(1, companies + 1)
    ]
    with WriterLease(index) as writer:
        encoders = StoredEncoders(store, lambda bundle: TextEncoder(bundle, threads=1))
        write_changes(writer, encoders, [*changes, DeletedCompany(id="gone", version=3)], now=utc_now())


@pytest.fixture
def filled(index: SqliteIndex, tmp_path: Path) -> SqliteIndex:
    fill(index, tmp_path / "index.db.bundles")
    return index


@pytest.fixture
def better(tmp_path: Path) -> ModelBundle:
    return write_tiny_bundle(tmp_path / "models" / "better", max_tokens=7)


@pytest.fixture
def worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelBundle:
    """To it boats and cars are the same."""
    table = np.array(tiny_bundle.TABLE)
    table[KINDS.index("cars") + 4] = table[KINDS.index("boats") + 4]
    monkeypatch.setattr(tiny_bundle, "TABLE", table)
    return write_tiny_bundle(tmp_path / "models" / "worse", max_tokens=6)


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Each company's competitors are those of its kind."""
    lines = ["anchor\tcandidate\tgrade"]
    for anchor in range(1, COMPANIES + 1):
        others = [(anchor + step - 1) % COMPANIES + 1 for step in (1, 2, 3, 4, 5, 6)]
        lines += [f"c{anchor:03}\tc{other:03}\t{2 if (anchor - other) % 3 == 0 else 0}" for other in others]
    path = tmp_path / "judged.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(bundle: ModelBundle, worker_settings: WorkerSettings, judged: Path | None, **options: Any) -> ReembedReport:
    asked = ReembedOptions(worker_settings=worker_settings, judged=judged, range_documents=20, **options)
    return run_once(bundle, asked, beam_options([], bounded=True))


def test_the_corpus_moves_to_the_new_bundle(
    filled: SqliteIndex, worker_settings: WorkerSettings, better: ModelBundle, judged: Path
) -> None:
    before = filled.live()
    report = run(better, worker_settings, judged)
    live = filled.live()
    assert (live.encoder_id, report.promoted) == (better.encoder_id, True)
    assert (report.documents, report.encoded) == (COMPANIES + 1, COMPANIES)
    assert filled.stats(live.name) == filled.stats(before.name)
    assert "is live; to go back" in summary(report)
    assert run(better, worker_settings, judged).documents == 0, "a schedule repeats it"
    assert filled.live() == live


def test_the_command_says_how_it_went(
    filled: SqliteIndex,
    worker_settings: WorkerSettings,
    worse: ModelBundle,
    judged: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del filled
    with pytest.raises(SystemExit) as ended:
        reembed.main(["--bundle", str(worse.folder), "--judged", str(judged), "--index", worker_settings.index])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "gate       refused" in said
    assert "not live" in said


def test_anchors_that_the_bundle_was_trained_on_do_not_judge_it(
    filled: SqliteIndex, worker_settings: WorkerSettings, better: ModelBundle, judged: Path
) -> None:
    del filled
    trained_on_path(better.folder).write_text("c001\nc002\nc003\n")
    report = run(better, worker_settings, judged)
    assert isinstance(report.gate, GateReport)
    assert (report.gate.trained_on, report.gate.anchors) == (3, COMPANIES - 3)


def test_what_was_rolled_back_does_not_come_back_by_schedule(
    filled: SqliteIndex, worker_settings: WorkerSettings, better: ModelBundle
) -> None:
    before = filled.live()
    run(better, worker_settings, None)
    filled.rollback()
    arguments = ["--models", str(better.folder.parent), "--without-gate", "--index", worker_settings.index]
    [rejected] = [each.name for each in filled.generations() if each.name != before.name]
    with pytest.raises(SystemExit, match=f"was rolled back .* generations promote {rejected} --without-gate$"):
        reembed.main(arguments)
    filled.retire(rejected)
    with pytest.raises(SystemExit, match=f"was rolled back .* reembed --bundle {better.folder} --without-gate$"):
        reembed.main(arguments)
    assert [each.name for each in filled.generations()] == [before.name]
    run(better, worker_settings, None)  # by its name it may
    assert filled.live().bundle_id == better.bundle_id


def test_a_named_bundle_that_was_rolled_back_does_not_come_back_by_schedule_either(
    filled: SqliteIndex,
    worker_settings: WorkerSettings,
    better: ModelBundle,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--bundle", str(better.folder), "--without-gate", "--index", worker_settings.index]
    monkeypatch.setattr(reembed, "run_on_schedule", lambda job, *_, **__: job())
    reembed.main([*arguments, "--cron", "0 3 * * *"])
    assert filled.live().bundle_id == better.bundle_id
    filled.rollback()
    reembed.main([*arguments, "--cron", "0 3 * * *"])
    assert "this run failed: the bundle" in capsys.readouterr().err
    assert filled.live().bundle_id != better.bundle_id
    reembed.main(arguments)
    assert filled.live().bundle_id == better.bundle_id


def test_metrics_without_a_schedule_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        reembed.main(["--models", "models", "--without-gate", "--metrics-port", "9100"])
    assert "give --cron" in capsys.readouterr().err


def test_a_bundle_may_be_named_by_the_folder_one_is_in(better: ModelBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(better.folder)
    assert trained_on_path(Path()) == trained_on_path(better.folder)


def test_the_newest_bundle_of_a_folder_is_taken(better: ModelBundle, worse: ModelBundle, tmp_path: Path) -> None:
    del better
    assert schedule.newest_bundle(tmp_path / "models").encoder_id == worse.encoder_id
    with pytest.raises(InvalidInput, match="there is no bundle"):
        schedule.newest_bundle(tmp_path)


def test_cron_expressions_have_their_time_zone() -> None:
    trigger = schedule.cron_trigger("0 3 * * sat", zone="Europe/Stockholm")
    friday = datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert trigger.get_next_fire_time(None, friday).astimezone(UTC) == datetime(2026, 1, 3, 2, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="five fields"):
        schedule.cron_trigger("every day", zone="UTC")
    with pytest.raises(InvalidInput, match="not a time zone"):
        schedule.cron_trigger("0 3 * * *", zone="Mars/Olympus")
