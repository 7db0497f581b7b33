"""A disk that forgets: what was written but not synced is lost when the power is cut.

SQLite writes through it to a real folder, so everything works as ever. Beside that it keeps what a disk would have
kept: the synced content of each file, and the writes since. A cut is a copy of that, taken between two operations.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import apsw
import msgspec

Write = tuple[int, bytes | None]
"""Where, and what; without content the file ends there."""


class Platter:
    """One file, as the disk would have it."""

    def __init__(self) -> None:
        self.synced: bytearray | None = None
        self.unsynced: list[Write] = []

    def sync(self) -> None:
        self.synced = self.after(self.unsynced)
        self.unsynced = []

    def after(self, writes: Sequence[Write]) -> bytearray | None:
        """The content with these writes done; None while nothing has ever reached the disk."""
        if self.synced is None and not writes and self.unsynced:
            return None
        content = bytearray(self.synced or b"")
        for offset, data in writes:
            if data is None:
                del content[offset:]
            else:
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
        return content


class Survivors(msgspec.Struct, frozen=True):
    """Which unsynced writes reach the disk by luck, in what order they did so."""

    name: str

    def choose(self, writes: Sequence[Write], random: Random) -> list[Write]:
        match self.name:
            case "none":
                return []
            case "the first":
                return list(writes[: random.randint(0, len(writes))])
            case _:
                return [_torn(write, random) for write in writes if random.random() < 0.5]


def _torn(write: Write, random: Random) -> Write:
    """Half of the writes arrive only up to a sector."""
    offset, data = write
    if data is None or random.random() < 0.5:
        return write
    return offset, data[: 512 * random.randint(0, len(data) // 512)]


SURVIVORS = (Survivors("none"), Survivors("the first"), Survivors("some, torn"))


class Cut(msgspec.Struct, frozen=True):
    """What is on the disk after the power was cut."""

    operation: int
    survivors: str
    files: dict[str, bytes]
    unsynced: int

    def restore(self, folder: Path) -> None:
        """Put it where it can be opened again."""
        folder.mkdir()
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


class ForgetfulDisk(apsw.VFS):
    """Every file that SQLite opens through it, and the cuts that were planned."""

    def __init__(self, name: str, random: Random, plan: Sequence[int], note: Callable[[Cut], None]) -> None:
        super().__init__(name, "")
        self.name = name
        self._random = random
        self._plan = sorted(plan, reverse=True)
        self._note = note
        self._guard = threading.RLock()
        self._platters: dict[str, Platter] = {}
        self._operations = 0

    @property
    def done(self) -> bool:
        """Whether every planned cut has been made."""
        return not self._plan

    def connection(self, path: str, **options: Any) -> apsw.Connection:
        """What stands in for apsw.Connection."""
        return apsw_connection(path, vfs=self.name, **options)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None:
            return apsw.VFSFile("", name, flags)
        with self._guard:
            return ForgetfulFile(self, self._platters.setdefault(path, Platter()), name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self._guard:
            self._platters.pop(filename, None)
            super().xDelete(filename, syncdir)

    def operate(self, change: Callable[[], None]) -> None:
        """One operation on one file; the power may be cut before it."""
        with self._guard:
            self._operations += 1
            if self._plan and self._operations >= self._plan[-1]:
                self._plan.pop()
                self._note(self._cut())
            change()

    def _cut(self) -> Cut:
        survivors = self._random.choice(SURVIVORS)
        files = {}
        for path, platter in self._platters.items():
            content = platter.after(survivors.choose(platter.unsynced, self._random))
            if content is not None:
                files[Path(path).name] = bytes(content)
        unsynced = sum(len(platter.unsynced) for platter in self._platters.values())
        return Cut(self._operations, survivors.name, files, unsynced)


class ForgetfulFile(apsw.VFSFile):
    """One open file: writes go to the real one, and into the book of what is not synced."""

    def __init__(
        self, disk: ForgetfulDisk, platter: Platter, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._platter = platter

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.operate(functools.partial(self._platter.unsynced.append, (offset, bytes(data))))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._disk.operate(functools.partial(self._platter.unsynced.append, (newsize, None)))

    def xSync(self, flags: int) -> None:
        # The real disk need not be waited for: it is our book that counts.
        self._disk.operate(self._platter.sync)


apsw_connection = apsw.Connection
