"""Peers: found in an environment of their own, run as processes, or said not to have been run."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from windlass.errors import WindlassError

SCRIPTS = Path(__file__).parent / "peers"
PATIENCE = 600.0


class BenchFailed(WindlassError):
    """A part of the bench ended badly: there is no figure, rather than a wrong one."""

    code = "bench_failed"


class Said(msgspec.Struct, frozen=True):
    """What a peer's script prints when it has done its part."""

    version: str
    jobs: int
    seconds: float

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / self.seconds


class Peer(msgspec.Struct, frozen=True):
    """One peer: its package, its script, and the Python that has it; or why it cannot be run."""

    name: str
    script: Path
    python: Path | None
    why_not: str | None = None
    version: str = ""

    @property
    def title(self) -> str:
        """Its name with its version."""
        return f"{self.name} {self.version}".rstrip()

    def run(self, verb: str, folder: Path, jobs: int) -> Said:
        """Let it do one thing, and read what it says."""
        ran = subprocess.run(
            self.command(verb, folder, jobs),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if ran.returncode != 0:
            raise BenchFailed(f"{self.name} {verb} ended with code {ran.returncode}: {ran.stderr[-500:]}")
        return msgspec.json.decode(ran.stdout.splitlines()[-1], type=Said)

    def command(self, verb: str, folder: Path, jobs: int = 0) -> list[str]:
        """How its script is called; -P keeps our folder off its import path."""
        return [str(self.python), "-P", str(self.script), verb, str(folder), str(jobs)]


class Peers(msgspec.Struct, frozen=True):
    """Those we stand beside."""

    huey: Peer
    dbos: Peer


def find_peers(python: Path | None) -> Peers:
    """Look whether the given Python has them."""
    # In full, since peers run in folders of their own; not resolved, since a link is what makes an environment.
    python = python and python.absolute()
    return Peers(
        _find("Huey", "huey", SCRIPTS / "huey_peer.py", python),
        _find("DBOS", "dbos", SCRIPTS / "dbos_peer.py", python),
    )


def _find(name: str, package: str, script: Path, python: Path | None) -> Peer:
    if python is None:
        return Peer(name, script, None, "not run: no --peers-python given")
    if not os.access(python, os.X_OK):
        return Peer(name, script, None, f"not run: there is no {python}")
    # Imported, not only looked up: an installation that does not work is none.
    code = f"import {package}; from importlib.metadata import version; print(version({package!r}))"
    found = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        return Peer(name, script, None, "not run: not installed")
    return Peer(name, script, python, None, found.stdout.split()[-1])


class Served:
    """A process that stays until we are done with it, with its output in a file."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when we leave
        self._popen = subprocess.Popen(
            command,
            cwd=folder,
            env={**_neutral(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._command = command

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        """Ask first, and do not wait for ever."""
        if self._popen.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(10)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        self._log.close()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._popen.pid

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends in that time."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def check(self) -> None:
        """Raise if it has ended badly."""
        code = self._popen.poll()
        if code:
            self._log.seek(0)
            said = self._log.read().decode(errors="replace")[-1000:]
            raise BenchFailed(f"{' '.join(self._command[:6])} … ended with code {code}: {said}")


def _neutral() -> dict[str, str]:
    """Our environment without what would change a worker's defaults."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
