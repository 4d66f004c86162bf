"""`similarity generations ...` and `similarity erase` as a user types them, on a tiny bundle that really runs."""

import json
import os
import re
import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from similarity.bundle import ModelBundle
from similarity.cli.main import main
from similarity.feedback.opening import open_workspace
from similarity.index.sqlite import SqliteIndex
from similarity.upkeep.erasure import Eraser
from tests.similarity.cli.test_main import Shell
from tests.similarity.index.inspection import tamper
from tests.tiny_bundle import TinyGraph, expected_vector, write_tiny_bundle
from tests.workspace_records import make_event, make_list

WORDS = ("anvils", "boats", "cars")
COUNT = 60


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of sixty companies in three businesses, judgements of them, and three bundles."""
    folder = tmp_path_factory.mktemp("stage")
    shell = Shell(folder)
    write_tiny_bundle(folder / "old")
    write_tiny_bundle(folder / "new", max_tokens=7)
    write_tiny_bundle(folder / "recalibrated", quantisation="none at all")
    business = {f"c{number:02}": WORDS[number % 3] for number in range(COUNT)}
    rows = [(company, f"Firm {company}", f"{word} {word} {word}", "", "") for company, word in business.items()]
    judged = ["anchor\tcandidate\tgrade"]
    for anchor, word in business.items():
        alike = [company for company, other in business.items() if other == word and company != anchor][:3]
        unlike = [company for company, other in business.items() if other != word][:3]
        judged += [f"{anchor}\t{company}\t{2 if company in alike else 0}" for company in (*alike, *unlike)]
    (folder / "judged.tsv").write_text("\n".join(judged) + "\n")
    shell("ingest", shell.write("companies.csv", rows), "--bundle", "old")
    return folder


class QuickShell(Shell):
    """Runs `similarity` in this process: a start of Python each time would take a minute in all."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(folder)
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, fails: bool = False, **variables: str) -> str:
        self.capsys.readouterr()
        with self.monkeypatch.context() as patch:
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["similarity", *arguments])
            for name in [name for name in os.environ if name.startswith("SIMILARITY_")]:
                patch.delenv(name)
            for name, value in {"COLUMNS": "160", **variables}.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        printed = self.capsys.readouterr()
        assert bool(ended.value.code) == fails, printed.out + printed.err
        return printed.err if fails else printed.out


