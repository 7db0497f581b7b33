"""The files of the repository, as the tests of this folder look at them."""

import ast
import subprocess
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


TEXT = {
    ".py",
    ".sql",
    ".lua",
    ".html",
    ".js",
    ".mjs",
    ".css",
    ".md",
    ".toml",
    ".txt",
    ".yml",
    ".yaml",
    ".sh",
    ".rs",
    "",
}


def text_files() -> list[Path]:
    """Code, statements, pages and settings: every file that people write and git keeps, or would."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = {ROOT / name for name in listed.stdout.decode().split("\0") if name}
    return sorted(path for path in paths if path.suffix in TEXT and path.is_file())


def functions(path: Path) -> Iterator[Function]:
    """Every function and method of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield node


def name_of(path: Path) -> str:
    """A path as users say it."""
    return str(path.relative_to(ROOT))
