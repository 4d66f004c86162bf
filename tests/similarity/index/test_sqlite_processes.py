import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import NoLiveGeneration
from similarity.index.sqlite import SqliteIndex
from tests.contract.steps import add_live, found
from tests.factories import unit_vector
from tests.similarity.index.inspection import damage

ROOT = Path(__file__).parents[3]

WRITE_AND_PROMOTE = """
import sys
from similarity.index.sqlite import SqliteIndex
from tests.contract.steps import add_live
from tests.factories import make_embedded, unit_vector

index = SqliteIndex(sys.argv[1])
for line in sys.stdin:
    name = line.strip()
    index.upsert(add_live(index, name), [make_embedded(name, vector=unit_vector(1))])
    print("promoted", flush=True)
index.close()
"""

WRITE_MANY = """
import sys
from similarity.index.sqlite import SqliteIndex
from tests.factories import make_embedded

index = SqliteIndex(sys.argv[1])
for batch in range(10):
    index.upsert("first", [make_embedded(f"{sys.argv[2]}-{batch}-{number}") for number in range(20)])
    index.upsert("first", [make_embedded("shared", version=batch, name=sys.argv[2])])
index.close()
"""

OPEN = """
import sys
from similarity.index.sqlite import SqliteIndex

SqliteIndex(sys.argv[1]).close()
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


def seconds_until_live(index: SqliteIndex, name: str) -> float:
    started = time.monotonic()
    while index.live().name != name:
        assert time.monotonic() - started < 10
        time.sleep(0.005)
    return time.monotonic() - started


def test_another_process_sees_a_promote_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(SqliteIndex(path)) as reader, start(WRITE_AND_PROMOTE, str(path)) as writer:
        assert writer.stdin
        assert writer.stdout
        with pytest.raises(NoLiveGeneration):
            reader.live()
        for name in ("first", "second", "third"):
            writer.stdin.write(f"{name}\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "promoted\n"
            assert seconds_until_live(reader, name) < 1
            assert found(reader.similar(reader.live().name, unit_vector(1), k=1)) == [name]
        finish(writer)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(SqliteIndex(path)) as index:
        add_live(index, "first")
        writers = [start(WRITE_MANY, str(path), name) for name in ("x", "y", "z")]
        for writer in writers:
            finish(writer)
        assert index.stats("first").companies == 3 * 10 * 20 + 1
        assert len(found(index.similar("first", unit_vector(1), k=1000))) == 601
        assert index.get("first", ["shared"])["shared"].version == 9
    assert damage(path) == []


def test_processes_may_make_the_file_at_the_same_moment(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    for opener in [start(OPEN, str(path)) for _ in range(4)]:
        finish(opener)
    assert damage(path) == []
