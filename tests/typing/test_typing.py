"""The public face keeps signatures for type checkers, and refuses what the producer would refuse."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.tree import ROOT

EXAMPLES = Path(__file__).parent / "examples.py"


def mypy(path: Path) -> tuple[int, str]:
    """The exit code and the report for one file, under the project's own settings."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def test_the_examples_are_typed_as_they_say() -> None:
    code, report = mypy(EXAMPLES)
    assert code == 0, report


KINDS = ["arg-type", "call-arg", "call-overload", "attr-defined", "list-item", "misc", "type-var", "unused-coroutine"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_wrong_line_of_the_examples_is_an_error(tmp_path: Path, kind: str) -> None:
    text = EXAMPLES.read_text()
    wrong = [number for number, line in enumerate(text.splitlines(), 1) if kind in line.partition("ignore[")[2]]
    assert wrong
    copy = tmp_path / "wrong.py"
    copy.write_text(re.sub(r"  # type: ignore\[.*\]", "", text))
    _, report = mypy(copy)
    found = {int(line) for line in re.findall(rf"wrong\.py:(\d+): error: .*\[{kind}\]", report)}
    assert found == set(wrong)


def test_nothing_typed_is_lost_on_the_way_to_other_programs() -> None:
    assert (ROOT / "src" / "windlass" / "py.typed").exists()
