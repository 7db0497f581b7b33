"""The files of the repository, as the tests of this folder look at them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "windlass"
TESTS = ROOT / "tests"
BENCH = ROOT / "bench"
POSTGRES = SOURCE / "store" / "postgres"
SQLITE = SOURCE / "store" / "sqlite"
SHARED = SOURCE / "store" / "sql"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(folder: Path) -> list[Path]:
    """Every Python file below a folder."""
    return sorted(folder.rglob("*.py"))


def markdown_files() -> list[Path]:
    """Every document that belongs to the repository."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted(TESTS.rglob("*.md")),
        BENCH / "README.md",
    ]


def functions(path: Path) -> Iterator[Function]:
    """Every function and method of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield node


def name_of(path: Path) -> str:
    """A path as users say it."""
    return str(path.relative_to(ROOT))
