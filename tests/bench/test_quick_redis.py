"""`windlass bench --quick` on a Redis of its own: it measures, and leaves nothing. No speed is judged."""

import os
import subprocess
import sys
from pathlib import Path

from windlass.bench.report import read

WANTED = ("drain", "delays", "growth", "held", "pooler", "space")


def test_a_quick_run_measures_on_its_own_server_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    command = [sys.executable, "-m", "windlass", "bench", "--quick", "--store", "redis", *WANTED]
    ran = subprocess.run(
        [*command, "--out", str(tmp_path)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )

    assert ran.returncode == 0, ran.stderr
    taken = read(tmp_path).taken
    assert tuple(each.section.name for each in taken) == WANTED
    assert {each.machine.store["store"] for each in taken} == {"Redis"}
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
