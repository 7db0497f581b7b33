"""The sources of an app: which files are watched, and that a change is told once it has come to rest."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from windlass.worker import dev as sources
from windlass.worker.dev import Sources, source_paths


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, looked at quickly."""
    monkeypatch.setattr(sources, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(sources, "QUIET_SECONDS", 0.02)
    for name in ("shop.py", "shop_parts/mail.py", "shop_parts/deep/er.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    return tmp_path


async def after(tree: Path, *edits: tuple[str, str | None]) -> list[str]:
    """The files that are told after these edits (None: deleted)."""
    watched = Sources([tree])
    watched.remember()
    change = asyncio.create_task(watched.changed())
    await asyncio.sleep(0)
    for name, text in edits:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    async with asyncio.timeout(10):
        return [each.removeprefix(f"{tree}/") for each in await change]


async def test_a_changed_a_new_and_a_deleted_file_are_reported_at_once(tree: Path) -> None:
    edits = [("shop.py", "x = 22\n"), ("shop_parts/new.py", ""), ("shop_parts/deep/er.py", None)]
    assert await after(tree, *edits) == ["shop.py", "shop_parts/deep/er.py", "shop_parts/new.py"]


async def test_a_file_that_was_replaced_by_another_of_the_same_age_and_size_is_reported(tree: Path) -> None:
    watched = Sources([tree])
    watched.remember()
    state = os.stat(tree / "shop.py")
    (tree / "other").write_text("x = 2\n")
    os.utime(tree / "other", ns=(state.st_atime_ns, state.st_mtime_ns))
    (tree / "other").rename(tree / "shop.py")
    async with asyncio.timeout(10):
        assert await watched.changed() == [str(tree / "shop.py")]


async def test_what_is_no_source_of_the_app_is_not_watched(tree: Path) -> None:
    (tree / "environment").mkdir()
    (tree / "environment" / "pyvenv.cfg").touch()
    passed_over = [".venv/a.py", "node_modules/a.py", "__pycache__/a.py", "environment/lib/a.py", ".hidden/a.py"]
    passed_over += ["jobs.db-wal", "notes.txt", ".#shop.py", "shop.py~", "x/site-packages/a.py"]
    reported = await after(tree, *((name, "x") for name in passed_over), ("shop.py", "last"))
    assert reported == ["shop.py"]


async def test_links_that_lead_in_a_circle_are_not_followed(tree: Path) -> None:
    (tree / "shop_parts" / "loop").symlink_to(tree)
    assert Sources([tree]).remember() == 3


async def test_saves_that_follow_each_other_are_one_change(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "QUIET_SECONDS", 0.3)
    watched = Sources([tree])
    watched.remember()
    change = asyncio.create_task(watched.changed())
    for number in range(10):
        (tree / f"part{number}.py").touch()
        await asyncio.sleep(0.02)
    assert len(await change) == 10
    watched.remember()
    again = asyncio.create_task(watched.changed())
    await asyncio.wait([again], timeout=0.2)
    assert not again.done()
    again.cancel()


def test_the_package_of_an_app_is_watched_where_it_is_without_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    (elsewhere / "market").mkdir(parents=True)
    (elsewhere / "market" / "__init__.py").write_text("raise SystemExit('loaded')")
    (elsewhere / "stall.py").write_text("raise SystemExit('loaded')")
    here.mkdir()
    monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])
    assert elsewhere / "market" in source_paths("market.jobs:app", here)
    assert source_paths("stall:app", here) == [here, elsewhere / "stall.py"]
    assert source_paths("nowhere:app", here) == [here]
    (here / "shop.py").touch()
    assert source_paths("shop:app", here) == [here]


def test_looking_loads_no_code_of_the_app(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('loaded')\n")
    script = "import pathlib; from windlass.worker.dev import Sources, source_paths; "
    script += "Sources(source_paths('loud:app', pathlib.Path.cwd())).remember()"
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == ""
