"""The stream command from its options to the index, on the in-process runner."""

import gzip
import json
from argparse import ArgumentParser
from pathlib import Path
from urllib.request import urlopen

import pytest
from fastapi.testclient import TestClient

from pipelines.metrics import worker_metrics
from pipelines.options import StreamOptions, add_stream_options, beam_options, stream_options
from pipelines.stream import main
from pipelines.watch import Progress, StallWatch
from services.search.app import create_app
from similarity.errors import InvalidInput
from similarity.index.attributes import AttributeSchema, parse_type
from similarity.index.protocol import GenerationState
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.dead_letters import DeadLetter
from similarity.ingest.records import Columns
from similarity.kafka import KeyedProducer
from tests.pipelines.test_kafka_source import Topic
from tests.servers.kafka import KafkaBroker
from tests.servers.ports import free_ports

pytestmark = pytest.mark.pipelines

KINDS = ("anvils", "boats", "cars")


@pytest.fixture
def companies(tmp_path: Path) -> Path:
    """Two companies, and a line that is none."""
    path = tmp_path / "companies.jsonl.gz"
    lines = [
        {"ticker": name, "name": f"Firm {len(name)}", "description": f"Makes many {name} here.", "size": 12}
        for name in ("boats", "cars")
    ]
    path.write_bytes(gzip.compress("\n".join([json.dumps(lines[0]), "{", json.dumps(lines[1])]).encode()))
    return path


def command(companies: Path, tmp_path: Path) -> list[str]:
    fixed = f"--files {companies} --index {tmp_path}/index.db --dead-letters {tmp_path}/dead --threads 1"
    return [*fixed.split(), "--column", "id=ticker", "--attribute", "employees=size"]


def test_files_become_companies_and_dead_letters(
    index: SqliteIndex, companies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command(companies, tmp_path), "--attribute", "staff:ordinal=few,many=size"])
    assert ended.value.code == 1
    stored = index.get(index.live().name, ["boats", "cars"])
    assert {document.company.attributes["employees"] for document in stored.values()} == {12}
    audit = [json.loads(line) for line in Path(f"{index.path}.audit.jsonl").read_text().splitlines()]
    assert [entry["subject"] for entry in audit if entry["action"] == "declare"] == ["staff:ordinal=few,many"] * 2
    told = capsys.readouterr().err
    assert "3 messages: 2 applied, 1 dead; 2 texts embedded; 2 values ignored or ambiguous\n" in told
    why = f"why they are dead: python -m pipelines.replay --dead-letters {tmp_path}/dead --dry-run"
    assert f"{why} --column id=ticker --attribute staff=size --attribute employees=size\n" in told
    [file] = (tmp_path / "dead").glob("*.jsonl")
    [line] = file.read_text().splitlines()
    assert DeadLetter.from_line(line).message.value == b"{\n"


def test_columns_of_files_are_found_as_by_a_load(
    index: SqliteIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(
        "ID,Company Name,Description,Country,Phone\nboats,B,Makes many boats here.,Chile,1\n"
    )
    (tmp_path / "b.jsonl").write_text('{"ID": "cars", "Company Name": "C", "Description": "Makes many cars here."}\n')
    fixed = f"--index {tmp_path}/index.db --dead-letters {tmp_path}/dead --threads 1".split()
    main(["--files", str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl"), *fixed])
    stored = index.get(index.live().name, ["boats", "cars"])
    assert (stored["boats"].company.country, stored["cars"].company.name) == ("Chile", "C")
    told = capsys.readouterr().err
    assert (
        "columns: id <- ID, name <- Company Name, description <- Description, country <- Country; ignored: Phone"
        in told
    )
    (tmp_path / "c.csv").write_text("id,name,description\nbikes,D,Makes many bikes here.\n")
    main(["--files", str(tmp_path / "c.csv"), *fixed])
    assert "c.csv has no column for country; a company is written whole" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"c\.csv: .* have different columns for id: 'id' and 'ID'; stream them one"):
        main(["--files", str(tmp_path / "*.csv"), *fixed])
    (tmp_path / "d.jsonl").write_text("")
    main(["--files", str(tmp_path / "d.jsonl"), *fixed])
    with pytest.raises(SystemExit, match=r"pipelines have no dry run"):
        main(["--files", str(tmp_path / "c.csv"), *fixed, "--dry-run", "--runner=PortableRunner"])
    with pytest.raises(SystemExit, match=r"c\.csv: there is no column 'Nope' for country; the file has the columns"):
        main(["--files", str(tmp_path / "c.csv"), *fixed, "--column", "country=Nope"])
    many = "".join(f"b{number},B,Makes many boats here.,x.com\n" for number in range(1200))
    (tmp_path / "e.csv").write_text(f"id,name,description,Website\n{many}")
    (tmp_path / "f.csv").write_text("id,name,description,website\nbikes,D,Makes many bikes here.,y.com\n")
    with pytest.raises(SystemExit, match=r"e\.csv: there is no column 'Nope' for country"):
        main(["--files", str(tmp_path / "e.csv"), *fixed, "--column", "country=Nope"])
    with pytest.raises(SystemExit, match=r"f\.csv: .* different columns for domain: 'website' and 'Website'"):
        main(["--files", str(tmp_path / "e.csv"), "--files", str(tmp_path / "f.csv"), *fixed])


def test_files_are_read_with_the_attributes_of_the_index(index: SqliteIndex, tmp_path: Path) -> None:
    """A company is written whole, so a column that is not read takes the attribute from each company."""
    index.declare(AttributeSchema({"employees": parse_type("employees", "number")}))
    (tmp_path / "some.csv").write_text(
        'id,name,description,employees,sector\nboats,B,Makes many boats here.,"1,200",A\n'
    )
    first = ["--files", str(tmp_path / "some.csv"), *f"--index {tmp_path}/index.db --threads 1".split()]
    main([*first, "--attribute", "sector"])
    main(first)
    attributes = index.get(index.live().name, ["boats"])["boats"].company.attributes
    assert attributes == {"employees": 1200, "sector": "A"}


def test_a_new_index_gets_its_first_generation_and_goes_live(companies: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main([*command(companies, tmp_path), "--index", str(tmp_path / "new.db")])
    index = SqliteIndex(tmp_path / "new.db")
    [generation] = index.generations()
    assert generation.state is GenerationState.LIVE
    assert index.stats(generation.name).companies == 2
    index.close()


def test_what_is_streamed_is_an_answer_of_the_service(index: SqliteIndex, tmp_path: Path) -> None:
    records = [
        {"id": f"{kind}-{n}", "name": f"Firm {n}", "description": f"{kind} {kind} {kind}"}
        for kind in KINDS
        for n in (1, 2)
    ]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, records)))
    main(f"--files {tmp_path}/new.jsonl --index {index.path} --dead-letters {tmp_path}/dead --threads 1".split())
    with TestClient(create_app(index=index, encoder=None)) as client:
        answer = client.get("/similar/boats-1").json()
    assert answer["hits"][0]["company"]["id"] == "boats-2"


