"""The producer of one store: enqueues jobs of every kind at a steady rate, and reads results, until SIGTERM.

It never gives up on a job: refused or unknown, the same one is enqueued again. Accepted ids go to a file, each with
how it must end: done, failed (dead letter), any (it may be cancelled).
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.soak.jobs import add_one, apart, app, doomed, flaky, large, nap, parent, pause, quick, snooze, talk

from windlass import EnqueueFailed, EnqueueUnknown, NewJob, StoreUnavailable, WindlassError, chain

SEED, RATE = sys.argv[1], float(sys.argv[2])
ACCEPTED = Path(os.environ["SOAK_ACCEPTED"])
RESULT_TIMEOUT = 60
BLOCKING_SHARE = 0.1
"""Of the calls that go through the blocking client."""
READ_SHARE = 0.2
"""Of the jobs whose result is read."""
LOOK_EVERY = 10.0
"""Seconds between two looks at lists and counts, as an operator takes."""

dice = random.Random(SEED)
count = iter(range(10**9))

Made = tuple[str, list[NewJob]]
KINDS: list[tuple[int, Callable[[], Made]]] = [
    (30, lambda: ("done", [quick.job(next(count))])),
    (12, lambda: ("done", [nap.job(dice.uniform(0, 0.05))])),
    (8, lambda: ("done", [pause.job(dice.uniform(0, 0.3))])),
    (3, lambda: ("done", [pause.job(dice.uniform(1, 4))])),
    (5, lambda: ("done", [apart.job(next(count))])),
    (5, lambda: ("done", [flaky.job()])),
    (4, lambda: ("failed", [doomed.job()])),
    (4, lambda: ("done", [talk.job()])),
    (2, lambda: ("done", [snooze.job()])),
    (3, lambda: ("done", [parent.job()])),
    (1, lambda: ("done", [large.job(str(next(count)) + "x" * 80_000)])),
    (6, lambda: ("done", [quick.using(delay=dice.uniform(1, 20)).job(1)])),
    (
        1,
        lambda: (
            "any",
            [pause.using(concurrency_key="b").job(2), quick.using(concurrency_key="b", expires=1).job(1)],
        ),
    ),
    (6, lambda: ("done", [quick.using(idempotency_key=f"once {next(count)}", idempotency_window=60).job(1)])),
    (
        4,
        lambda: ("done", [quick.using(idempotency_key=f"seldom {dice.randrange(50)}", idempotency_window=30).job(1)]),
    ),
    (4, lambda: ("any", [quick.using(idempotency_key="last", on_conflict="replace", delay=1).job(1)])),
    (4, lambda: ("done", [nap.using(concurrency_key=f"one {dice.randrange(10)}", key_limit=1).job(0.02)])),
    (4, lambda: ("done", [quick.using(concurrency_key=f"new {next(count)}", key_rate="5/s").job(1)])),
    (4, lambda: ("done", [quick.using(queue="limited").job(next(count))])),
    (4, lambda: ("done", [quick.using(queue="fair", tenant=f"t{next(count) // 200}").job(1)])),
    (2, lambda: ("done", [quick.using(queue=dice.choice(["default", "other"])).job(next(count)) for _ in range(10)])),
]
CHAIN_EVERY = 25
"""One chain after this number of other calls."""


class Producer:
    """Enqueues, remembers what was accepted, reads some results."""

    def __init__(self) -> None:
        self._file = ACCEPTED.open("a", buffering=1)
        self._reading: set[asyncio.Task[None]] = set()
        self.stopping = asyncio.Event()
        self.wrong = 0
        """Results that are not what the job returned."""

    async def run(self) -> None:
        """One call after the other, RATE jobs a second on average."""
        due = time.monotonic()
        looked = due
        for number in range(10**9):
            if self.stopping.is_set():
                break
            jobs = await (self._chain() if number % CHAIN_EVERY == 0 else self._one_call())
            due = max(due + jobs / RATE, time.monotonic() - 5)
            if time.monotonic() > looked + LOOK_EVERY:
                looked = time.monotonic()
                await _look()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await asyncio.gather(*self._reading)
        await app.aclose()

    async def _one_call(self) -> int:
        (make,) = dice.choices([kind for _, kind in KINDS], [weight for weight, _ in KINDS])
        expected, jobs = make()
        blocking = dice.random() < BLOCKING_SHARE
        call = (lambda: asyncio.to_thread(app.enqueue_many, jobs)) if blocking else (lambda: app.aenqueue_many(jobs))
        for handle, job in zip(await _persist(call), jobs, strict=True):
            # Another id is that of the job which holds the idempotency key.
            if handle.id == job.id:
                self._accept(handle.id, expected)
                if expected != "any" and dice.random() < READ_SHARE:
                    self._read(handle)
        return len(jobs)

    async def _chain(self) -> int:
        made = chain(add_one.job(1), add_one, add_one.using(queue="other"))
        handle = await _persist(made.aenqueue)
        for link in handle.links:
            self._accept(link.id, "done")
        self._read(handle, 4)
        return len(handle.links)

    def _accept(self, id_: str, expected: str) -> None:
        self._file.write(f"{id_} {expected}\n")

    def _read(self, handle: Any, wanted: object = None) -> None:
        task = asyncio.create_task(self._result(handle, wanted))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _result(self, handle: Any, wanted: object) -> None:
        """Errors are printed, not raised: the ledger alone says what was lost."""
        try:
            result = await handle.aresult(timeout=RESULT_TIMEOUT)
            if wanted is not None and result != wanted:
                self.wrong += 1
                print(f"wrong result of {handle.id}: {result!r}", flush=True)
        except (WindlassError, TimeoutError) as error:
            print(f"no result of {handle.id}: {error!r}", flush=True)


async def _persist(call: Callable[[], Any]) -> Any:
    while True:
        try:
            return await call()
        except (EnqueueFailed, EnqueueUnknown, StoreUnavailable) as error:
            print(f"again: {error!r}", flush=True)
            await asyncio.sleep(0.2)


async def _look() -> None:
    try:
        await app.stats.acounts()
        await app.jobs.alist(status="dead", limit=20)
        await app.workers.alist()
    except WindlassError as error:
        print(f"no list: {error!r}", flush=True)


async def main() -> int:
    """Zero unless a result was wrong."""
    producer = Producer()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, producer.stopping.set)
    await producer.run()
    return 1 if producer.wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
