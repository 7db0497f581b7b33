"""tools/yugabyte_universe.sh, with a yugabyted that only says what it was asked: none can be installed here."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from windlass.store.postgres.connection.address import parse_address

SCRIPT = Path(__file__).parents[2] / "tools" / "yugabyte_universe.sh"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "YB_HOME": str(folder / "home")}
    return subprocess.run(
        ["sh", str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """What yugabyted was asked, a line for each call."""
    said, program = tmp_path / "said", tmp_path / "yugabyted"
    program.write_text(f'#!/bin/sh\necho "$*" >> {said}\n')
    program.chmod(0o755)
    return said


def test_three_nodes_are_started_that_open_as_one_address_and_removed_again(tmp_path: Path, calls: Path) -> None:
    started = run(tmp_path, "start")
    address = started.stdout.strip()
    assert started.returncode == 0
    nodes = re.findall(r"^start --advertise_address=(\S+)", calls.read_text(), re.MULTILINE)
    assert address == f"yugabyte://yugabyte@{','.join(nodes)}/yugabyte"
    assert len(set(nodes)) == 3
    assert parse_address(address, address).profile.name == "yugabyte"
    assert re.findall(r"--join=(\S+)", calls.read_text()) == nodes[:1] * 2
    assert calls.read_text().count("yb_enable_read_committed_isolation=true") == 3
    (tmp_path / "home").mkdir(exist_ok=True)
    assert run(tmp_path, "stop").returncode == 0
    assert calls.read_text().count("destroy ") == 3
    assert not (tmp_path / "home").exists()


def test_without_yugabyted_it_says_where_to_get_it(tmp_path: Path) -> None:
    refused = run(tmp_path, "start")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "yugabyted is not on the PATH" in refused.stderr
