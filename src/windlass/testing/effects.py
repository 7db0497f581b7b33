"""Effects on the outside world, recorded where a killed process leaves them."""

import os
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import msgspec


class Effects:
    """A list of effects in a file, for fakes of services that handlers call in a crash test.

    `effects("charge", 42)` records one; the process may be killed right after it. Iterating gives tuples, in order:
    `list(effects) == [("charge", 42)]`. What is recorded must be JSON.
    """

    def __init__(self) -> None:
        self._file, path = tempfile.mkstemp()
        # Without its name: forked processes share it, and nothing is left behind.
        os.unlink(path)
        weakref.finalize(self, os.close, self._file)

    def __call__(self, name: str, /, *details: Any) -> None:
        os.lseek(self._file, 0, os.SEEK_END)
        os.write(self._file, msgspec.json.encode([name, *details]) + b"\n")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter([tuple(msgspec.json.decode(line)) for line in self._lines()])

    def __len__(self) -> int:
        return len(self._lines())

    def __repr__(self) -> str:
        return f"Effects({list(self)!r})"

    def _lines(self) -> list[bytes]:
        return os.pread(self._file, os.fstat(self._file).st_size, 0).splitlines()

    def clear(self) -> None:
        """Forget all: the `reset` of a crash test."""
        os.ftruncate(self._file, 0)
