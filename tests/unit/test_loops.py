"""The loops that we make, in processes whose standard descriptors are closed."""

import subprocess
import sys
from pathlib import Path

import pytest

MAIN = """
import asyncio, os, sys
from pathlib import Path
from windlass.client.runtime.loops import run

async def main():
    reader = await asyncio.create_subprocess_exec(sys.executable, "-c", "import os; [os.fstat(n) for n in (0, 1, 2)]")
    return await reader.wait()

Path(sys.argv[1]).write_text(str(run(main())))
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_loop_is_made_and_closed_where_standard_descriptors_are_closed(tmp_path: Path, closed: str) -> None:
    reported = tmp_path / "told"
    ended = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" "$2" {closed}', sys.executable, MAIN, reported], check=False
    )
    assert (ended.returncode, reported.read_text()) == (0, "0")
