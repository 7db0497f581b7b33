"""The measures of the code in the wheel: `python -m tools.measures [REVISION]` prints them as a table."""

import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = {".py", ".sql", ".lua"}
PERSONS = re.compile(r"\b(who|whom|whoever|nobody|somebody|anybody|everybody)\b", re.IGNORECASE)


def measures(root: Path) -> dict[str, str]:
    """Every measure of a checkout, by name."""
    files = [path for path in (root / "src").rglob("*") if path.suffix in CODE]
    modules = [path for path in files if path.suffix == ".py"]
    trees = {path: ast.parse(path.read_text()) for path in modules}
    folder, side_by_side = Counter(path.parent.relative_to(root / "src") for path in modules).most_common(1)[0]
    lengths = sorted(length for tree in trees.values() for length in _function_lengths(tree))
    sentences = [text for tree in trees.values() for text in _docstrings(tree)]
    persons = sum(1 for text in sentences if PERSONS.search(text))
    longest = max(files, key=_lines)
    return {
        "lines in the wheel (py, sql, lua)": f"{sum(map(_lines, files)):,}",
        "Python modules in the wheel": str(len(modules)),
        "modules side by side in a folder": f"{side_by_side} ({folder})",
        "docstrings with persons": f"{persons / len(sentences):.1%}",
        "words of ARCHITECTURE.md": f"{len((root / 'ARCHITECTURE.md').read_text().split()):,}",
        "lines of a function: median, p90": f"{lengths[len(lengths) // 2]}, {lengths[len(lengths) * 9 // 10]}",
        "lines of the longest file": f"{_lines(longest)} ({longest.relative_to(root / 'src')})",
        "lines in tests": f"{sum(map(_lines, (root / 'tests').rglob('*.py'))):,}",
    }


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _function_lengths(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.end_lineno - node.lineno + 1


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            text := ast.get_docstring(node)
        ):
            yield text


def _show(columns: dict[str, dict[str, str]]) -> None:
    print("| measure |" + "".join(f" {name} |" for name in columns))
    print("|---|" + "---|" * len(columns))
    for measure in next(iter(columns.values())):
        print(f"| {measure} |" + "".join(f" {column[measure]} |" for column in columns.values()))


def main() -> None:
    """The measures of each revision that is named, then those of the files as they are."""
    columns = {}
    for revision in sys.argv[1:]:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
        with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
            columns[revision] = measures(Path(folder))
    _show(columns | {"now": measures(ROOT)})


if __name__ == "__main__":
    main()
