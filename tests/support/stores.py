"""The stores that every conformance and model test runs on: a new one adds one entry to STORES."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from windlass.store.clock import Clock
from windlass.store.contract import Store
from windlass.store.open import open_memory, open_store


class Kind(NamedTuple):
    """A kind of store, and what it can do: tests ask for that, not for names."""

    open: Callable[[Path, Clock], Store]
    """Open the store that lives in a test's own folder."""
    lasting: bool = True
    """Whether the jobs are there after closing and opening again."""


def sqlite_file(folder: Path, clock: Clock) -> Store:
    """A file of its own. Relaxed, because no test here cuts the power."""
    return open_store(f"sqlite:///{folder}/windlass.db?durability=relaxed", clock=clock)


def sqlite_file_by_stdlib(folder: Path, clock: Clock) -> Store:
    """The same, through the library that Python brings."""
    return open_store(f"sqlite:///{folder}/windlass.db?durability=relaxed&driver=sqlite3", clock=clock)


def sqlite_memory(folder: Path, clock: Clock) -> Store:
    """In the memory of the test's own process: what `App.testing()` has."""
    return open_memory(clock=clock)


STORES: dict[str, Kind] = {
    "sqlite": Kind(sqlite_file),
    "sqlite-stdlib": Kind(sqlite_file_by_stdlib),
    "sqlite-memory": Kind(sqlite_memory, lasting=False),
}

LASTING = sorted(name for name, kind in STORES.items() if kind.lasting)

HOSTS: dict[str, Callable[[Path], Any]] = {
    "sqlite-stdlib": lambda folder: sqlite3.connect(folder / "windlass.db"),
}
"""Of stores that can take part in a caller's transaction: name → a caller's connection, with commit and rollback."""
