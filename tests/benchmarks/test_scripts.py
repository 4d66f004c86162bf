"""Every benchmark script runs from its first line to its last, at a size that says nothing about speed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.connection import Connection

ROOT = Path(__file__).parents[2]
SAMPLE = "data/sample/companies.jsonl"
INDEX = "INDEX"
"""Stands for the path of an index of the sample companies."""
LOCAL = {
    "capacity": "--companies 1000",
    "encoder": "--texts 8 --rounds 1 --peers none",
    "index": "--sizes 200 --queries 5",
    "judges": "",
    "matching": f"--companies {SAMPLE} --rows 10",
    "reason_phrases": "--part dev",
    "resolving": f"--companies {SAMPLE}",
    "service": "--rounds 1 --requests 3 --seconds 0.2",
}
PROCESSES = {
    "languages": f"--index {INDEX}",
    "ranking": f"--index {INDEX} --judged data/sample/judged.tsv --anchors 2",
    "export": f"--index {INDEX} --sizes 3000 --companies 20",
    "reasons": f"--index {INDEX} --companies 2",
    "service_overload": f"--index {INDEX} --rounds 1 --seconds 0.5",
    "service_soak": f"--index {INDEX} --minutes 0.1 --warm-up 0.01 --rate 5",
}
ELASTICSEARCH = {
    "elasticsearch_swaps": f"--index {INDEX} --limit 50 --replicas 1 --swaps 2 --pause 3 --capacity-seconds 4",
}
# Merging what was replaced waits a minute for Elasticsearch (similarity.index.elastic.compaction).
SLOW = {
    "elasticsearch": f"--index {INDEX} --limit 200 --questions 5 --vectors int8_hnsw --warm-up 5 --client-seconds 0.1"
}
BEAM = {"pipelines": f"--companies {SAMPLE} --count 10 --threads 1"}
STREAMS = {"pipelines_latency": "--count 1 --rate 20"}
TORCH = {"training": f"--companies {SAMPLE} --batch-pairs 4 --steps 2 --warm-up 1 --rounds 1 --peers none"}

Run = Callable[[str, str], str]


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Run:
    """Runs a script to its end and returns what it printed."""

    def run(script: str, options: str) -> str:
        if INDEX in options:
            options = options.replace(INDEX, str(request.getfixturevalue("sample_index")))
        finished = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{script}", *options.split()],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        assert "Traceback" not in finished.stderr, finished.stderr  # of a thread
        return finished.stdout

    return run


@pytest.fixture(scope="module")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("benchmarks") / "sample.db"
    command = [sys.executable, "-m", "similarity", "ingest", SAMPLE, "--index", str(index)]
    subprocess.run([*command, "--attribute", "sector"], cwd=ROOT, capture_output=True, check=True)
    return index


def test_every_script_is_run_here() -> None:
    scripts = {
        file.stem for file in (ROOT / "benchmarks").glob("*.py") if 'if __name__ == "__main__"' in file.read_text()
    }
    assert scripts == {*LOCAL, *PROCESSES, *ELASTICSEARCH, *SLOW, *BEAM, *STREAMS, *TORCH}


@pytest.mark.parametrize(("script", "options"), LOCAL.items())
def test_a_script_of_one_process_runs(run: Run, script: str, options: str) -> None:
    assert run(script, options)


@pytest.mark.integration
@pytest.mark.parametrize(("script", "options"), PROCESSES.items())
def test_a_script_that_measures_the_shipped_model_runs(run: Run, script: str, options: str) -> None:
    assert run(script, options)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("script", "options"),
    [*ELASTICSEARCH.items(), *(pytest.param(*each, marks=pytest.mark.nightly) for each in SLOW.items())],
)
def test_a_script_on_elasticsearch_runs(
    run: Run, elasticsearch_connection: Connection, tmp_path: Path, script: str, options: str
) -> None:
    assert run(script, f"{options} --url {elasticsearch_connection.url} --work {tmp_path}")


@pytest.mark.pipelines
@pytest.mark.parametrize(("script", "options"), BEAM.items())
def test_a_script_on_beam_runs(run: Run, script: str, options: str) -> None:
    assert run(script, options)


@pytest.mark.nightly
@pytest.mark.integration
@pytest.mark.usefixtures("startable_elasticsearch", "startable_kafka", "startable_prism", "startable_flink")
@pytest.mark.parametrize(("script", "options"), STREAMS.items())
def test_a_script_that_streams_from_kafka_runs(run: Run, script: str, options: str) -> None:
    assert run(script, options)


@pytest.mark.training
@pytest.mark.parametrize(("script", "options"), TORCH.items())
def test_a_script_that_trains_runs(run: Run, script: str, options: str) -> None:
    assert run(script, options)
