"""Every test says what it shows: a test that only calls something passes as long as nothing is raised."""

import ast
import re
from pathlib import Path

from tests.meta.tree import TESTS, Function, functions, name_of

ASSERTING = re.compile(r"assert(_\w+)?|check(_\w+)?|fail|raises|refused|run_state_machine_as_test|until(_\w+)?|warns")
"""Functions that fail a test: those of pytest and Hypothesis, and helpers of several files."""


def _names(function: Function) -> set[str]:
    """All names in a function, and `assert` if it has that."""
    nodes = list(ast.walk(function))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return names | ({"assert"} if any(isinstance(node, ast.Assert) for node in nodes) else set())


def _silent(path: Path) -> list[str]:
    """Tests without an assertion of their own, or of a function in the same file that they name."""
    found = {each.name: _names(each) for each in functions(path)}
    asserting = {name for name, names in found.items() if any(map(ASSERTING.fullmatch, names))}
    while more := {name for name, names in found.items() if names & asserting} - asserting:
        asserting |= more
    return [name for name in found if name.startswith("test_") and name not in asserting]


def test_every_test_asserts_something() -> None:
    silent = [f"{name_of(path)}::{name}" for path in sorted(TESTS.rglob("test_*.py")) for name in _silent(path)]
    assert silent == []
