"""A terminal for tests: commands run in this process, and their apps are closed afterwards."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from windlass.cli import reach
from windlass.cli.main import main
from windlass.client.app import App


class Ran(msgspec.Struct):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What a program reads."""
        return json.loads(self.out)


class Keyboard(io.StringIO):
    """Standard input: a terminal, if input is given."""

    def isatty(self) -> bool:
        return bool(self.getvalue())


class Terminal:
    """Runs `windlass` commands in a folder of its own, on `windlass.db` there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self._apps: list[App] = []
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.setattr(reach, "App", self._make)

    def _make(self, store: str | None, **options: Any) -> App:
        self._apps.append(App(store, **options))
        return self._apps[-1]

    def run(self, *words: str, typed: str = "") -> Ran:
        """One command, with what is typed into it."""
        self._capsys.readouterr()
        self._monkeypatch.setattr(sys, "argv", ["windlass", *words])
        self._monkeypatch.setattr(sys, "stdin", Keyboard(typed))
        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        finally:
            while self._apps:
                self._apps.pop().close()
        printed = self._capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    def ok(self, *words: str, typed: str = "") -> Ran:
        """A command that must end well."""
        ran = self.run(*words, typed=typed)
        notes = [line for line in ran.err.splitlines() if line.startswith("note: ")]
        assert (ran.code, ran.err.splitlines()) == (0, notes), ran
        return ran

    def enqueue(self, *words: str) -> str:
        """A job; its id."""
        return str(self.ok("enqueue", *(words or ("t",)), "--json").json["id"])

    def with_app(self, work: Callable[[App], Any]) -> Any:
        """Do something through the client, on the same store."""
        app = App("sqlite:///windlass.db")
        try:
            return work(app)
        finally:
            app.close()


def process(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, with no environment but the one given."""
    command = [sys.executable, "-m", "windlass", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
