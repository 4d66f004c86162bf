"""A wrong or misspelt argument is refused before anything runs."""

from argparse import ArgumentParser
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines import reembed, replay, stream
from pipelines.arguments import parse
from pipelines.options import add_stream_options, beam_options
from similarity.errors import InvalidInput

pytestmark = pytest.mark.pipelines

# Of Flink's own (Beam's Java code): what Beam's Python parser does not know, so neither may this command refuse it.
FLINK_OPTIONS = """allow_non_restored_state auto_balance_write_files_sharding_enabled auto_watermark_interval
    checkpoint_timeout_millis checkpointing_interval checkpointing_mode disable_metrics execution_mode_for_batch
    execution_retry_delay externalized_checkpoints_enabled fail_on_checkpointing_errors fasterCopy
    file_input_split_max_size_m_b finish_bundle_before_checkpointing flink_conf_dir force_unaligned_checkpoint_enabled
    latency_tracking_interval max_bundle_size max_bundle_time_mills max_parallelism
    min_pause_between_checkpoints number_of_concurrent_checkpoints number_of_execution_retries object_reuse parallelism
    re_iterable_group_by_key_result report_checkpoint_duration retain_externalized_checkpoints_on_cancellation
    state_backend state_backend_storage_path tolerable_checkpoint_failure_number unaligned_checkpoint_enabled""".split()


def parser() -> ArgumentParser:
    made = ArgumentParser()
    add_stream_options(made)
    return made


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("--threads=0", "not a whole number of 1 or more"),
        ("--threads=-3", "not a whole number of 1 or more"),
        ("--batch-messages=1.5", "not a whole number of 1 or more"),
        ("--bundle-messages=many", "not a whole number of 1 or more"),
        ("--bundle-seconds=nan", "not a number above 0"),
        ("--patience=-1", "not a number above 0"),
        ("--patience=inf", "not a number above 0"),
        ("--stalled-after=0", "not a number above 0"),
        ("--keep-dead-letters=nan", "not a number of days above 0 and up to 36,500"),
        ("--keep-dead-letters=1e300", "not a number of days above 0 and up to 36,500"),
        ("--metrics-port=99999", "not a port from 1 to 65535"),
        ("--dead-leters=dead", "there is no option --dead-leters; did you mean --dead-letters?"),
        ("--kafka-gruop=mine", "there is no option --kafka-gruop; did you mean --kafka-group?"),
    ],
)
def test_a_wrong_argument_of_a_stream_is_named(argument: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        stream.main(["--files", "companies.jsonl", argument])
    assert refused.value.code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("--max-rate=0", "not a number above 0"),
        ("--range-documents=0", "not a whole number of 1 or more"),
        ("--wait=-1", "not a number of 0 or more"),
        ("--judgd=x", "did you mean --judged?"),
    ],
)
def test_so_is_one_of_a_reembed(argument: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        reembed.main(["--bundle", "new", "--without-gate", argument])
    assert refused.value.code == 2
    assert problem in capsys.readouterr().err


def test_so_is_one_of_a_replay(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        replay.main(["--dead-leters=dead"])
    assert refused.value.code == 2
    assert "did you mean --dead-letters?" in capsys.readouterr().err


def test_what_no_parser_knows_is_refused_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="refused: neither this command nor Beam has an option --hurry"):
        stream.main(["--files", "companies.jsonl", "--hurry"])
    assert list(tmp_path.iterdir()) == []


def test_a_schedule_with_an_option_that_is_none_does_not_begin() -> None:
    with pytest.raises(SystemExit, match="refused: neither this command nor Beam has an option --hurry"):
        reembed.main(["--models", "models", "--without-gate", "--cron", "0 3 * * sat", "--hurry"])


def test_a_runner_that_is_none_is_named() -> None:
    with pytest.raises(InvalidInput, match="--runner Quick cannot be used: Unexpected pipeline runner: Quick"):
        beam_options(["--runner=Quick"], bounded=True)


def test_options_of_beam_and_of_job_servers_pass() -> None:
    known = [f"--{name}" for name in PipelineOptions([]).get_all_options()]
    flink = [f"--{name}=1" for name in FLINK_OPTIONS]
    _, rest = parse(parser(), ["--files", "x", *known, *flink])
    assert rest == [*known, *flink]
    beam_options(["--runner=FlinkRunner", *flink], bounded=True)
    with pytest.raises(InvalidInput, match="--allow_non_restored_state"):
        beam_options(flink, bounded=True)
