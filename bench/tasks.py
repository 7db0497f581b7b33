"""The tasks of the bench: those of `windlass bench`, and more. The store is WINDLASS_STORE, as for any app."""

import os
import time

from windlass.bench.tasks import FILLER as FILLER
from windlass.bench.tasks import app as app
from windlass.bench.tasks import noop as noop

STAMPS = "WINDLASS_BENCH_STAMPS"


@app.task
def noop_thread(n: int, s: str) -> None:
    """Nothing, in a thread."""


@app.task
async def link(n: int, s: str) -> int:
    """Nothing, but with a result for the next link."""
    return n


@app.task
async def ended() -> None:
    """The callback of a group."""


@app.task
async def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with open(os.environ[STAMPS], "a") as file:  # noqa: ASYNC230 - peers do just this, and the stamp is taken
        file.write(f"{sent} {started}\n")
