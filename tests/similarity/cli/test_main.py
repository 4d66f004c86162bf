"""The command line as a user types it, on real files, the real index and the shipped bundle."""

import csv
import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer

from similarity.cli.context import progress_lines
from similarity.cli.main import main, serve
from similarity.errors import SimilarityError
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.renewed_leases import LoadLease
from similarity.ingest.writer_leases import host_name
from tests.contract.steps import add_live
from tests.factories import make_generation
from tests.similarity.index.inspection import connect
from tests.tiny_bundle import write_tiny_bundle

ROOT = Path(__file__).parents[3]
COMPANIES = [
    ("brew", "Brew Ltd.", "Brew Ltd. brews lager and ale and sells beer to pubs and shops.", "brew.com", "Ireland"),
    (
        "hops",
        "Hops AG",
        "Hops AG is a brewery that makes wheat beer and pilsner for restaurants.",
        "hops.de",
        "Germany",
    ),
    ("keg", "Keg Inc.", "Keg Inc. produces craft beer and cider and distributes it in kegs.", "keg.com", "Ireland"),
    ("bank", "Bank One", "Bank One takes deposits and lends money to families and small firms.", "one.com", "Ireland"),
    ("loan", "Loan Co.", "Loan Co. offers savings accounts, mortgages and consumer credit.", "loan.com", "Germany"),
]

HEADER = "id,name,description,website,country"


