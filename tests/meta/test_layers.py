"""Which module may import which."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.meta.tree import ROOT, SOURCE, functions, name_of, python_files

LAZY = {
    "src/windlass/cli/bench.py",
    "src/windlass/cli/check_worker.py",
    "src/windlass/cli/dev.py",
    "src/windlass/cli/reach.py",
    "src/windlass/cli/run.py",
    "src/windlass/cli/serve.py",
    "src/windlass/client/embedded.py",
    "src/windlass/client/runtime/loops.py",
    "src/windlass/remote/worker.py",
    "src/windlass/server/__init__.py",
    "src/windlass/store/open.py",
    "src/windlass/worker/through_server.py",
}
"""Where an import may stand inside a function: what an extra brings, and uvloop, need not be there, and only a
process that runs a worker loads it.
No command waits for what only another one needs."""


def test_the_layers_hold() -> None:
    lint_imports = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run([lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert "5 kept, 0 broken" in run.stdout


def test_no_function_hides_an_import() -> None:
    hidden = {
        name_of(path)
        for path in python_files(SOURCE)
        for function in functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert hidden == LAZY
