"""An app made for tests is for the process that made it: commands and workers refuse it."""

import subprocess
import sys
from pathlib import Path

import pytest

SHOP = "from windlass import App\n\napp = App.testing()\n\n@app.task\ndef work() -> None: ...\n"


@pytest.mark.parametrize(
    "command",
    [
        ["worker", "shop:app"],
        ["enqueue", "work", "{}", "--app", "shop:app"],
        ["jobs", "list", "--app", "shop:app"],
        ["migrate", "--store", "sqlite:///:memory:"],
        ["coordinator", "--store", "sqlite:///:memory:"],
    ],
    ids=lambda command: command[0],
)
def test_a_store_in_memory_is_refused_in_words(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    words = [sys.executable, "-m", "windlass", *command]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: sqlite:///:memory:: no other process sees a database in memory")
