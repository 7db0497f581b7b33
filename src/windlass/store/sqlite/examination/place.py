"""The place of the file: its address, its file system, the room on the disk."""

import os
from collections.abc import Iterator
from pathlib import Path

from windlass.store.examination import Finding, note, ok, problem, size, warning
from windlass.store.sqlite.address import DURABILITY, Address
from windlass.store.sqlite.filesystem import NETWORK, file_system_of

MOUNTS = Path("/proc/self/mountinfo")
MEMORY = frozenset({"tmpfs", "ramfs"})
LAYERED = frozenset({"overlay", "aufs"})
LITTLE_ROOM = 1024**3
NO_ROOM = 64 * 1024**2
"""As much as the write-ahead log alone may take."""


def check_durability(address: Address) -> Iterator[Finding]:
    """What this address asks for. It is no property of the file: each process has it from its own address."""
    setting = f"synchronous={DURABILITY[address.durability]}"
    if address.durability == "full":
        yield ok("durability", f"an accepted job is flushed to the disk ({setting})")
    else:
        yield warning(
            "durability",
            f"?durability={address.durability} ({setting}): a power cut may lose the jobs accepted last, "
            "the crash of a process does not",
            "leave the option away to have every accepted job flushed",
        )


def check_file_system(address: Address, mounts: Path = MOUNTS) -> Iterator[Finding]:
    """Whether the kind of file system keeps locks, and keeps files."""
    folder = address.path.parent
    kind = file_system_of(folder, mounts)
    if kind is None:
        yield note("file system", "this system does not tell its kind; SQLite needs a local disk")
    elif kind in NETWORK and address.allow_network_fs:
        yield warning(
            "file system",
            f"{folder} is on {kind}, a network file system, and ?allow_network_fs=true lets that pass",
            "put the file on a local disk: SQLite loses data here",
        )
    elif kind in NETWORK:
        yield problem(
            "file system",
            f"{folder} is on {kind}, a network file system, where SQLite loses data; Windlass refuses it",
            "put the file on a local disk, or use PostgreSQL for several machines",
        )
    elif kind in MEMORY:
        yield warning(
            "file system",
            f"{folder} is on {kind}: it is memory, and every job is gone when the machine stops",
            "put the file on a disk",
        )
    elif kind in LAYERED:
        yield warning(
            "file system",
            f"{folder} is on {kind}, the layer of a container: the file goes when the container is removed",
            "put the file on a volume that outlives the container",
        )
    else:
        yield ok("file system", f"{kind}, local")


def check_room(folder: Path) -> Iterator[Finding]:
    """Room on the disk; without any, jobs are refused and outcomes wait."""
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    advice = "make room: on a full disk jobs are refused (none is lost)"
    if free < NO_ROOM:
        yield problem("disk", f"only {size(free)} are free", advice)
    elif found.f_files and not found.f_favail:
        yield problem("disk", "the file system has no room for another file (no inodes)", advice)
    elif free < LITTLE_ROOM:
        yield warning("disk", f"only {size(free)} are free", advice)
    else:
        yield ok("disk", f"{size(free)} are free")