@pytest.fixture
def shell(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> QuickShell:
    shutil.copytree(stage, tmp_path, dirs_exist_ok=True)
    return QuickShell(tmp_path, monkeypatch, capsys)


def generations(shell: Shell) -> dict[str, dict[str, Any]]:
    """The generations by state."""
    return {row["state"]: row for row in json.loads(shell("generations", "list", "--format", "json"))}


def bundle(shell: Shell, name: str) -> ModelBundle:
    return ModelBundle.load(shell.folder / name)


def test_from_one_encoder_to_the_next_and_back(shell: Shell) -> None:
    first = generations(shell)["live"]
    report = json.loads(
        shell("generations", "reembed", "--bundle", "new", "--judged", "judged.tsv", "--format", "json")
    )
    assert (report["promoted"], report["encoded"], report["gate"]["anchors"]) == (True, COUNT, COUNT)
    after = generations(shell)
    assert after["live"]["name"] == report["generation"]
    assert after["live"]["encoder_id"] == bundle(shell, "new").encoder_id
    assert after["previous"]["name"] == first["name"]
    shell("generations", "reembed", "--bundle", "new", "--without-gate")
    assert generations(shell) == after
    # The writer finds both encoders in the store and writes to both generations.
    shell("ingest", shell.write("more.csv", [("late", "Late", "boats boats boats", "", "")]))
    assert {row["companies"] for row in generations(shell).values()} == {COUNT + 1}
    plan = json.loads(shell("generations", "rollback", "--dry-run", "--format", "json"))
    assert plan == {"live": report["generation"], "target": first["name"], "lacking": 0, "lacks": []}
    assert generations(shell)["live"]["name"] == report["generation"]
    shell("generations", "rollback")
    assert generations(shell)["live"]["name"] == first["name"]
    again = f"similarity generations promote {report['generation']} --without-gate"
    assert again in shell("generations", "rollback", fails=True)
    assert generations(shell)["live"]["name"] == first["name"]
    assert "boats" in shell("similar", "late", "-k", "1", "--format", "json")


def test_a_bundle_whose_graph_does_not_end_never_becomes_a_candidate(
    shell: QuickShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_bundle(shell.folder / "endless", TinyGraph(endless=True))
    monkeypatch.setattr("similarity.model.onnxruntime_session.RUN_SECONDS", 0.5)
    told = shell("generations", "reembed", "--bundle", "endless", "--without-gate", fails=True)
    assert "did not finish a batch within 0.5 seconds" in told
    assert list(generations(shell)) == ["live"]
    assert not (shell.folder / "similarity.db.bundles" / bundle(shell, "endless").encoder_id).exists()


def test_a_dry_run_tells_the_cost_and_changes_nothing(shell: Shell) -> None:
    before = (shell.folder / "similarity.db").read_bytes()
    text = shell("generations", "reembed", "--bundle", "new", "--dry-run", "--max-rate", "1", "--format", "json")
    told = json.loads(text)
    assert (told["vectors"], told["companies"], told["sample_texts"]) == ("encoded", COUNT, COUNT)
    assert told["hours"] == pytest.approx(COUNT / 3600)
    assert told["old_texts_per_second"] > 0
    assert told["bytes_per_company"] > 5 * 4
    assert (shell.folder / "similarity.db").read_bytes() == before
    assert not (shell.folder / "similarity.db.bundles" / bundle(shell, "new").encoder_id).exists()
    assert "vectors" in shell("generations", "copy", "--dry-run")
    assert len(generations(shell)) == 1


def test_a_reembed_can_be_stopped_before_it_goes_live_judged_and_promoted(shell: Shell) -> None:
    shell("generations", "reembed", "--bundle", "new", "--no-promote")
    name = generations(shell)["candidate"]["name"]
    judged = shell("generations", "gate", name, "--judged", "judged.tsv")
    assert "passed" in judged
    assert "not known; --trained-on FILE names the companies" in judged
    encoder_id = bundle(shell, "new").encoder_id
    (shell.folder / f"similarity.db.bundles/{encoder_id}.trained-on.txt").write_text("c00\nc01\n")
    judged = shell("generations", "gate", name, "--judged", "judged.tsv")
    assert re.search(r"trained.on +2\b", judged)
    (shell.folder / f"similarity.db.bundles/{encoder_id}.trained-on.txt").unlink()
    (shell.folder / "few.tsv").write_text("anchor\tcandidate\tgrade\nc00\tc03\t2\nc00\tc01\t0\n")
    refused = shell("generations", "promote", name, "--judged", "few.tsv", fails=True)
    assert "was not promoted: 1 of 1 labelled anchors are usable, fewer than 50" in refused
    shell("generations", "promote", name, "--judged", "judged.tsv", "--dry-run")
    assert generations(shell)["live"]["name"] != name
    shell("generations", "promote", name, "--judged", "judged.tsv")
    assert generations(shell)["live"]["name"] == name
    again = shell.run("generations", "reembed", "--bundle", "new", "--no-promote", "--format", "json")
    assert (json.loads(again.stdout)["promoted"], "to make it live" in again.stderr) == (False, False)


def test_a_refusal_is_said_once_with_what_becomes_of_the_candidate(shell: Shell) -> None:
    (shell.folder / "few.tsv").write_text("anchor\tcandidate\tgrade\nnobody\tc03\t2\nnobody\tc01\t0\n")
    ended = shell.run("generations", "reembed", "--bundle", "new", "--judged", "few.tsv")
    name = generations(shell)["candidate"]["name"]
    said = ended.stdout + ended.stderr
    assert ended.returncode == 1
    assert said.count("0 of 1 labelled anchors are usable") == 1
    assert "ndcg" not in ended.stdout
    assert f"every change is written to it too; to remove it: similarity generations retire {name}" in said
    assert "similarity generations drift OLD NEW" in said
    again = shell.run("generations", "promote", name, "--judged", "few.tsv")
    assert (again.stdout + again.stderr).count("0 of 1 labelled anchors are usable") == 1


def test_a_copy_goes_live_and_old_generations_are_removed(shell: Shell) -> None:
    first = generations(shell)["live"]["name"]
    assert json.loads(shell("generations", "copy", "--compact", "--format", "json"))["documents"] == COUNT
    second = generations(shell)["live"]["name"]
    told = json.loads(shell("generations", "drift", first, second, "--anchors", "5", "--format", "json"))
    assert (told["anchors"], told["overlap_mean"]) == (5, 1.0)
    assert "overlap mean" in shell("generations", "drift", first, second)
    pruned = shell("generations", "prune")
    assert "nothing removed; generations replaced, or if unfinished created, less than 7 days ago are kept" in pruned
    assert f"{first} would be removed" in shell("generations", "prune", "--keep", "0", "--older-than", "0", "--dry-run")
    assert "would be removed" in shell("generations", "retire", first, "--dry-run")
    assert len(generations(shell)) == 2
    shell("generations", "retire", first)
    assert list(generations(shell)) == ["live"]
    assert "is live; promote another" in shell("generations", "retire", second, fails=True)


def test_info_names_the_bundles_that_were_live_and_so_does_a_backup_of_the_index(shell: Shell) -> None:
    assert "former" not in shell("info")
    shell("generations", "reembed", "--bundle", "new", "--without-gate")
    shell("generations", "rollback")
    shell("generations", "prune", "--keep", "0", "--older-than", "0")
    shell("backup", "copy.db")
    for index in ("similarity.db", "copy.db"):
        told = shell("info", "--index", index)
        assert "former      bundles that were live; no schedule makes them live again" in told
        assert f": {bundle(shell, 'new').bundle_id}\n" in told
    shell("generations", "reembed", "--bundle", "new", "--without-gate")
    told, new = shell("info"), bundle(shell, "new")
    assert f"live again: {bundle(shell, 'old').bundle_id}\n" in told
    assert f"encoder {new.encoder_id}, bundle {new.bundle_id}\n" in told


def test_vectors_made_elsewhere_are_imported_and_promoted(shell: Shell) -> None:
    with (shell.folder / "vectors.jsonl").open("w") as stream:
        for number in range(COUNT):
            vector = expected_vector(WORDS[number % 3]).tolist()
            record = {"id": f"c{number:02}", "name": "Firm", "description": "Firm.", "vector": vector}
            stream.write(json.dumps(record) + "\n")
    arguments = ["generations", "import-vectors", "vectors.jsonl", "--encoder-id", "Elsewhere-1"]
    assert "60 rows would go into a new generation with vectors of 4 numbers" in shell(*arguments, "--dry-run")
    shell(*arguments, "--dry-run", "--index", "other.db")
    assert not (shell.folder / "other.db").exists()
    assert "building" not in generations(shell)
    assert "60 applied" in shell(*arguments)
    building = generations(shell)["building"]
    assert (building["encoder_id"], building["companies"]) == ("Elsewhere-1", COUNT)
    assert "60 rows" in shell(*arguments, "--into", building["name"])
    other = [*arguments[:-1], "Elsewhere-2", "--into", building["name"]]
    for run in (other, [*other, "--dry-run"]):
        assert "has vectors of encoder Elsewhere-1, not of Elsewhere-2" in shell(*run, fails=True)
    assert "the encoder id is empty" in shell(*arguments[:-1], " ", fails=True)
    shell("generations", "promote", building["name"], "--judged", "judged.tsv")
    assert generations(shell)["live"]["name"] == building["name"]


def test_an_import_of_no_valid_vector_leaves_no_generation(shell: Shell) -> None:
    record = {"id": "c1", "name": "Firm", "description": "Firm.", "vector": [2.0, 0.0, 0.0, 0.0]}
    (shell.folder / "vectors.jsonl").write_text(json.dumps(record) + "\n")
    said = shell("generations", "import-vectors", "vectors.jsonl", "--encoder-id", "Elsewhere-1", fails=True)
    assert "no row could be imported, so there is no new generation" in said
    assert list(generations(shell)) == ["live"]


def test_one_company_is_erased_everywhere(shell: Shell) -> None:
    shell("generations", "copy")
    assert "c05 is in " in shell("erase", "c05", "--dry-run")
    assert shell("similar", "c05", "-k", "1")
    assert shell("erase", "c05").count(": applied") == 2
    assert "no company with the id 'c05' is stored" in shell("erase", "c05", "--no-compact")
    assert not (shell.folder / "similarity.db.workspace").exists()


def test_what_people_added_about_an_erased_company_goes_with_it(shell: Shell) -> None:
    anchors = [{"company": "c05"}, {"company": "c01"}]
    with closing(open_workspace(str(shell.folder / "similarity.db"), {})) as workspace:
        workspace.add_event(make_event(anchor="c05", hit="c01"))
        workspace.save_list(make_list("mine", anchors=anchors, exclude=["firm C05", "c02"]))
    assert "forgotten: 1 verdicts, 0 notes; changed: 1 lists, 0 looks" in shell("erase", "c05")
    assert b"c05" not in (shell.folder / "similarity.db.workspace").read_bytes().lower()
    with closing(open_workspace(str(shell.folder / "similarity.db"), {})) as workspace:
        assert list(workspace.events()) == []
        assert workspace.saved_list("mine").question == {"anchors": [{"company": "c01"}], "exclude": ["c02"]}
    assert {row["deleted"] for row in generations(shell).values()} == {1}
    with closing(SqliteIndex(shell.folder / "similarity.db")) as index:
        assert index.ledger.erasure("c05") is not None
        assert "1 deletions forgotten" in shell("generations", "purge-deleted", "--older-than", "0")
        assert index.ledger.erasure("c05") is None
    name = generations(shell)["live"]["name"]
    assert f"{name} is compact" in shell("generations", "compact", name)


def test_a_generation_is_not_called_compact_if_deleted_documents_stay(
    shell: QuickShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteIndex, "compact", lambda self, generation: False)
    name = generations(shell)["live"]["name"]
    said = shell("generations", "compact", name)
    assert f"{name} still holds replaced and deleted documents, because a copy of the store is unavailable" in said


def test_damage_to_one_erasure_ends_no_other_in_a_traceback(shell: Shell) -> None:
    file = shell.folder / "similarity.db"
    with closing(SqliteIndex(file)) as index:
        Eraser(index).accept("c06")
    tamper(file, "UPDATE erasures SET record = '{'")
    assert "not reached" in shell("erase", "c05")
    assert "  the row ('c06',) of erasures differs from its checksum\n" in shell.run("check").stdout
    assert "not reached" in shell("erase", "c06")
    tamper(file, "UPDATE registry SET name_key = zeroblob(32)")
    refused = shell("erase", "c07", fails=True)
    assert refused.startswith("similarity: the index similarity.db does not answer: it is damaged; restore a backup")
    assert refused.count("\n") == 1
    assert "  the row of registry differs from its checksum\n" in shell.run("check").stdout


def test_nobody_holds_a_lease_when_nothing_runs(shell: Shell) -> None:
    assert "there are no leases" in shell("generations", "leases")
    assert json.loads(shell("generations", "leases", "--format", "json")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reembed", "--bundle", "new"], "give labelled pairs for the gate (--judged FILE), or --no-promote, or"),
        (["reembed", "--bundle", "new", "--judged", "judged.tsv", "--without-gate"], "contradict each other"),
        (["reembed", "--bundle", "nowhere", "--no-promote"], "nowhere"),
        (["reembed", "--bundle", "new", "--no-promote", "--max-rate", "0"], "give more than 0"),
        (["promote", "x"], "give either labelled pairs for the gate (--judged FILE), or --without-gate"),
        (["promote", "x", "--without-gate"], "there is no generation 'x'"),
        (["rollback"], "there is nothing to go back to"),
        (["retire", "x", "--dry-run"], "there is no generation 'x'"),
        (["gate", "x", "--judged", "missing.tsv"], "there is no file missing.tsv"),
        (["list", "--index", "none.db"], "there is no index none.db yet"),
    ],
)
def test_mistakes_get_one_clear_line(shell: Shell, arguments: list[str], message: str) -> None:
    text = shell("generations", *arguments, fails=True)
    assert message in text
    assert len(text.splitlines()) == 1
