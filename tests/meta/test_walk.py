"""docs/walk.md and docs/walk-limits.md: every link leads to what it names, and the walk of a job stays short."""

import ast
import re

import pytest

from tests.meta.tree import ROOT

PAGES = [ROOT / "docs" / name for name in ("walk.md", "walk-limits.md")]
LINK = re.compile(r"\[([\w.]+)\]\(\.\./(src/[\w/.]+)(?:#(\w+))?\)")
LINKS, LIMITED = (LINK.findall(page.read_text().replace("\n   ", " ")) for page in PAGES)
MAX_FILES = 35


@pytest.mark.parametrize(("name", "path", "part"), [*LINKS, *LIMITED], ids=lambda each: str(each).rpartition("/")[2])
def test_a_link_leads_to_what_it_names(name: str, path: str, part: str) -> None:
    text = (ROOT / path).read_text()
    if path.endswith(".sql"):
        assert f"-- name: {part or name}\n" in text
        return
    assert _defines(ast.parse(text), (part or name).split("."))


def _defines(node: ast.AST, names: list[str]) -> bool:
    if not names:
        return True
    named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [each for each in ast.iter_child_nodes(node) if isinstance(each, named) and each.name == names[0]]
    return any(_defines(each, names[1:]) for each in found)


@pytest.mark.parametrize(("store", "other"), [("sqlite", "postgres"), ("postgres", "sqlite")])
def test_the_walk_on_a_store_passes_few_files(store: str, other: str) -> None:
    files = {path for _, path, _ in LINKS if f"/store/{other}/" not in path}
    assert any(f"/store/{store}/" in path for path in files)
    assert len(files) <= MAX_FILES
