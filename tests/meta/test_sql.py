"""SQL lives in files of its own, each with a sentence and a use."""

import ast
import re
from pathlib import Path

import pytest

from tests.meta.tree import POSTGRES, SOURCE, SQLITE, name_of, python_files
from windlass.store.sqlite.db import load_statements

FILES = sorted(path for path in POSTGRES.rglob("*.sql") if path.parent.name != "migrations")
BUILDERS = {"mend.py", "rows.py", "migrate.py", "db.py", "read_jobs.py", "operator_verbs.py", "repair_text.py"}
"""Where a statement may be put together, from constants."""
STATEMENT = re.compile(r"\b(SELECT .*FROM|INSERT INTO|UPDATE .*SET|DELETE FROM)\b", re.DOTALL)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_query_begins_with_a_sentence(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert re.fullmatch(r"-- [A-Z].{8,}", first), first


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_query_is_used(path: Path) -> None:
    users = [name_of(file) for file in python_files(POSTGRES) if f'"{path.stem}"' in file.read_text()]
    assert users, f"no module uses {path.name}"


def test_every_query_that_is_named_in_the_code_exists() -> None:
    assert len(_named(POSTGRES)) > 40
    assert _named(POSTGRES) <= {path.stem for path in FILES}


def test_every_statement_of_sqlite_is_used_and_exists() -> None:
    assert len(_named(SQLITE)) > 40
    assert _named(SQLITE) <= load_statements().keys()
    used = {text for path in python_files(SQLITE) for text in re.findall(r'"(\w+)"', path.read_text())}
    assert load_statements().keys() - used == set()


def test_every_statement_of_sqlite_is_loaded() -> None:
    files = [path for path in SQLITE.rglob("*.sql") if path.parent.name != "migrations"]
    assert sum(path.read_text().count("-- name: ") for path in files) == len(load_statements())
    assert [name_of(path) for path in files if not path.with_suffix(".py").exists()] == []


def _named(folder: Path) -> set[str]:
    return {
        str(node.args[0].value)
        for path in python_files(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "db"
        and node.func.attr in ("rows", "run", "run_many", "text", "json")
        and isinstance(node.args[0], ast.Constant)
    }


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
