"""Documents that cannot lie: written from the code, with code that compiles (tests/docs runs it)."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_overloads

import pytest

from tests.meta.tree import ROOT, markdown_files, name_of
from windlass import App, Context, chain
from windlass.core.status import INITIAL, MOVES
from windlass.version import __version__

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("columns", ["40", "200"])
def test_the_reference_is_up_to_date_however_wide_the_terminal_is(columns: str) -> None:
    script = [sys.executable, "tools/reference.py", "--check"]
    environment = {**os.environ, "COLUMNS": columns}
    run = subprocess.run(script, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_reference_names_no_path_of_this_machine() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    assert "windlass worker" in pages
    assert str(ROOT) not in pages
    assert " at 0x" not in pages


def test_the_reference_shows_no_private_name() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    code = re.findall(r"`([^`\n]+)`", pages)
    assert [each for each in code if re.search(r"(^|[^\w])_[a-z]", each)] == []


@pytest.mark.parametrize(
    ("section", "name", "function"),
    [("App", ".task", App.task), ("Context", ".enqueue", Context.enqueue), ("chain", "chain", chain)],
)
def test_the_reference_shows_every_overload(section: str, name: str, function: Callable[..., object]) -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    shown = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0].count(f"`{name}(")
    assert shown - (section == "chain") == len(get_overloads(function)) > 1  # the docstring of chain calls it too


def test_an_out_of_date_page_is_noticed(tmp_path: Path) -> None:
    for folder in ("tools", "docs/reference"):
        (tmp_path / folder).mkdir(parents=True)
        for file in (ROOT / folder).glob("*.[pm][yd]"):
            (tmp_path / folder / file.name).write_bytes(file.read_bytes())
    (tmp_path / "docs/reference/errors.md").write_text("# Nothing ever fails\n")
    script = [sys.executable, str(tmp_path / "tools" / "reference.py")]
    check = subprocess.run([*script, "--check"], capture_output=True, text=True, check=False)
    assert (check.returncode, check.stdout) == (1, "docs/reference/errors.md is not up to date: run `make docs`\n")
    subprocess.run(script, check=True)
    assert subprocess.run([*script, "--check"], check=False).returncode == 0


def test_the_lifecycle_shows_every_legal_move(tmp_path: Path) -> None:
    page, picture = ((ROOT / "docs" / name).read_text() for name in ("lifecycle.md", "pictures/lifecycle.svg"))
    moves = len(INITIAL) + sum(map(len, MOVES.values()))
    assert len(re.findall(r"^\| (?:\(new\)|`\w+`) \| `\w+` \| ", page, re.MULTILINE)) == moves
    assert picture.count("Q") == moves
    for file in ("tools/lifecycle.py", "docs/lifecycle.md", "docs/pictures/lifecycle.svg"):
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / file).write_text((ROOT / file).read_text())
    check = [sys.executable, str(tmp_path / "tools/lifecycle.py"), "--check"]
    assert subprocess.run(check, check=False).returncode == 0
    (tmp_path / "docs/lifecycle.md").write_text(page.replace("| `dead` | `pending` | retry |\n", ""))
    assert subprocess.run(check, check=False, capture_output=True).returncode == 1


@pytest.mark.parametrize("path", markdown_files(), ids=name_of)
def test_no_diagram_needs_a_script_from_elsewhere(path: Path) -> None:
    assert "```mermaid" not in path.read_text(), "neither the site nor a terminal shows it"


@pytest.mark.parametrize("path", markdown_files(), ids=name_of)
def test_every_python_block_compiles(path: Path) -> None:
    for block in BLOCK.findall(path.read_text()):
        assert compile(block, name_of(path), "exec", flags=0x2000)  # top-level await is how examples are written


def test_the_readme_shows_code_and_how_to_begin() -> None:
    readme = (ROOT / "README.md").read_text()
    assert BLOCK.search(readme)
    assert "make demo" in readme
    assert "make test" in readme


def test_the_changelog_knows_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## .*{re.escape(__version__)}\b", changelog, re.MULTILINE)


def test_every_target_of_the_makefile_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    explained = re.findall(r"^([a-z-]+):.*## \w", makefile, re.MULTILINE)
    assert sorted(explained) == sorted(phony[1].split())
