import hashlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity.company import DeletedCompany
from similarity.errors import IndexUnavailable
from similarity.index.filters import FieldFilter
from similarity.index.protocol import GenerationState, GenerationStats
from similarity.index.sqlite import SqliteIndex, schema
from similarity.index.sqlite.migrations import FIRST_VERSION, MIGRATIONS, RANKERS
from tests.contract.steps import add_candidate, add_live, found
from tests.factories import make_embedded, unit_vector
from tests.similarity.index.inspection import connect, damage

SCHEMA_VERSIONS = Path(__file__).with_name("schema_versions.sql").read_text(encoding="utf-8")
SCRIPTS = re.split(r"^-- Version \d+.*", SCHEMA_VERSIONS, flags=re.MULTILINE)[1:]
REGION = ("ALTER TABLE companies ADD COLUMN region TEXT NOT NULL DEFAULT 'unknown'",)


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    """A file as the first release left it."""
    return make_file(tmp_path / "old.db", version=1)


def make_file(path: Path, *, version: int) -> Path:
    """A file as the release with this schema left it."""
    with closing(connect(path)) as connection:
        for script in SCRIPTS[:version]:
            connection.executescript(script)
    return path


def query(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(connect(path)) as connection:
        return connection.execute(statement).fetchall()


def statements(path: Path) -> dict[str, str]:
    rows = query(path, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {str(name): " ".join(re.sub(r"--.*", "", str(sql)).split()) for name, sql in rows}


def test_a_new_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "index.db"
    with closing(SqliteIndex(path)):
        assert query(path, "PRAGMA application_id") == [(schema.APPLICATION_ID,)]
        assert query(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
        assert query(path, "PRAGMA journal_mode") == [("wal",)]


def test_a_published_migration_is_not_edited() -> None:
    """Not even through a constant of live code in its SQL. A new migration changes the slice and the hash."""
    published = re.sub(r"--.*|\s+", " ", "\n".join(sql for migration in MIGRATIONS[:12] for sql in migration))
    digest = hashlib.sha256(re.sub(r" +", " ", published).encode()).hexdigest()
    assert digest[:16] == "2b84bf64d734cfaa"


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
def test_a_published_migration_still_makes_the_published_tables(tmp_path: Path, version: int) -> None:
    new_file = tmp_path / "new.db"
    with closing(connect(new_file)) as connection:
        schema.migrate(connection, MIGRATIONS[:version], path=new_file)
    assert statements(new_file) == statements(make_file(tmp_path / "old.db", version=version))


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
def test_a_file_of_any_release_takes_leases_and_counts_changes_of_its_generations(tmp_path: Path, version: int) -> None:
    path = make_file(tmp_path / "old.db", version=version)
    with closing(SqliteIndex(path)) as index:
        assert index.leases() == []
        lease = index.take_lease("reembed", holder="a", seconds=60)
        before = index.revision()
        index.promote(add_candidate(index, "second"), lease=lease)
        assert index.revision() > before
        assert index.rollback().name == "first"
    assert query(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert damage(path) == []


def test_a_file_of_the_first_release_keeps_its_data(old_file: Path) -> None:
    with closing(SqliteIndex(old_file)) as index:
        assert (index.live().name, index.live().state) == ("first", GenerationState.LIVE)
        assert index.stats("first") == GenerationStats(companies=2, deleted=1, last_version=7, languages={"en": 2})
        acme = make_embedded(
            "acme",
            name="Acme Größe",
            aliases=("ACM",),
            domain="acme.com",
            country="DE",
            tags=("tools",),
            attributes={"listed": True},
        )
        read = index.get("first", ["acme"])["acme"]
        assert (read.company, read.text_hash, read.embedded_at) == (acme.company, acme.text_hash, acme.embedded_at)
        assert found(index.similar("first", acme.vector, k=2)) == ["acme", "bolt"]
        assert index.resolve("first", "acm") == ["acme"]
        assert [company.id for company in index.find("first", "things bolt")] == ["bolt"]
        assert [company.id for company in index.find("first", "größ")] == ["acme"]
        index.upsert("first", [make_embedded("bolt", version=6, name="Nut"), DeletedCompany(id="acme", version=7)])
    assert damage(old_file) == []


def test_an_older_file_is_migrated_with_its_data(old_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations = (*MIGRATIONS, REGION)
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    for _ in range(2):
        with closing(SqliteIndex(old_file)) as index:
            assert index.stats("first").companies == 2
    assert query(old_file, "PRAGMA user_version") == [(len(migrations),)]
    assert query(old_file, "SELECT DISTINCT region FROM companies") == [("unknown",)]


def test_an_older_file_with_a_company_that_cannot_be_read_is_migrated(old_file: Path) -> None:
    with closing(sqlite3.connect(old_file)) as connection, connection:
        deep = f'{{"size": {"[" * 950}{"]" * 950}}}'
        connection.execute("UPDATE companies SET attributes = ? WHERE name LIKE 'Acme%'", (deep,))
    with closing(SqliteIndex(old_file)) as index:
        assert list(index.get("first", ["bolt"])) == ["bolt"]
        with pytest.raises(IndexUnavailable, match="the stored company 'acme' cannot be read"):
            index.get("first", ["acme"])


def test_an_older_file_is_not_opened_unmigrated_while_another_process_writes(old_file: Path) -> None:
    query(old_file, "PRAGMA journal_mode = WAL")
    with closing(sqlite3.connect(old_file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexUnavailable, match="another process has been writing"):
            SqliteIndex(old_file, busy_timeout=0.01)
    assert query(old_file, "PRAGMA user_version") == [(1,)]


@pytest.mark.parametrize("busy", [True, False])
def test_a_current_file_is_asked_once_for_the_right_to_write_and_not_waited_for(tmp_path: Path, *, busy: bool) -> None:
    path = tmp_path / "index.db"
    SqliteIndex(path).close()
    asked: list[str] = []
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        closing(sqlite3.connect(path, isolation_level=None, timeout=3600)) as connection,
    ):
        if busy:
            other.execute("BEGIN IMMEDIATE")
        connection.set_trace_callback(asked.append)
        schema.migrate(connection, MIGRATIONS, path=path)
        connection.set_trace_callback(None)
        assert asked.count("BEGIN IMMEDIATE") == 1
        assert not connection.in_transaction
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (3_600_000,)


BIG = FieldFilter(field="attributes.size", at_least=2**53 + 1)
WRITE_AS_THE_SECOND_RELEASE = """
    DELETE FROM lookups WHERE document = 2;
    INSERT INTO companies
        VALUES (2, 'Bolt', 'Makes things that only bolt makes.', '[]', '', '', '', '[]', '{attributes}')
        ON CONFLICT (document) DO UPDATE SET attributes = excluded.attributes;
    INSERT INTO lookups VALUES (1, 'name', 'bolt', 2), (1, 'attributes.size', '{size}', 2);
"""


def write_as_the_second_release(path: Path, size: float | str) -> None:
    with closing(connect(path)) as connection:
        attributes = json.dumps({"size": size})
        connection.executescript(WRITE_AS_THE_SECOND_RELEASE.format(attributes=attributes, size=size))


@pytest.mark.parametrize(
    ("size", "hits"), [(2**53 + 1, ["bolt"]), (1e300, ["bolt"]), (2**53, []), (-1e300, []), (str(2**60), [])]
)
def test_ranges_know_the_numbers_that_an_older_release_wrote(
    tmp_path: Path, size: float | str, hits: list[str]
) -> None:
    path = make_file(tmp_path / "old.db", version=2)
    write_as_the_second_release(path, size)
    with closing(SqliteIndex(path)) as index:
        assert found(index.similar("first", unit_vector(1), k=3, filters=[BIG])) == hits
        as_text = FieldFilter(field="attributes.size", any_of=(str(size),))
        assert found(index.similar("first", unit_vector(1), k=3, filters=[as_text])) == ["bolt"]
    assert damage(path) == []


@pytest.mark.parametrize("first", [True, False], ids=["added", "changed"])
def test_a_process_of_an_older_release_cannot_write_numbers_that_ranges_would_miss(
    tmp_path: Path, *, first: bool
) -> None:
    path = make_file(tmp_path / "old.db", version=2)
    SqliteIndex(path).close()
    write_as_the_second_release(path, "no number")
    if first:
        query(path, "DELETE FROM companies WHERE document = 2")
    with pytest.raises(sqlite3.IntegrityError, match="older release writes to this index, which was upgraded; stop it"):
        write_as_the_second_release(path, 2**60)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE generations SET sequence = sequence + 1",
        "UPDATE generations SET state = 'previous'",
        "UPDATE generations SET purged = 7",
        "INSERT INTO generations (name, encoder_id, bundle_id, dimension, created_at, state)"
        " VALUES ('second', 'encoder-1', 'bundle-1', 8, 1, 'building')",
        # With a checksum, but without a ranker that it covers.
        "INSERT INTO generations (name, encoder_id, bundle_id, dimension, created_at, state, checksum)"
        " VALUES ('second', 'encoder-1', 'bundle-1', 8, 1, 'building', 0)",
        "INSERT OR IGNORE INTO former_names (id, hash) VALUES ('acme', '1:ab')",
        "INSERT OR REPLACE INTO erasures (id, state, record) VALUES ('acme', 'running', '{}')",
        "INSERT OR REPLACE INTO leases (name, holder, fence, expires_at, acknowledged) VALUES ('x', 'x', 1, 1, 0)",
    ],
)
def test_a_process_of_an_older_release_cannot_write_without_checksums(old_file: Path, statement: str) -> None:
    with closing(sqlite3.connect(old_file, isolation_level=None)) as older:
        assert older.execute("SELECT count(*) FROM generations").fetchone() == (1,)
        SqliteIndex(old_file).close()
        with pytest.raises(sqlite3.IntegrityError, match="older release writes to this index, which was upgraded"):
            older.execute(statement)
    assert damage(old_file) == []


def test_a_process_of_an_older_release_cannot_retire_a_generation_without_remembering_its_bundle(
    tmp_path: Path,
) -> None:
    path = make_file(tmp_path / "old.db", version=11)
    with closing(sqlite3.connect(path, isolation_level=None)) as older, closing(SqliteIndex(path)) as index:
        add_live(index, "second", bundle_id="bundle-2")
        add_candidate(index, "third", bundle_id="bundle-3")
        with pytest.raises(sqlite3.IntegrityError, match="older release writes to this index, which was upgraded"):
            older.execute("DELETE FROM generations WHERE name = 'first'")
        older.execute("DELETE FROM generations WHERE name = 'third'")  # it was never live
        index.retire("first")
        assert index.retired_bundles() == {"bundle-1"}
        assert index.damage() == []


def test_a_damaged_bundle_among_the_retired_ones_is_noticed(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        add_live(index, "second", bundle_id="bundle-2")
        index.retire("first")
        query(index.path, "UPDATE retired_bundles SET bundle_id = 'bundle-3'")
        with pytest.raises(IndexUnavailable, match="restore a backup"):
            index.retired_bundles()
        assert index.damage() == ["the row ('bundle-3',) of retired_bundles differs from its checksum"]


def test_a_migration_does_not_hide_damage_to_the_row_of_a_generation(old_file: Path) -> None:
    """It computes the checksum anew, because the row has another column."""
    before = MIGRATIONS.index(RANKERS)
    with closing(connect(old_file)) as connection:
        schema.migrate(connection, MIGRATIONS[:before], path=old_file)
        connection.execute("DROP TRIGGER generations_changed_with_checksum")
        connection.execute("UPDATE generations SET slope = 7.5")
    with pytest.raises(IndexUnavailable, match="the row of generation 'first' differs from its checksum"):
        SqliteIndex(old_file)
    assert query(old_file, "PRAGMA user_version") == [(before,)]


def test_a_migration_that_fails_leaves_the_file_as_it_was(old_file: Path) -> None:
    before = statements(old_file)
    with closing(sqlite3.connect(old_file, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            schema.migrate(connection, (FIRST_VERSION, (*REGION, "DROP TABLE missing")), path=old_file)
        assert not connection.in_transaction
    assert statements(old_file) == before
    assert query(old_file, "PRAGMA user_version") == [(1,)]


def test_a_file_of_a_newer_release_is_refused_and_left_alone(old_file: Path) -> None:
    query(old_file, "PRAGMA user_version = 99")
    with pytest.raises(IndexUnavailable, match=r"newer release \(schema 99.*upgrade"):
        SqliteIndex(old_file)
    assert query(old_file, "PRAGMA user_version") == [(99,)]


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "photos.db"
    query(path, "CREATE TABLE photos (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(IndexUnavailable, match="another program"):
        SqliteIndex(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes. " * 1000)
    with pytest.raises(IndexUnavailable, match="not an SQLite database; name another file"):
        SqliteIndex(path)
    assert path.read_text().startswith("These are my notes.")


def search(path: Path) -> None:
    with closing(SqliteIndex(path)) as index:
        index.similar("first", unit_vector(1), k=3)


def test_a_damaged_file_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(SqliteIndex(path)) as index:
        index.upsert(add_live(index, "first"), [make_embedded(f"c{number}") for number in range(500)])
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(schema.PAGE_BYTES)
        file.write(b"\xff" * (size - schema.PAGE_BYTES))
    with pytest.raises(IndexUnavailable, match="damaged; restore a backup"):
        search(path)


def test_a_truncated_file_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(SqliteIndex(path)) as index:
        index.upsert(add_live(index, "first"), [make_embedded(f"c{number}") for number in range(500)])
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(IndexUnavailable, match="damaged; restore a backup"):
        search(path)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailable, match="cannot be opened"):
        SqliteIndex(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexUnavailable, match="cannot be made"):
        SqliteIndex(tmp_path / "file" / "index.db")


@pytest.fixture
def guest_folder() -> Iterator[Path]:
    """A folder of ours that a user without rights can enter; the test runs as that user where it can."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        if os.getuid() == 0:
            os.seteuid(0)
        folder.chmod(0o755)


def become_guest() -> None:
    if os.getuid() == 0:
        os.seteuid(65534)


@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
def test_a_file_that_cannot_be_written_is_refused_at_opening(guest_folder: Path, folder_mode: int) -> None:
    path = guest_folder / "index.db"
    SqliteIndex(path).close()
    path.chmod(0o444)
    guest_folder.chmod(folder_mode)
    become_guest()
    with pytest.raises(IndexUnavailable, match=r"write access|this user can write"):
        SqliteIndex(path)
