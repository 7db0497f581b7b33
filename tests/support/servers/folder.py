"""The folder of this run's servers: fast if it can be, and gone with the run, however that ends."""

import atexit
import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.servers import keeper
from tests.support.servers.account import unprivileged

PREFIX = "windlass-servers-"
MEMORY = Path("/dev/shm")
ENOUGH = 2 << 30
"""Bytes that must be free in memory: some tests keep a million jobs."""
LOCK = "lock"


@functools.cache
def run_folder() -> Path:
    """One for this process, made at the first call."""
    home = _home()
    sweep(home)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=home)).resolve()
    unprivileged().own(folder)
    held = _lock(folder)
    watcher = _keep(folder)
    at_end(functools.partial(_end, folder, held, watcher))
    return folder


def new_folder(name: str) -> Path:
    """An empty folder for one server, that belongs to the account it runs as."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=run_folder()))
    unprivileged().own(folder)
    return folder


def at_end(action: Callable[[], object]) -> None:
    """Do this when this process ends, the latest first. A fork of ours ends without it."""
    owner = os.getpid()
    atexit.register(lambda: action() if os.getpid() == owner else None)


def _home() -> Path:
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
        return MEMORY
    return Path(tempfile.gettempdir())


def _lock(folder: Path) -> int:
    """Held as long as this process lives. Named only when it is held, so that no process finds it free."""
    early = folder / f"{LOCK}.new"
    held = os.open(early, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    early.rename(folder / LOCK)
    return held


def _keep(folder: Path) -> "subprocess.Popen[bytes]":
    """Start the process that waits for our end."""
    with (folder / LOCK).open("rb") as lock:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, folder],
            cwd="/",
            stdin=lock,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _end(folder: Path, held: int, watcher: "subprocess.Popen[bytes]") -> None:
    """Our own end, in good order."""
    keeper.clear(folder)
    os.close(held)
    watcher.wait()


def sweep(home: Path) -> None:
    """What a run left of which even the keeper was killed: its lock is free."""
    for lock in home.glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            keeper.clear(lock.parent)
