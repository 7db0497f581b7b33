"""A worker whose handlers change the current folder stays on its store, with everything that it starts."""

import json
from pathlib import Path

from tests.cli.terminal import process

SHOP = """
import os
from windlass import App

app = App("sqlite:///jobs.db", blobs="./blobs")

@app.task
def wander(folder: str) -> None:
    os.chdir(folder)
    inside.enqueue("x" * 100_000)

@app.task(run_in="process")
def inside(text: str) -> None:
    last.enqueue()

@app.task
def last() -> None: ...
"""


def test_handlers_that_change_the_folder_change_no_store(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "shop.py").write_text(SHOP)
    words = json.dumps({"folder": str(elsewhere)})
    assert process(home, "enqueue", "wander", words, "--app", "shop:app").returncode == 0
    ran = process(home, "worker", "shop:app", "--until-empty", "--concurrency", "1")
    assert ran.returncode == 0, ran.stderr
    reported = process(home, "stats", "--json", "--app", "shop:app")
    assert json.loads(reported.stdout)["totals"]["completed"] == 3, ran.stderr
    assert list(elsewhere.iterdir()) == []
