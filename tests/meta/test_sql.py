"""SQL lives in files of its own, each with a sentence and a use."""

import ast
import re
from pathlib import Path

import pytest

from tests.meta.tree import QUERIES, SOURCE, name_of, python_files

FILES = sorted(path for folder in QUERIES for path in folder.glob("*.sql"))
BUILDERS = {"look.py", "mend.py", "rows.py", "operate.py", "migrate.py"}
"""Where a statement may be put together, from constants."""
STATEMENT = re.compile(r"\b(SELECT .*FROM|INSERT INTO|UPDATE .*SET|DELETE FROM)\b", re.DOTALL)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_query_begins_with_a_sentence(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert re.fullmatch(r"-- [A-Z].{8,}", first), first


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_query_is_used(path: Path) -> None:
    users = [name_of(file) for file in python_files(path.parent.parent) if f'"{path.stem}"' in file.read_text()]
    assert users, f"nobody uses {path.name}"


@pytest.mark.parametrize("folder", QUERIES, ids=name_of)
def test_every_query_that_is_named_in_the_code_exists(folder: Path) -> None:
    named = {
        node.args[0].value
        for path in python_files(folder.parent)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "db"
        and node.func.attr in ("rows", "run", "run_many")
        and isinstance(node.args[0], ast.Constant)
    }
    assert len(named) > 40
    assert named <= {path.stem for path in folder.glob("*.sql")}


def test_no_statement_is_put_together_outside_the_few_places_that_may() -> None:
    built = [
        f"{name_of(path)}:{node.lineno}"
        for path in python_files(SOURCE)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.JoinedStr) and STATEMENT.search(_constants(node)) and path.name not in BUILDERS
    ]
    assert built == []


def _constants(node: ast.JoinedStr) -> str:
    return " ".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