class Shell:
    """Runs `similarity` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, fails: bool = False, **variables: str) -> str:
        done = self.run(*arguments, **variables)
        assert "Traceback" not in done.stderr, done.stderr
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SIMILARITY_")}
        return subprocess.run(
            [sys.executable, "-m", "similarity", *arguments],
            cwd=self.folder,
            env={**environment, "PYTHONPATH": str(ROOT), "COLUMNS": "160", **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def write(
        self, name: str, rows: Sequence[tuple[str, ...]], header: str = "id,name,description,website,country"
    ) -> str:
        with (self.folder / name).open("w", newline="") as stream:
            stream.write(header + "\n")
            csv.writer(stream).writerows(rows)
        return name


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("filled"))
    shell("ingest", shell.write("companies.csv", COMPANIES))
    return shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_progress_is_a_line_every_ten_seconds_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 4.0, 10.0, 10.0, 12.0])
    advance = progress_lines("rows", 3_000, clock=lambda: next(times))
    for _ in range(3):
        advance(1_000)
    assert capsys.readouterr().err == "similarity: 2,000 of 3,000 rows\n"


def test_progress_beyond_the_counted_lines_has_no_total(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 10.0, 10.0])
    progress_lines("rows", 1, clock=lambda: next(times))(2_048)  # a JSON array in one line
    assert capsys.readouterr().err == "similarity: 2,048 rows\n"


def test_help_teaches_with_examples(shell: Shell) -> None:
    text = shell("--help")
    assert "similarity ingest companies.csv" in text
    assert "similarity serve" in text


def test_ingest_makes_the_first_generation_live_and_says_so(shell: Shell) -> None:
    text = shell("ingest", shell.write("companies.csv", COMPANIES))
    assert "5 rows: 5 applied" in text
    assert "5 companies in the index, which is live now" in text


def test_a_company_with_too_few_words_is_counted_and_has_no_ranking(shell: Shell) -> None:
    text = shell("ingest", shell.write("companies.csv", [*COMPANIES, ("tiny", "Tiny", "Tiny sells.", "", "")]))
    assert "1 of them without a ranking: their descriptions have too few words: tiny\n" in text
    assert "6 companies, 0 deleted, 1 without a vector" in shell("info")
    assert "the description of Tiny (tiny) has too few words to rank by" in shell("similar", "tiny", fails=True)
    assert "Tiny" in shell("find", "tiny")
    text = shell("export", "n.parquet", "-k", "2")
    assert "10 pairs of 5 companies" in text
    assert "1 left out: their descriptions have too few words to rank by" in text


@pytest.mark.parametrize("command", [("ingest",), ("sync", "--force")])
def test_a_load_is_refused_while_another_one_runs(shell: Shell, command: Sequence[str]) -> None:
    """Two overlapping loads of the halves of a corpus emptied the index."""
    shell("ingest", shell.write("companies.csv", COMPANIES), "--index", "i.db")
    half = shell.write("half.csv", [*COMPANIES[:2], ("", "No id", "Makes beer.", "", "")])
    rejects = shell.folder / "half.rejects.jsonl"
    with closing(SqliteIndex(shell.folder / "i.db")) as index, LoadLease(index):
        error = shell(*command, half, "--index", "i.db", fails=True)
        assert "another load of this index runs, so nothing was written" in error
        assert f"is held by '{host_name()}.{os.getpid()}." in error
        assert "wait until that process is done" in error
        assert not rejects.exists()
        assert index.stats(index.live().name).companies == len(COMPANIES)
    text = shell("ingest", "companies.csv", "--index", "i.db")
    assert "5 unchanged" in text


def test_only_if_new_loads_once_and_never_touches_what_came_since(shell: Shell) -> None:
    shell("ingest", shell.write("companies.csv", COMPANIES), "--only-if-new")
    shell("erase", "bank")
    assert "nothing was done" in shell("ingest", "companies.csv", "--only-if-new")
    assert "4 companies, 1 deleted" in shell("info")


def test_a_bad_row_does_not_fail_the_first_load_that_others_wait_for(shell: Shell) -> None:
    path = shell.write("companies.csv", [*COMPANIES, ("bad id", "Bad", "Makes bad things.", "", "")])
    assert "5 companies in the index, which is live now" in shell("ingest", path, "--only-if-new")
    assert [path.name for path in shell.folder.glob("*rejects*")] != []


def test_a_first_load_of_nothing_but_bad_rows_fails(shell: Shell) -> None:
    path = shell.write("companies.csv", [("bad id", "Bad", "Makes bad things.", "", "")])
    assert "1 row was rejected" in shell("ingest", path, "--only-if-new", fails=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "the file is empty; its first line must name the columns"),
        ("a.csv", b"id,name,description\n", "a.csv has column names but no rows; nothing was written"),
        (
            "a.csv",
            b"\x7fELF\x02\x01\0\0\xff\xfe,x\n1\n",
            "the file is not a text: its first line has control characters",
        ),
        (
            "a.csv",
            b"id,name,description\nbad id,B,B.\n",
            "no row of a.csv can be used, so nothing was written: 1 row was",
        ),
        (
            "a.csv",
            "id,名称,説明\na,東京,パンを焼く。\n".encode("shift_jis"),
            "these names are not UTF-8: save the file as UTF-8 (in Excel: CSV UTF-8; in a shell, for Japanese: iconv",
        ),
        ("a.jsonl", b"\n", "a.jsonl has no companies: it has no rows with fields"),
        ("a.jsonl", b"\xff\0\n\x01\n", "none of its first 2 rows can be read (not JSON"),
        ("a.jsonl", b"{}\n", "a.jsonl has no companies: it has no rows with fields"),
        ("a.parquet", b"", "a.parquet is not a Parquet file"),
        ("a.xlsx", b"\0\1\2", "a.xlsx is not an Excel file"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--only-if-new"]])
def test_a_file_without_companies_leaves_no_index(
    shell: Shell, name: str, content: bytes, message: str, options: list[str]
) -> None:
    (shell.folder / name).write_bytes(content)
    assert message in shell("ingest", name, *options, fails=True)
    assert {path.name for path in shell.folder.iterdir()} <= {name, f"{name}.rejects.jsonl"}


def test_an_empty_file_of_changes_is_a_load_of_nothing(shell: Shell) -> None:
    shell("ingest", shell.write("companies.csv", COMPANIES))
    assert "0 rows: none" in shell("ingest", shell.write("changes.csv", []))


def test_columns_are_mapped_and_attributes_kept(shell: Shell) -> None:
    shell.write("c.csv", [("a", "Acme", "Acme makes anvils.", "12", "")], header="ticker,title,about,staff,\u202enote")
    text = shell(
        "ingest", "c.csv", "-c", "id=ticker", "-c", "name=title", "-c", "description=about", "-a", "size=staff"
    )
    assert "1 applied" in text
    assert text.startswith(
        "columns: id <- ticker, name <- title, description <- about, attributes.size <- staff; ignored: \ufffdnote\n"
    )


def test_bad_rows_end_in_the_rejects_file_and_in_the_exit_status(shell: Shell) -> None:
    shell.write("c.csv", [*COMPANIES, ("bad id", "x", "y", "", ""), ("b", "", "y", "", "")])
    message = shell("ingest", "c.csv", fails=True)
    assert "2 rows were rejected; see c.csv.rejects.jsonl" in message
    rejects = [json.loads(line) for line in (shell.folder / "c.csv.rejects.jsonl").read_text().splitlines()]
    assert [entry["row"] for entry in rejects] == [6, 7]
    assert "5 companies" in shell("info")


def test_a_change_of_type_is_said_with_both_types(shell: Shell) -> None:
    file = shell.write("c.csv", [(*row, "10") for row in COMPANIES], header=f"{HEADER},staff")
    for _ in range(2):
        assert "the type of" not in shell("ingest", file, "-a", "staff:number")
    told = shell("ingest", file, "-a", "staff:ordinal=low,high")
    assert "warning: the type of the attribute 'staff' changes from number to ordinal=low,high, for all" in told
    assert "ignored in accepted companies: attributes.staff 5" in told


def test_a_load_that_writes_nothing_declares_nothing(shell: Shell) -> None:
    shell(
        "ingest", shell.write("all.csv", [(*row, "10") for row in COMPANIES], header=f"{HEADER},staff"), "-a", "staff"
    )
    few = shell.write("few.csv", [(*COMPANIES[0], "10")], header=f"{HEADER},staff")
    bad = shell.write("bad.csv", [("b", "", "", "", "", "10")], header=f"{HEADER},staff")
    assert "nothing was written" in shell("sync", few, "-a", "staff:number", fails=True)
    assert "rejected" in shell("ingest", bad, "-a", "staff:number", fails=True)
    assert "attribute " not in shell("info")
    shell("ingest", few, "-a", "staff:number", "--size", "staff")
    assert "attribute   staff: number, the size" in shell("info")
    assert shell("audit", "--action", "declare").count("declare  done  subject=staff:number; size staff\n") == 1


def test_a_table_with_characters_that_the_output_lacks_is_printed(shell: Shell) -> None:
    (shell.folder / "c.jsonl").write_text(json.dumps({"id": "a", "name": "\u65e5\u672c", "description": "Makes beer."}))
    shell("ingest", "c.jsonl")
    assert "\\u65e5\\u672c" in shell("find", "a", PYTHONIOENCODING="ascii")


def test_a_file_of_deletions_is_taken_but_is_no_first_load(shell: Shell) -> None:
    gone = [json.dumps({"id": each, "deleted": True}) for each in ("bank", "nobody")]
    (shell.folder / "gone.jsonl").write_text("\n".join(gone))
    assert "it deletes a company, and no row adds one" in shell("ingest", "gone.jsonl", fails=True)
    shell("ingest", shell.write("companies.csv", COMPANIES))
    told = shell("ingest", "gone.jsonl")
    assert "2 rows: 2 applied; 1 deleted\n1 of the ids to delete have no company: nobody\n4 companies in" in told


def test_the_size_may_be_an_attribute_that_the_index_declares(shell: Shell) -> None:
    file = shell.write("sized.csv", [(*row, "7") for row in COMPANIES], header=f"{HEADER},employees")
    shell("ingest", file, "--attribute", "employees:number")
    assert "(declared: employees)" in shell("ingest", file, "--size", "employes", fails=True)
    shell("ingest", file, "--size", "employees")
    assert "attribute   employees: number, the size" in shell("info")


def test_a_filter_of_an_unknown_field_is_told_the_nearest_one_of_the_index(shell: Shell) -> None:
    file = shell.write("sized.csv", [(*row, "large", "beer") for row in COMPANIES], header=f"{HEADER},cap,sector")
    shell("ingest", file, "--attribute", "cap:ordinal=small,large", "--attribute", "sector")
    for text, meant in [
        ("sectr=beer", "attributes.sector?"),
        ("cap>=huge", "attributes.cap (ordinal=small,large)?"),
        ("contry=Ireland", "country?"),
    ]:
        assert f"did you mean {meant}" in shell("similar", "brew", "--filter", text, fails=True)
    assert "did you mean" not in shell("similar", "brew", "--filter", "colour=red", fails=True)


def test_rows_that_are_older_than_the_index_are_explained(shell: Shell) -> None:
    shell("ingest", shell.write("companies.csv", COMPANIES))
    dated = [(*row, "2025-01-31T12:00:00Z") for row in COMPANIES[:2]]
    told = shell("ingest", shell.write("dated.csv", dated, header=f"{HEADER},event_time"))
    assert "2 rows: 2 superseded\n2 superseded: the index holds a newer version of these companies" in told


def test_texts_in_other_languages_are_counted(shell: Shell) -> None:
    finnish = ("juna", "Juna Oy", "Juna Oy liikennöi junia ja hoitaa asemia matkustajille koko maassa.", "", "")
    text = shell("ingest", shell.write("c.csv", [*COMPANIES, finnish]))
    assert "1 of them in languages that the model does not read: juna\n" in text
    assert "is in a language ('fi') that the encoder does not read" in shell.run("similar", "juna").stderr
    assert "hits in languages that the encoder does not read: 1" in shell.run("similar", "bank").stderr


def test_each_exit_status_is_documented(shell: Shell) -> None:
    bad_row = shell.write("bad.csv", [*COMPANIES, ("", "No Id", "Sells things to people.", "", "")])
    guide = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for status, arguments in [
        (1, ["ingest", bad_row]),
        (0, ["ingest", bad_row, "--only-if-new"]),
        (1, ["find", "zyzzyva"]),
        (0, ["erase", "nobody"]),
        (2, ["find"]),
        (2, ["find", "brew", "--nope"]),
    ]:
        assert shell.run(*arguments).returncode == status, arguments
        assert f"\n| {status} | " in guide


def test_sync_deletes_what_is_missing_only_when_it_is_little_or_forced(shell: Shell) -> None:
    shell("ingest", shell.write("c.csv", COMPANIES))
    assert "use --force" in shell("sync", shell.write("d.csv", COMPANIES[:3]), fails=True)
    text = shell("sync", "d.csv", "--force")
    assert "2 deleted\ndeleted, because the file does not have them: bank, loan\n" in text
    assert "because the file does not have them" not in shell("sync", "d.csv")
    assert "no company has the id, domain, name or alias 'bank'" in shell("similar", "bank", fails=True)


@pytest.mark.parametrize("reference", ["brew", "brew.com", "BREW LTD."])
def test_similar_finds_the_competitors_by_any_name(filled: Shell, reference: str) -> None:
    rows = json.loads(filled("similar", reference, "-k", "2", "--format", "json"))
    assert {row["id"] for row in rows} == {"hops", "keg"}
    assert rows[0]["score"] >= rows[1]["score"]


def test_similar_leaves_out_unlikely_competitors(filled: Shell) -> None:
    rows = json.loads(filled("similar", "brew", "-f", "json"))
    probabilities = [row["probability"] for row in rows]
    least = (min(probabilities) + max(probabilities)) / 2
    likely = json.loads(filled("similar", "brew", "-f", "json", "--min-probability", str(least)))
    assert [row["id"] for row in likely] == [row["id"] for row in rows if row["probability"] >= least]


def test_similar_prints_a_table(filled: Shell) -> None:
    text = filled("similar", "brew", "-k", "2")
    assert "Competitors of Brew Ltd. (brew)" in text
    assert "Hops AG" in text
    assert "Germany" in text


def test_similar_answers_free_text_as_csv(filled: Shell) -> None:
    rows = list(
        csv.DictReader(io.StringIO(filled("similar", "--text", "a brewery of lager beer", "-k", "3", "-f", "csv")))
    )
    assert {row["id"] for row in rows} == {"brew", "hops", "keg"}


def test_several_texts_are_asked_about_together(filled: Shell) -> None:
    texts = ("--text", "a brewery of lager beer", "--text", "grows hops in Bavaria")
    both = filled("similar", *texts, "-k", "3", "-f", "csv")
    assert both != filled("similar", *texts[2:], "-k", "3", "-f", "csv")
    assert both == filled("similar", *texts[2:], *texts[:2], "-k", "3", "-f", "csv")


def test_one_line_of_business_can_be_asked_about(filled: Shell, tmp_path: Path) -> None:
    both = (
        "The group brews lager, pilsner and wheat beer in four breweries. It bottles cider and ale for pubs. It "
        "delivers kegs of craft beer to restaurants. It makes malt and hops extracts for other breweries. It sells its "
        "beer brands in supermarkets. The other division takes savings deposits of families. It lends mortgages to "
        "home buyers. It grants consumer credit and loans to small firms. It runs current accounts and payment cards "
        "for its bank customers. It offers savings accounts and investment funds in bank branches. It insures loans of "
        "its borrowers against default."
    )
    shell = Shell(tmp_path)
    shell("ingest", shell.write("companies.csv", [*COMPANIES, ("both", "Both plc", both, "", "")]))
    segments = dict(line.split("  ", 1) for line in shell("segments", "Both plc").splitlines())
    for word, expected in (("lager", {"brew", "hops", "keg"}), ("deposits", {"bank", "loan"})):
        [number] = [number for number, text in segments.items() if word in text]
        rows = json.loads(shell("similar", "both", "--segment", number, "-k", "2", "-f", "json"))
        assert {row["id"] for row in rows} <= expected
    assert "Brew Ltd. (brew) has no segments" in filled("segments", "brew")


def test_filters_of_any_field_narrow_the_answer(shell: Shell) -> None:
    records = [
        {"id": name, "name": name.title(), "description": f"{name} brews beer and ale.", "staff": staff, "tags": tags}
        for name, staff, tags in [("a", 5, []), ("b", 10, []), ("c", 50, ["bar"]), ("d", 90.5, []), ("e", "50", [])]
    ]
    (shell.folder / "c.jsonl").write_text("\n".join(map(json.dumps, records)))
    shell("ingest", "c.jsonl", "-a", "staff")

    def ids(*filters: str) -> set[str]:
        options = [option for each in filters for option in ("--filter", each)]
        return {row["id"] for row in json.loads(shell("similar", "a", "-f", "json", *options))}

    assert ids("attributes.staff>=10") == {"b", "c", "d"}
    assert ids("attributes.staff>=10", "attributes.staff<=90", "tags!=bar") == {"b"}
    assert ids("attributes.staff=10", "attributes.staff=50") == {"b", "c", "e"}


def test_find_looks_up_names(filled: Shell) -> None:
    assert "Hops AG" in filled("find", "hop")
    assert len(json.loads(filled("find", "brew", "-k", "1", "-f", "json"))) == 1
    assert "nothing found" in filled("find", "zzzz", fails=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["find", "zzz"], "nothing found for 'zzz'; try fewer letters or other words"),
        (["similar", "brew", "--bundle", "nowhere"], "nowhere is not a folder"),
        (["similar", "brew", "--bundle", "multilingual"], "is gone: the bundle that ships reads these languages"),
        (["similar", "brew", "--bundle", "tiny"], "leave --bundle and SIMILARITY_BUNDLE out: the index has its own"),
        (["similar", "-t", "beer", "--bundle", "tiny"], "leave --bundle and SIMILARITY_BUNDLE out: the index has its"),
        (["similar", "brew, hops"], "if these are several companies, give them one by one, or paste them"),
    ],
)
def test_a_dead_end_says_the_next_step(filled: Shell, arguments: list[str], message: str) -> None:
    if not (filled.folder / "tiny").exists():
        write_tiny_bundle(filled.folder / "tiny")
    assert message in filled(*arguments, fails=True)


def test_the_version_is_printed(filled: Shell) -> None:
    assert filled("--version").startswith("similarity 0.")


def test_export_writes_every_companys_neighbours(filled: Shell) -> None:
    assert "10 pairs of 5 companies" in filled("export", "n.parquet", "-k", "2")
    assert "5 companies written to all.jsonl" in filled("export", "--companies", "all.jsonl")
    assert "5 unchanged" in filled("ingest", "all.jsonl")
    assert "--part is for neighbours" in filled("export", "--companies", "all.jsonl", "--part", "1/2", fails=True)
    assert "name it all.jsonl" in filled("export", "--companies", "all.csv", fails=True)
    assert "name it all.jsonl" in filled("export", "--companies", "all.jsonl.gz", fails=True)
    assert "pairs of part 2/3 of 5 companies" in filled("export", "n-2.parquet", "--part", "2/3")
    assert pq.read_table(filled.folder / "n.parquet").num_rows == 10


def test_an_export_says_how_to_declare_its_types_again(filled: Shell) -> None:
    row = {"id": "t", "name": "T", "description": "Makes iron anvils and hammers.", "staff": 5}
    (filled.folder / "typed.jsonl").write_text(json.dumps(row))
    options = ("--attribute", "staff:number", "--size", "staff")
    filled("ingest", "typed.jsonl", "--index", "typed.db", *options)
    said = filled("export", "--companies", "again.jsonl", "--index", "typed.db")
    assert "to load it elsewhere, add --attribute staff:number --size staff" in said
    assert "1 unchanged" in filled("ingest", "again.jsonl", "--index", "typed.db", *options)


def test_a_backup_is_an_index(filled: Shell) -> None:
    filled("backup", "copy.db")
    assert "replace it with --overwrite" in filled("backup", "copy.db", fails=True)
    filled("backup", "copy.db", "--overwrite")
    assert "5 companies" in filled("info", "--index", "copy.db")


def test_erasing_an_id_that_is_not_stored_says_so(filled: Shell) -> None:
    filled("backup", "erased.db", "--overwrite")
    place = ("--index", "erased.db")
    said = filled("erase", "Brew Ltd.", "--dry-run", *place)
    assert said == "no company with the id 'Brew Ltd.' is stored (ids are case-sensitive); did you mean brew?\n"
    first, second, *_ = filled("erase", "nosuch", *place).splitlines()
    assert first == "no company with the id 'nosuch' is stored (ids are case-sensitive)"
    assert second.startswith("Verdicts, notes and lists are searched for it.")
    assert "brew is in" in filled("erase", "brew", "--dry-run", *place)


def test_info_says_what_runs_the_bundle_of_a_runtime_that_was_asked_for(shell: Shell) -> None:
    write_tiny_bundle(shell.folder / "tiny")
    shell("ingest", shell.write("companies.csv", COMPANIES), "--bundle", "tiny")
    assert "runtime" not in shell("info")
    assert "runtime cuda: runs on onnxruntime" in shell("info", SIMILARITY_RUNTIME="cuda")


def test_the_model_and_its_folder_are_shown_without_what_no_terminal_takes(shell: Shell) -> None:
    write_tiny_bundle(shell.folder / "tiny")
    manifest = shell.folder / "tiny" / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"base_model": "half \ud800 \x1b[2J"}))
    shell("ingest", shell.write("companies.csv", COMPANIES), "--bundle", "tiny")
    assert "bundle      half \ufffd \ufffd[2J, 4 dimensions, tiny\n" in shell("info", "--bundle", "tiny")


def test_the_check_says_what_a_missing_bundle_costs(shell: Shell) -> None:
    with closing(SqliteIndex(shell.folder / "similarity.db")) as index:
        add_live(index, "first")
        index.create_generation(make_generation("second", encoder_id="encoder-2"))
    cost = "without it, free text is not answered"
    assert shell("check").endswith(
        f"  there is no bundle of encoder encoder-1: {cost}, and writes are refused\n"
        f"  there is no bundle of encoder encoder-2: {cost}\n"
    )


def test_the_check_finds_damage_and_says_so_in_its_exit_status(shell: Shell) -> None:
    shell("ingest", shell.write("companies.csv", COMPANIES))
    assert "Lucene has its own checksums" in shell("check", "--index", "https://localhost:9/companies", fails=True)
    SqliteWorkspace(shell.folder / "similarity.db.workspace").close()
    assert shell("check") == (
        "index similarity.db: no damage found\nworkspace similarity.db.workspace: no damage found\n"
        "models similarity.db.bundles: no damage found\n"
    )
    [stored] = (shell.folder / "similarity.db.bundles").iterdir()
    tiny = write_tiny_bundle(shell.folder / "tiny").folder
    stored.rename(shell.folder / "kept")
    tiny.rename(stored)
    done = shell.run("check")
    assert (done.returncode, "models similarity.db.bundles: damaged\n" in done.stdout) == (1, True)
    assert f"not of {stored.name}" in done.stdout
    with closing(connect(shell.folder / "similarity.db")) as connection:
        connection.execute("UPDATE companies SET description = 'x' WHERE name = 'Keg Inc.'")
    done = shell.run("check")
    assert done.returncode == 1
    assert "index similarity.db: damaged\n" in done.stdout
    assert "  the profile of company 'keg' (document 3) differs from its checksum\n" in done.stdout
    assert done.stderr.startswith("similarity: restore a backup")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["similar", "x"], "there is no index similarity.db yet; create one with: similarity ingest FILE"),
        (["similar"], "give either a company or --text"),
        (["similar", "x", "--filter", "staff>=5"], "unknown filter field 'staff'; use country"),
        (["ingest", "missing.csv"], "there is no file missing.csv"),
        (["ingest", "note.doc"], "is none of .csv"),
        (
            ["ingest", "other.csv"],
            "there is no column 'id' or 'name' or 'description'; give their names with --column id=COLUMN",
        ),
        (["ingest", "other.csv", "-c", "id"], "must read FIELD=COLUMN"),
        (["ingest", "good.csv", "--bundle", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_get_one_clear_line(shell: Shell, arguments: list[str], message: str) -> None:
    (shell.folder / "note.doc").write_text("x")
    shell.write("other.csv", [("1", "2")], header="a,b")
    shell.write("good.csv", COMPANIES)
    text = shell(*arguments, fails=True)
    assert message in text
    assert len(text.splitlines()) == 1


def test_a_folder_that_is_not_there_is_told_before_the_load(shell: Shell) -> None:
    file = shell.write("companies.csv", COMPANIES)
    told = shell("ingest", file, "--rejects", "nowhere/rejects.jsonl", fails=True)
    assert "rejected rows cannot be written to nowhere/rejects.jsonl" in told


def test_an_export_into_a_folder_that_is_not_there_is_one_line(filled: Shell) -> None:
    assert "the folder nowhere does not exist; create it" in filled("export", "nowhere/out.parquet", fails=True)
    for name in ("out.csv", "out"):
        assert "name it out.parquet" in filled("export", name, fails=True)


def test_what_was_left_out_of_a_load_is_told_by_field(shell: Shell) -> None:
    rows = [("a", "A Ltd.", "Makes anvils.", "http://", "", "many"), ("b", "B", "B makes bells.", "", "", "12,500")]
    rows += [(f"c{number}", "C", "C makes cups.", "", "", "12,5") for number in range(3)]
    rows += [("d", "D", "D makes doors.", "", "", "33.963"), ("e", "E", "E makes eggs.", "", "", "1.234.567")]
    file = shell.write("companies.csv", rows, header=f"{HEADER},Staff")
    told = shell("ingest", file, "--attribute", "employees:number=staff")
    assert (
        "5 invalid values were ignored in accepted companies: attributes.employees 4, domain 1\n"
        "1 value was kept, but may mean something else: attributes.employees 1; see "
        "companies.csv.warnings.jsonl. The first are:\n"
        "  row 1 (a), column website: domain: 'http://' contains no host name such as 'example.com'; left empty\n"
        "  row 1 (a), column Staff: attributes.employees: 'many' is not a number like 12500, 12,500 or 12.5; ignored\n"
        "  row 3 (c0), column Staff: attributes.employees: '12,5' is not a number like 12500, 12,500 or 12.5 "
        "(write 12.5 if the comma is a decimal sign); ignored\n"
        "warning: attributes.employees has numbers with a decimal comma, such as '12,5'; "
    ) in told
    warnings = (shell.folder / "companies.csv.warnings.jsonl").read_text().splitlines()
    assert json.loads(warnings[-1]) | {"reason": ""} == {"row": 6, "id": "d", "column": "Staff", "reason": ""}
    assert "'33.963' is read as 33.963; write 33963 if a thousand is meant" in warnings[-1]
    assert not (shell.folder / "companies.csv.rejects.jsonl").exists()


def test_a_column_with_decimal_commas_and_ids_like_null_are_warned_of(shell: Shell) -> None:
    rows = [("a", "A Ltd.", "Makes anvils.", "", "", "94.785,64"), ("null", "B", "Makes bells.", "", "", "42.455")]
    told = shell("ingest", shell.write("c.csv", rows, header=f"{HEADER},Staff"), "--attribute", "staff:number")
    assert "2 values were kept, but may mean something else: id 1, attributes.staff 1" in told
    assert "attributes.staff has numbers with a decimal comma, such as '94.785,64'; values like 1.200 are" in told


def test_thousands_in_a_column_with_decimal_commas_are_warned_of(shell: Shell) -> None:
    rows = [(*row, share) for row, share in zip(COMPANIES, ("1,234", "2,5", "99,999"), strict=False)]
    told = shell("ingest", shell.write("c.csv", rows, header=f"{HEADER},Share"), "--attribute", "share:number")
    assert "attributes.share has numbers with a decimal comma, such as '2,5'; values like 1.200" in told
    assert "values like 1,234 as 1234 (here 2), and values like 12,5 are ignored" in told
    told = shell("ingest", shell.write("c.csv", rows[:1], header=f"{HEADER},Share"))
    assert "decimal comma" not in told


def test_a_declared_type_that_stays_is_said(shell: Shell) -> None:
    file = shell.write("c.csv", [(*row, "01001") for row in COMPANIES[:1]], header=f"{HEADER},Code")
    assert "keeps its type" not in shell("ingest", file, "-a", "code:number")
    told = shell("ingest", file, "-a", "code")
    assert "the attribute 'code' keeps its type number, which an earlier load declared; to withdraw it" in told
    assert "load with --attribute code:text\n" in told


def test_a_wrong_type_can_be_withdrawn(shell: Shell) -> None:
    file = shell.write("c.csv", [(*row, "01001", "7") for row in COMPANIES], header=f"{HEADER},Code,Staff")
    shell("ingest", file, "-a", "code:number", "-a", "staff:number", "--size", "code")
    told = shell("ingest", file, "-a", "code:text", fails=True)
    assert "'code' is the size of a company, so its type cannot be withdrawn; name another size with it" in told
    told = shell("ingest", file, "-a", "code:text", "-a", "staff:number", "--size", "staff")
    assert "warning: the type number of the attribute 'code' is withdrawn, for all companies of the index" in told
    assert "attribute   code" not in shell("info")
    assert "staff:number; size staff" in shell("audit", "--action", "declare").splitlines()[-1]
    assert "attributes.code <- Code" in shell("ingest", file)
    assert len(json.loads(shell("similar", "brew", "-f", "json", "--filter", "attributes.code=01001"))) == 4


def test_a_column_that_is_no_name_of_an_attribute_is_named_behind_one(shell: Shell) -> None:
    file = shell.write("c.csv", [(*row, "7") for row in COMPANIES], header=f"{HEADER},Market cap")
    told = shell("ingest", file, "-a", "Market cap", fails=True)
    assert "'Market cap' is not an attribute name of letters, digits and '_'; choose one" in told
    assert "--attribute 'Market_cap=Market cap'" in told
    assert "'NAME:number=2020'" in shell("ingest", file, "-a", "2020:number", fails=True)
    shell("ingest", file, "-a", "Market_cap=Market cap")


def test_a_reload_keeps_attributes_and_says_which_values_it_removes(shell: Shell) -> None:
    header = f"{HEADER},Employees,sector,staff"
    file = shell.write("c.csv", [(*row, "10", "drinks", "7") for row in COMPANIES], header=header)
    shell("ingest", file, "-a", "employees:number", "-a", "sector", "-a", "team=staff", "-c", "domain=website")
    told = shell("ingest", shell.write("d.csv", [(*row, "10", "drinks", "7") for row in COMPANIES[:2]], header=header))
    assert "attributes.employees <- Employees, attributes.sector; ignored: staff\n" in told
    assert "because the load has no column for them: attributes.team from 2. To have them again" in told
    assert len(json.loads(shell("similar", "brew", "-f", "json", "--filter", "attributes.employees>=10"))) == 4
    told = shell("ingest", shell.write("e.csv", [row[:3] for row in COMPANIES[:1]], header="id,name,description"))
    assert "domain from 1, country from 1, attributes.employees from 1, attributes.sector from 1." in told


def test_an_unknown_setting_in_the_environment_is_a_mistake(shell: Shell) -> None:
    assert "SIMILARITY_INDX is not a setting" in shell("info", fails=True, SIMILARITY_INDX="x.db")


def test_a_file_that_is_no_index_is_not_touched(shell: Shell) -> None:
    (shell.folder / "similarity.db").write_text("my diary" * 1000)
    assert "not an SQLite database" in shell("info", fails=True)
    assert (shell.folder / "similarity.db").read_text().startswith("my diary")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1),
        (SimilarityError("wrong"), 1),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), 1),
    ],
)
def test_an_error_ends_the_command_with_a_status(
    error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer()

    @app.command()
    def command() -> None:
        raise error

    monkeypatch.setattr("similarity.cli.main.app", app)
    monkeypatch.setattr(sys, "argv", ["similarity"])
    for stream in ("stdout", "stderr"):  # Typer replaces them after a broken pipe
        monkeypatch.setattr(sys, stream, io.StringIO())
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == status


def test_only_a_missing_module_means_that_the_service_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: str) -> None:
        raise ImportError("cannot import name 'app'")

    monkeypatch.setattr("similarity.cli.main.import_module", fails)
    with pytest.raises(ImportError, match="cannot import name"):
        serve()
