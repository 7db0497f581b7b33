"""Peers: each has an environment of its own and runs as processes, or is reported as not run."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.environment import MAX_SECONDS
from bench.peer_entry import PeerEntry
from bench.report.figures import Base
from windlass.bench.process import BenchFailed

SCRIPTS = Path(__file__).parent / "peers"
STORE = "BENCH_STORE"
"""The variable in which a script finds the address of its store."""


class PeerResult(msgspec.Struct, frozen=True):
    """The output of a peer's script."""

    version: str
    jobs: int
    seconds: float

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / self.seconds


class PeerStore(msgspec.Struct, frozen=True):
    """An empty folder for a peer, and an empty store if it needs one."""

    folder: Path
    store: str = ""


class Peer(msgspec.Struct, frozen=True):
    """One peer: its entry and the command of its script, or why it cannot run."""

    entry: PeerEntry
    launch: tuple[str, ...] = ()
    skip_reason: str | None = None
    version: str = ""
    environment: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The name that users know."""
        return self.entry.name

    @property
    def title(self) -> str:
        """Its name with its version."""
        return f"{self.name} {self.version}".rstrip()

    @property
    def runs(self) -> bool:
        """Whether it can be run here."""
        return self.skip_reason is None

    def base(self, rounds: list[float], how: str = "") -> Base:
        """The peer as a denominator."""
        return Base(f"{self.title}, {how}" if how else self.title, rounds, self.skip_reason)

    def run(self, verb: str, peer_store: PeerStore, jobs: int) -> PeerResult:
        """Run one verb of its script, and read its output."""
        ran = subprocess.run(
            self.command(verb, peer_store, jobs),
            cwd=peer_store.folder,
            env={**os.environ, **self.variables(peer_store)},
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )
        if ran.returncode != 0:
            raise BenchFailed(f"{self.name} {verb} ended with code {ran.returncode}: {ran.stderr[-500:]}")
        return msgspec.json.decode(ran.stdout.splitlines()[-1], type=PeerResult)

    def command(self, verb: str, peer_store: PeerStore, jobs: int = 0) -> list[str]:
        """The command for a verb of its script."""
        return [*self.launch, verb, str(peer_store.folder), str(jobs)]

    def variables(self, peer_store: PeerStore) -> dict[str, str]:
        """Environment variables for its script."""
        return {**self.environment, STORE: peer_store.store}


def find_peers(peer_entries: Sequence[PeerEntry], folder: Path | None) -> tuple[Peer, ...]:
    """Find the peers that have a working environment in the folder, each under the name of its package."""
    # In full, since peers run in folders of their own; not resolved, since a link is what makes an environment.
    folder = folder and folder.absolute()
    return tuple(_find(entry, folder) for entry in peer_entries)


def _find(entry: PeerEntry, folder: Path | None) -> Peer:
    if folder is None:
        return Peer(entry, skip_reason="not run: no --peers given")
    home = folder / entry.package
    if not home.exists():
        return Peer(entry, skip_reason=f"not run: no environment {home.name}")
    return _find_node(entry, home) if entry.node else _find_python(entry, home)


def _find_python(entry: PeerEntry, home: Path) -> Peer:
    python = str(home / "bin" / "python")
    # Imported, not only looked up: an installation that does not work is none.
    code = f"import {entry.package}; from importlib.metadata import version; print(version({entry.package!r}))"
    version = _last_output([python, "-c", code], {})
    # -P keeps our folder off its import path.
    return _peer(entry, (python, "-P"), version, {})


def _find_node(entry: PeerEntry, home: Path) -> Peer:
    environment = {"NODE_PATH": str(home / "node_modules")}
    code = f"require('{entry.name}'); console.log(require('{entry.name}/package.json').version)"
    return _peer(entry, ("node",), _last_output(["node", "-e", code], environment), environment)


def _peer(entry: PeerEntry, program: tuple[str, ...], version: str | None, environment: dict[str, str]) -> Peer:
    if version is None:
        return Peer(entry, skip_reason="not run: not installed")
    return Peer(entry, (*program, str(SCRIPTS / entry.script)), None, version, environment)


def _last_output(command: list[str], environment: dict[str, str]) -> str | None:
    """The last word that the command prints; None if it fails or does not exist."""
    try:
        said = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60
        )
    except OSError:
        return None
    return said.stdout.split()[-1] if said.returncode == 0 and said.stdout.strip() else None
