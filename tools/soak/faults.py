"""The faults of a soak: a deck of them, shuffled by a seed, one each time it is asked."""

import random
from collections.abc import Callable, Iterator, Sequence

from tools.soak.workers import StoreRun

Fault = tuple[str, Callable[[], None]]


def faults(runs: Sequence[StoreRun], seed: int) -> Iterator[Fault]:
    """Every fault of the deck comes before one comes again."""
    dice = random.Random(seed)
    while True:
        deck = [fault for run in runs for fault in _of(run)]
        dice.shuffle(deck)
        yield from deck


def _of(run: StoreRun) -> list[Fault]:
    store = run.store
    found: list[Fault] = [
        (f"{store.name}: a worker stops and starts", run.stop_and_start),
        (f"{store.name}: kill -9 to a runner", run.kill_runner),
        (f"{store.name}: kill -9 to a worker", run.kill_worker),
    ]
    if store.has_server:
        found += [(f"{store.name}: all connections are cut", store.cut)] * 2
        found += [(f"{store.name}: the server restarts", store.restart)]
    return found
