"""No module of the four packages is over 350 lines, no function over 70."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_imports import PARTS, ROOT

MODULE_LINES = 350
FUNCTION_LINES = 70
READ_AS_A_WHOLE = {"training/train.py": {"fit"}}  # the training loop


def oversized(path: str, source: str) -> Iterator[str]:
    """The module and the functions in it that are too long."""
    if (lines := len(source.splitlines())) > MODULE_LINES:
        yield f"{path} has {lines} lines"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in READ_AS_A_WHOLE.get(path, ()):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{path}: {node.name} has {lines} lines"


def test_no_module_and_no_function_is_too_long() -> None:
    files = [file for part in PARTS for file in sorted((ROOT / part).rglob("*.py"))]
    assert len(files) > 100
    assert [found for file in files for found in oversized(_path(file), file.read_text())] == []


def test_what_is_too_long_is_found() -> None:
    assert list(oversized("a.py", "\n" * 351)) == ["a.py has 351 lines"]
    long = "def f():\n" + "    pass\n" * 70
    assert list(oversized("a.py", long)) == ["a.py: f has 71 lines"]


def _path(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()