@pytest.mark.integration
def test_a_job_of_more_bundles_than_the_runner_can_count_says_how_it_went(
    kafka: KafkaBroker,
    index: SqliteIndex,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, many = Topic(kafka.servers, partitions=1), 1_050
    monkeypatch.setenv("SIMILARITY_KAFKA_SERVERS", kafka.servers)
    with KeyedProducer(topic.settings) as producer:
        for number in range(many):
            record = {"name": f"Firm {number}", "description": KINDS[number % 3]}
            producer.send(topic.name, key=f"c{number}".encode(), value=json.dumps(record).encode())
    fixed = f"--kafka-topic {topic.name} --once --index {index.path} --dead-letters {tmp_path}/dead --threads 1"
    before = worker_metrics().counts().get("messages_applied", 0)
    main([*fixed.split(), "--bundle-messages", "1"])
    assert index.stats(index.live().name).companies == many
    assert worker_metrics().counts()["messages_applied"] - before == many
    assert "applied" in capsys.readouterr().err


def test_each_worker_serves_what_it_counted(companies: Path, tmp_path: Path) -> None:
    [port] = free_ports(1)
    with pytest.raises(SystemExit):
        main([*command(companies, tmp_path), "--index", str(tmp_path / "new.db"), "--metrics-port", str(port)])
    served = worker_metrics().port
    with urlopen(f"http://127.0.0.1:{served}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    counted = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
    assert counted['similarity_messages_total{end="applied"}'] >= 2
    assert counted['similarity_messages_total{end="dead"}'] >= 1
    assert counted["similarity_embedded_texts_total"] >= 1


def given(*arguments: str) -> StreamOptions:

    parser = ArgumentParser()
    add_stream_options(parser)
    return stream_options(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name one source"),
        (["--files", "in", "--kafka-topic", "companies"], "name one source"),
        (["--files", "in", "--dead-letters", "dead", "--dead-letter-topic", "dead"], "to a folder or to a topic"),
        (["--files", "in", "--column", "id"], "FIELD=COLUMN"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: list[str], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        given(*arguments)


def test_what_is_not_said_has_its_default() -> None:
    options = given("--kafka-topic", "companies")
    assert (options.dead_letters, options.columns) == ("dead-letters", Columns())


def test_a_bounded_job_runs_here_and_a_stream_on_prism_unless_a_runner_is_named() -> None:
    chosen = [beam_options([], bounded=bounded).get_all_options()["runner"] for bounded in (True, False)]
    assert chosen == ["FnApiRunner", "PrismRunner"]
    assert beam_options(["--runner=PortableRunner"], bounded=False).get_all_options()["runner"] == "PortableRunner"


def test_only_a_backlog_that_stands_still_is_a_stall() -> None:
    watch = StallWatch(60)
    seen = [
        watch.stalled(Progress(acknowledged=acknowledged, backlog=backlog), now=now)
        for now, acknowledged, backlog in [(0, 0, 5), (50, 0, 5), (59, 1, 4), (100, 1, 4), (118, 1, 4), (119, 1, 4)]
    ]
    assert seen == [False, False, False, False, False, True]
    assert not any(watch.stalled(Progress(acknowledged=5, backlog=0), now=now) for now in (200, 400, 600))
