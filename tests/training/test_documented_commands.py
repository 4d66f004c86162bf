"""Every training command in the documents is understood; here it stops at a missing file."""

import importlib
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

pytestmark = pytest.mark.training

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def documented() -> list[str]:
    """The commands in the documents' blocks, each in one line without its comment."""
    blocks = [
        block.replace("\\\n", " ")
        for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
        for block in FENCE.findall(document.read_text(encoding="utf-8"))
    ]
    lines = [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in dict.fromkeys(lines) if re.match(r"(python|torchrun\b.*) -m training\.", line)]


def test_the_documents_show_commands() -> None:
    modules = {re.findall(r"-m (training\.[\w.]+)", command)[0] for command in documented()}
    product = {"training.train", "training.distil", "training.export"}
    assert product | {"training.papers.curve", "training.papers.nli", "training.papers.stsb"} <= modules
    assert any(command.startswith("torchrun") for command in documented())


@pytest.mark.parametrize("command", documented())
def test_a_documented_command_is_understood(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    module, *arguments = shlex.split(command[command.index("training.") :])
    package = importlib.util.find_spec(module)
    if package is not None and package.submodule_search_locations:
        module = f"{module}.__main__"
    with pytest.raises(SystemExit) as stopped:
        importlib.import_module(module).main(arguments)
    assert str(stopped.value.code).startswith("refused: "), stopped.value.code
    assert list(tmp_path.rglob("*.safetensors")) == []
