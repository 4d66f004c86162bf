"""The import rules of docs/architecture.md, checked on the source; and that the check itself bites."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("similarity", "services", "pipelines", "training")
SOURCE_FOLDERS = (*PARTS, "benchmarks", "deploy", "examples")
FORBIDDEN_MODULE_NAMES = {"utils", "helpers", "common", "base", "manager", "core"}
# Lower rooms never import higher ones. Modules of one line may import each other.
ROOMS = (
    ("errors", "backoff", "formats"),
    ("company",),
    ("settings", "preparation"),
    ("text",),
    ("model",),
    ("bundle",),
    ("encoder",),
    ("index",),
    ("ingest",),
    ("search",),
    ("feedback",),
    ("generations",),
    ("upkeep",),
    ("kafka", "client"),
    ("cli", "__main__"),
)
FLOOR = {name: floor for floor, names in enumerate(ROOMS) for name in names}
# heavy library -> where alone it may be imported
HOMES = {
    "fastapi": ("services/",),
    "starlette": ("services/",),
    "uvicorn": ("services/",),
    "httpx2": ("similarity/client/",),
    "opentelemetry": ("services/",),
    "apache_beam": ("pipelines/",),
    "apscheduler": ("pipelines/",),
    "prometheus_client": ("pipelines/", "services/"),
    "torch": ("training/",),
    "transformers": ("training/",),
    "elasticsearch": ("similarity/index/elastic/",),
    "onnxruntime": ("similarity/model/", "training/"),
    "tokenizers": ("similarity/encoder.py",),
    "openvino": ("similarity/model/",),
    "openpyxl": ("similarity/formats/",),
    "confluent_kafka": ("similarity/kafka/",),
    "sklearn": ("training/",),
    "matplotlib": ("training/",),
    "random": ("similarity/backoff.py", "training/"),  # one back-off, so one jitter
}


def imported_modules(source: str) -> Iterator[str]:
    """Every absolute module name that `source` imports, wherever."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
            if node.module == "training":  # from training import papers
                yield from (f"training.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    """The room of a module of the library; None of another module, and of the package itself."""
    package, _, rest = module.partition(".")
    return rest.split(".")[0] if package == "similarity" and rest else None


def breaches(path: str, source: str) -> list[str]:
    """What the module at `path` (relative, with slashes) does against the import rules."""
    found = []
    part = path.split("/", maxsplit=1)[0]
    for module in imported_modules(source):
        package = module.split(".")[0]
        if part == "similarity" and package in PARTS[1:]:
            found.append(f"{path} imports {module}: the library imports no deployable")
        if part in PARTS[1:] and package in PARTS[1:] and package != part:
            found.append(f"{path} imports {module}: deployables never import each other")
        if module.startswith("training.papers") and not path.startswith("training/papers/"):
            found.append(f"{path} imports {module}: reproductions of papers are imported by nothing")
        if package in HOMES and part in PARTS and not path.startswith(HOMES[package]):
            found.append(f"{path} imports {module}: its home is {' '.join(HOMES[package])}")
        if part == "similarity" and path != "similarity/__init__.py" and (room := room_of(module)) is not None:
            own = path.split("/")[1].removesuffix(".py")
            if FLOOR[room] > FLOOR[own]:
                found.append(f"{path} imports {module}: the room {own} lies below {room}")
    if Path(path).stem in FORBIDDEN_MODULE_NAMES:
        found.append(f"{path}: a module's name says what is in it")
    return found


def source_files() -> list[Path]:
    return [file for folder in SOURCE_FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]


def test_the_source_keeps_the_import_rules() -> None:
    files = source_files()
    assert len(files) > 20
    found = [breach for file in files for breach in breaches(file.relative_to(ROOT).as_posix(), file.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("similarity/text.py", "import services.search.app"),
        ("similarity/text.py", "def f():\n    from training import export"),
        ("similarity/cli/main.py", "from services.search import app"),
        ("services/search/app.py", "from training.export import main"),
        ("pipelines/stream.py", "import services"),
        ("similarity/ingest/write_path.py", "import torch"),
        ("similarity/index/opening.py", "from similarity.search.searcher import Searcher"),
        ("similarity/index/opening.py", "def f():\n    from similarity.generations import gate"),
        ("services/search/app.py", "import onnxruntime"),
        ("similarity/index/sqlite.py", "from elasticsearch import Elasticsearch"),
        ("training/train.py", "import fastapi"),
        ("training/train.py", "from training.papers.nli import main"),
        ("training/export/graph.py", "def f():\n    from training import papers"),
        ("benchmarks/training.py", "import training.papers"),
        ("similarity/utils.py", ""),
        ("similarity/ingest/delivery.py", "import random"),
    ],
)
def test_a_planted_breach_is_found(path: str, source: str) -> None:
    assert breaches(path, source)


def test_every_module_of_the_library_lies_in_a_room() -> None:
    inside = {path.name.removesuffix(".py") for path in (ROOT / "similarity").iterdir() if path.suffix in {".py", ""}}
    assert inside - {"__init__", "__pycache__", "models", "sample"} == FLOOR.keys()


def test_the_service_imports_its_modules_relatively() -> None:
    for file in (ROOT / "services" / "search").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) services\b", file.read_text(encoding="utf-8"), re.MULTILINE), file


def test_importing_the_library_loads_nothing_heavy_and_opens_nothing() -> None:
    import subprocess

    script = (
        "import sys, similarity.cli.main, similarity.ingest.write_path, similarity.index.protocol\n"
        "heavy = {'onnxruntime', 'torch', 'fastapi', 'apache_beam', 'elasticsearch', 'pyarrow', 'openpyxl'}\n"
        "heavy |= {'py3langid'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
