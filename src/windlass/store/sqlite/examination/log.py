"""The write-ahead log: how long it is, and who keeps it from being taken into the database."""

from collections.abc import Iterator
from pathlib import Path

from windlass.store.examination import Finding, ok, size, warning
from windlass.store.sqlite.examination.file import companion

LONG_LOG = 128 * 1024**2
"""Twice the length to which it is cut whenever nobody reads: longer means that somebody always does."""
LOCKS = Path("/proc/locks")
READERS = range(123, 128)
"""The bytes of the -shm file that readers lock."""


def check_log(path: Path, limit: int = LONG_LOG) -> Iterator[Finding]:
    """A reader that never ends holds the log back: it grows with every write, until the disk is full."""
    log = companion(path, "-wal")
    length = log.stat().st_size if log.exists() else 0
    if length <= limit:
        yield ok("log", f"the write-ahead log has {size(length)}")
        return
    pids = readers(path)
    names = ", ".join(f"{pid} ({_name(pid)})" for pid in pids)
    yield warning(
        "log",
        f"the write-ahead log has grown to {size(length)}: a transaction that stays open holds it back"
        + (f"; process {names} reads now" if pids else ""),
        "end the program that reads for so long (a shell, a back-up); the log is cut after the next writes",
    )


def readers(path: Path, locks: Path = LOCKS) -> list[int]:
    """The processes that are inside a read transaction now, as far as the system tells (Linux)."""
    index = companion(path, "-shm")
    if not locks.exists() or not index.exists():
        return []
    inode, found = str(index.stat().st_ino), set()
    for line in locks.read_text().splitlines():
        # 1: POSIX ADVISORY READ 1234 fe:00:5678 124 124; one that waits has "->" as its second word.
        words = line.split()
        if len(words) == 8 and words[5].rpartition(":")[2] == inode and int(words[6]) in READERS:
            found.add(int(words[4]))
    return sorted(pid for pid in found if pid > 0)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"
