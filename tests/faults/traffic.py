"""Jobs enqueued, claimed and settled through the contract, with a book of what the store has acknowledged."""

import asyncio
from collections.abc import Callable
from random import Random

import msgspec

from tests.support.seed import completed, enqueue, open_lease, request
from windlass.store.clock import SystemClock
from windlass.store.contract import Store

PRODUCERS = 3


class Book(msgspec.Struct):
    """What the store said is done: ids, in the order of the answers."""

    enqueued: list[str] = []
    settled: list[str] = []

    def copy(self) -> "Book":
        return Book(list(self.enqueued), list(self.settled))


class AfterReboot(SystemClock):
    """The clock of a machine that was started again: leases of before the cut mean nothing to it."""

    def __init__(self) -> None:
        self.boot = "after the cut"


async def make_traffic(store: Store, book: Book, random: Random, enough: Callable[[], bool]) -> None:
    """Producers and a worker, until it is enough."""
    producers = [_produce(store, book, random, enough) for _ in range(PRODUCERS)]
    await asyncio.gather(_work(store, book, random, enough), *producers)


async def _produce(store: Store, book: Book, random: Random, enough: Callable[[], bool]) -> None:
    while not enough():
        book.enqueued += await enqueue(store, random.randint(1, 4), payload=f'"{"x" * random.randint(0, 2000)}"')


async def _work(store: Store, book: Book, random: Random, enough: Callable[[], bool]) -> None:
    await open_lease(store)
    while not enough():
        jobs = await store.jobs.claim(request(limit=random.randint(1, 9)))
        if jobs:
            await store.jobs.settle([completed(job) for job in jobs])
            book.settled += [job.id for job in jobs]


async def work_off(store: Store) -> int:
    """Put back what the dead held, then run everything; how many jobs there were to run."""
    await store.leases.rescue(100)
    await open_lease(store, "after")
    done = 0
    while jobs := await store.jobs.claim(request("after")):
        await store.jobs.settle([completed(job) for job in jobs])
        done += len(jobs)
    return done
