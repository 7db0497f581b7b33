"""Shell completion: the script for bash, and the values that it asks for."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import process

WINDLASS = Path(sys.executable).parent / "windlass"


def complete(folder: Path, line: str) -> list[str]:
    """What bash is told about the last word of a line."""
    environment = {"_WINDLASS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ran = subprocess.run(
        [WINDLASS], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stderr == ""
    return ran.stdout.split()


def test_the_script_for_bash_asks_windlass(tmp_path: Path) -> None:
    environment = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    ran = subprocess.run(
        [WINDLASS, "--show-completion", "bash"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "_WINDLASS_COMPLETE=complete_bash" in ran.stdout
    assert subprocess.run(["bash", "-n"], input=ran.stdout, text=True, check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("windlass sched", ["schedules"]),
        ("windlass jobs ca", ["cancel"]),
        ("windlass jobs list --json-", ["--json-lines"]),
        ("windlass jobs list --status d", ["dead"]),
        ("windlass jobs list --queue m", ["mail"]),
        ("windlass queues pause m", ["mail"]),
        ("windlass schedules show n", ["nightly"]),
        ("windlass jobs list --store sqlite:///missing.db --queue m", []),
    ],
)
def test_words_are_completed(tmp_path: Path, line: str, answer: list[str]) -> None:
    if answer in (["mail"], ["nightly"]):
        process(tmp_path, "enqueue", "t", "--queue", "mail", "--store", "sqlite:///windlass.db")
        process(tmp_path, "schedules", "add", "nightly", "t", "--cron", "@daily", "--store", "sqlite:///windlass.db")
    assert complete(tmp_path, line) == answer
