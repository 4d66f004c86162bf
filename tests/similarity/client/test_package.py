"""What importing the client needs and does, and that its guide is about it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import similarity
from similarity.client import Client

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "client.md"


def python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)


def test_importing_it_loads_no_model_no_index_and_no_web_framework() -> None:
    heavy = "{'onnxruntime', 'tokenizers', 'sqlite3', 'elasticsearch', 'fastapi', 'starlette', 'pyarrow', 'torch'}"
    done = python(f"import sys, similarity.client\nsys.exit(', '.join(sorted({heavy} & set(sys.modules))) or 0)")
    assert done.returncode == 0, done.stderr


def test_without_httpx2_it_says_what_to_install() -> None:
    done = python("import sys\nsys.modules['httpx2'] = None\nimport similarity.client")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: the client needs httpx2: pip install 'company-similarity[client]'"
    )


def test_the_command_line_says_so_too() -> None:
    script = (
        "import sys\nsys.modules['httpx2'] = None\nsys.argv = ['similarity', 'find', 'x', '--url', 'http://h']\n"
        "from similarity.cli.main import main\nmain()"
    )
    done = python(script)
    assert done.stderr == "similarity: the client needs httpx2: pip install 'company-similarity[client]'\n"


def test_its_types_are_shipped() -> None:
    assert (Path(similarity.__file__).parent / "py.typed").exists()


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", python_blocks())
def test_the_guides_examples_are_python(block: str) -> None:
    compile(block, str(GUIDE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_guide_names_every_method_and_no_other() -> None:
    guide = GUIDE.read_text()
    methods = {name for name in dir(Client) if not name.startswith("_")} - {"close", "send"}
    assert {name for name in methods if not re.search(rf"(service\.|`){name}\b", guide)} == set()
    assert set(re.findall(r"service\.([a-z_]+)\(", guide)) - methods == set()
