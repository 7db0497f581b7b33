"""A terminal in an empty folder."""

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """No WINDLASS_ variable is set, nor COLUMNS; the store that is used by default is there, and empty."""
    for name in ("WINDLASS_STORE", "WINDLASS_APP", "WINDLASS_BLOBS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    made = Terminal(tmp_path, monkeypatch, capsys)
    made.ok("migrate", "--store", "sqlite:///windlass.db")
    return made
