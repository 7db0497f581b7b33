"""Statements are in .sql files beside the modules that use them."""

import ast
import re
from pathlib import Path

import pytest

from tests.meta.tree import POSTGRES, SHARED, SOURCE, SQLITE, name_of, python_files
from windlass.store.sql.statements import add_statements, statements_of

STORES = pytest.mark.parametrize("store", [POSTGRES, SQLITE], ids=lambda folder: folder.name)
PROFILES = {POSTGRES: ("", "yugabyte"), SQLITE: ("",)}
BUILDERS = {
    "rows.py",
    "migrate.py",
    "migrate_stepwise.py",
    "db.py",
    "read_jobs.py",
    "operator_verbs.py",
    "repair_text.py",
}
"""Where a statement may be put together, from constants."""
HEAD = re.compile(r"^-- (?:name|replaces): (\w+)$", re.MULTILINE)
STATEMENT = re.compile(r"\b(SELECT .*FROM|INSERT INTO|UPDATE .*SET|DELETE FROM)\b", re.DOTALL)


@STORES
def test_every_statement_that_is_named_in_the_code_exists(store: Path) -> None:
    named = _named(store) | _named(SHARED)
    assert len(named) > 80
    assert named <= _statements(store).keys()


@STORES
def test_every_statement_is_used_by_the_module_beside_it(store: Path) -> None:
    unused = [
        f"{name_of(path)}: {name}"
        for path in _files(store)
        for name in HEAD.findall(path.read_text())
        if f'"{name}"' not in (path.parent / f"{path.name.partition('.')[0]}.py").read_text()
    ]
    assert unused == []


def test_a_statement_of_a_profile_says_whether_it_is_new_or_replaces_one() -> None:
    texts = {"claim": "SELECT 1"}
    with pytest.raises(ValueError, match="-- name: claim, but there is one"):
        add_statements(texts, "-- name: claim\nSELECT 2\n")
    with pytest.raises(ValueError, match="-- replaces: clam, but there is none"):
        add_statements(texts, "-- replaces: clam\nSELECT 2\n")
    add_statements(texts, "-- replaces: claim\nSELECT 2\n\n-- name: clam\nSELECT 3\n")
    assert texts == {"claim": "SELECT 2", "clam": "SELECT 3"}


@STORES
def test_every_statement_is_loaded(store: Path) -> None:
    written = {name for path in _files(store) for name in HEAD.findall(path.read_text())}
    assert written == _statements(store).keys()


@STORES
def test_a_comment_on_a_statement_is_a_sentence(store: Path) -> None:
    comments = [
        text
        for path in _files(store)
        for text in re.findall(r"^-- (?:name|replaces): \w+\n-- (.*)$", path.read_text(), re.MULTILINE)
    ]
    assert [text for text in comments if not re.match(r"[A-Z\[].{8,}", text)] == []


def _files(store: Path) -> list[Path]:
    shared = [path for path in SHARED.glob("*.sql") if path.name.split(".")[1] in ("sql", store.name)]
    return sorted(path for path in [*store.rglob("*.sql"), *shared] if "migrations" not in path.parts)


def _statements(store: Path) -> dict[str, str]:
    return {name: text for profile in PROFILES[store] for name, text in statements_of(store.name, profile).items()}


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
