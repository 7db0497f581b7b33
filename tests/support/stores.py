"""The stores that every conformance and model test runs on: a new one adds one entry to STORES."""

from collections.abc import Callable
from pathlib import Path

from windlass.store.clock import Clock
from windlass.store.contract import Store
from windlass.store.open import open_store

Opener = Callable[[Path, Clock], Store]


def sqlite_file(folder: Path, clock: Clock) -> Store:
    """A file of its own. Relaxed, because no test here cuts the power."""
    return open_store(f"sqlite:///{folder}/windlass.db?durability=relaxed", clock=clock)


STORES: dict[str, Opener] = {"sqlite": sqlite_file}
"""Name → how to open the store that lives in a test's own folder; opening it twice gives the same jobs."""
