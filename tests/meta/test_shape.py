"""A file fits in the head, a function on the screen."""

from pathlib import Path

import pytest

from tests.meta.tree import BENCH, ROOT, SOURCE, TESTS, Function, functions, name_of, python_files

MAX_LINES = 400
MAX_LINES_OF_SOURCE = 300
MAX_LINES_OF_A_FUNCTION = 50
MAX_PARAMETERS = 8
PUBLIC_FACE = (
    "src/windlass/client/app.py",
    "src/windlass/client/verbs/jobs.py",
    "src/windlass/cli/",
    "src/windlass/server/application.py",
)
"""Options of the public face are parameters by name, however many there are."""


@pytest.mark.parametrize("folder", [SOURCE, TESTS, BENCH, ROOT / "tools"], ids=["src", "tests", "bench", "tools"])
def test_no_file_is_longer_than_the_hard_limit(folder: Path) -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in python_files(folder)}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_source_file_is_longer_than_three_hundred_lines() -> None:
    lengths = {
        name_of(path): len(path.read_text().splitlines()) for path in [*python_files(SOURCE), *python_files(BENCH)]
    }
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES_OF_SOURCE} == {}


def test_no_function_is_longer_than_fifty_lines() -> None:
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}: {_length(node)} lines"
        for path in [*python_files(SOURCE), *python_files(TESTS), *python_files(BENCH)]
        for node in functions(path)
        if _length(node) > MAX_LINES_OF_A_FUNCTION
    ]
    assert long == []


def test_no_function_takes_more_than_eight_parameters_outside_the_public_face() -> None:
    wide = [
        f"{name_of(path)}:{node.lineno} {node.name}: {_parameters(node)} parameters"
        for path in python_files(SOURCE)
        for node in functions(path)
        if _parameters(node) > MAX_PARAMETERS and not name_of(path).startswith(PUBLIC_FACE)
    ]
    assert wide == []


def _length(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _parameters(node: Function) -> int:
    arguments = node.args
    return len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
