"""Disks that are full on command, and have room again on command."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

SIZE = 3 * 2**20
"""Bytes of the small disk: less than it takes for the log to be written back and begun anew."""


class Disk(Protocol):
    """A folder for the database; `pids` are the processes besides ours that it is full for."""

    folder: Path
    problem: str

    def fill(self, *pids: int) -> None: ...

    def free(self, *pids: int) -> None: ...


class SmallDisk:
    """A file system of its own, in memory."""

    problem = "is full"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, *pids: int) -> None:
        with self._filler.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return

    def free(self, *pids: int) -> None:
        self._filler.unlink()


class ShortFiles:
    """For those who may not mount: no file may grow beyond what the log has now."""

    problem = "failed: disk I/O error"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, *pids: int) -> None:
        self._limit((self.folder / "jobs.db-wal").stat().st_size, pids)

    def free(self, *pids: int) -> None:
        self._limit(resource.RLIM_INFINITY, pids)

    def _limit(self, size: int, pids: tuple[int, ...]) -> None:
        for pid in (os.getpid(), *pids):
            hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """Only root may mount."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def short_files(folder: Path) -> Iterator[Disk]:
    folder.mkdir()
    disk = ShortFiles(folder)
    try:
        yield disk
    finally:
        disk.free()


def may_mount() -> bool:
    """Whether this process is root, on a system that has tmpfs, outside a container that forbids it."""
    if os.geteuid() != 0:
        return False
    tried = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    return tried.returncode == 0
