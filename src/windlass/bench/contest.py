"""Peers: found in an environment of their own, run as processes, or said not to have been run."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from windlass.bench.figures import Base
from windlass.bench.goals import Entry
from windlass.errors import WindlassError

SCRIPTS = Path(__file__).parent / "peers"
PATIENCE = 600.0
STORE = "BENCH_STORE"
"""The variable in which a script finds the address of its store."""


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


class Place(msgspec.Struct, frozen=True):
    """Where a peer works: an empty folder, and an empty store for those that need one."""

    folder: Path
    store: str = ""


class Peer(msgspec.Struct, frozen=True):
    """One peer: what is known of it, and how its script is started; or why it cannot be run."""

    entry: Entry
    launch: tuple[str, ...] = ()
    why_not: str | None = None
    version: str = ""
    environment: dict[str, str] = {}

    @property
    def name(self) -> str:
        """As people call it."""
        return self.entry.name

    @property
    def title(self) -> str:
        """Its name with its version."""
        return f"{self.name} {self.version}".rstrip()

    @property
    def runs(self) -> bool:
        """Whether it can be run here."""
        return self.why_not is None

    def base(self, rounds: list[float], how: str = "") -> Base:
        """It as a denominator."""
        return Base(f"{self.title}, {how}" if how else self.title, rounds, self.why_not)

    def run(self, verb: str, place: Place, jobs: int) -> Said:
        """Let it do one thing, and read what it says."""
        ran = subprocess.run(
            self.command(verb, place, jobs),
            cwd=place.folder,
            env={**os.environ, **self.surroundings(place)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if ran.returncode != 0:
            raise BenchFailed(f"{self.name} {verb} ended with code {ran.returncode}: {ran.stderr[-500:]}")
        return msgspec.json.decode(ran.stdout.splitlines()[-1], type=Said)

    def command(self, verb: str, place: Place, jobs: int = 0) -> list[str]:
        """How its script is called."""
        return [*self.launch, verb, str(place.folder), str(jobs)]

    def surroundings(self, place: Place) -> dict[str, str]:
        """What its script finds in the environment besides."""
        return {**self.environment, STORE: place.store}


def find_peers(entries: Sequence[Entry], folder: Path | None) -> tuple[Peer, ...]:
    """Look which of them have a working environment in the folder, each under the name of its package."""
    # In full, since peers run in folders of their own; not resolved, since a link is what makes an environment.
    folder = folder and folder.absolute()
    return tuple(_find(entry, folder) for entry in entries)


def _find(entry: Entry, folder: Path | None) -> Peer:
    if folder is None:
        return Peer(entry, why_not="not run: no --peers given")
    home = folder / entry.package
    if not home.exists():
        return Peer(entry, why_not=f"not run: there is no {home}")
    return _find_node(entry, home) if entry.node else _find_python(entry, home)


def _find_python(entry: Entry, home: Path) -> Peer:
    python = str(home / "bin" / "python")
    # Imported, not only looked up: an installation that does not work is none.
    code = f"import {entry.package}; from importlib.metadata import version; print(version({entry.package!r}))"
    version = _said([python, "-c", code], {})
    # -P keeps our folder off its import path.
    return _peer(entry, (python, "-P"), version, {})


def _find_node(entry: Entry, home: Path) -> Peer:
    environment = {"NODE_PATH": str(home / "node_modules")}
    code = f"require('{entry.name}'); console.log(require('{entry.name}/package.json').version)"
    return _peer(entry, ("node",), _said(["node", "-e", code], environment), environment)


def _peer(entry: Entry, program: tuple[str, ...], version: str | None, environment: dict[str, str]) -> Peer:
    if version is None:
        return Peer(entry, why_not="not run: not installed")
    return Peer(entry, (*program, str(SCRIPTS / entry.script)), None, version, environment)


def _said(command: list[str], environment: dict[str, str]) -> str | None:
    """The last word of what it prints; None if it fails, or is not there at all."""
    try:
        said = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60
        )
    except OSError:
        return None
    return said.stdout.split()[-1] if said.returncode == 0 and said.stdout.strip() else None


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
