"""The machine of a Redis dies at any moment: what was acknowledged is there afterwards, and no call is half done.

A power cut keeps of the append-only file what was synced, and any part of what was written after that. With
`appendfsync always` Redis syncs before it answers: so a file that is cut anywhere behind the last answer is the worst
that can be left. That Redis does sync is its own promise, and not tested here.
"""

from collections.abc import Iterator
from random import Random

import msgspec
import pytest

from tests.faults.test_power import check_works_on, lost
from tests.faults.traffic import Book, make_traffic
from tests.support.parts import extended
from tests.support.servers.redis import RedisServer, new_redis
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import RunnerEnd

CUTS = 5
ANSWERS = 400
"""Between two cuts, about."""


@pytest.fixture
def redis_always() -> Iterator[RedisServer]:
    """One that syncs before it answers."""
    server = new_redis("appendfsync always\nauto-aof-rewrite-percentage 0")
    server.start()
    yield server
    server.remove()


class Cut(msgspec.Struct):
    """What was acknowledged at a moment, and how long the file was then."""

    book: Book
    size: int


class Writer:
    """Traffic, and moments at which the power may go."""

    def __init__(self, server: RedisServer, random: Random) -> None:
        self._server = server
        self._random = random
        self._next = random.randint(1, ANSWERS)
        self.book = Book()
        self.cuts: list[Cut] = []

    def enough(self) -> bool:
        """Asked after every answer."""
        if len(self.book.enqueued) >= self._next:
            self._next += self._random.randint(1, ANSWERS)
            # First the book, then the file: whatever is in the book is in this much of the file.
            book = self.book.copy()
            self.cuts.append(Cut(book, self._server.appended.stat().st_size))
        return len(self.cuts) >= CUTS  # several producers ask: another cut may have come meanwhile


async def open_again(server: RedisServer, survived: bytes) -> Store:
    """The machine is started again with so much of the file."""
    server.kill()
    with server.appended.open("r+b") as file:
        file.truncate(0)
        file.write(survived)
    server.start()
    return open_store(server.url)


@pytest.mark.parametrize("seed", [1, *extended([2, 3])])
async def test_what_was_acknowledged_survives_the_death_of_the_machine(redis_always: RedisServer, seed: int) -> None:
    random = Random(seed)
    writer = Writer(redis_always, random)
    store = open_store(redis_always.url)
    await make_traffic(store, writer.book, random, writer.enough)
    await store.close()
    whole = redis_always.appended.read_bytes()
    assert any(cut.book.settled for cut in writer.cuts)
    for cut in writer.cuts:
        survived = random.randint(cut.size, min(len(whole), cut.size + 20_000))
        store = await open_again(redis_always, whole[:survived])
        try:
            assert await lost(store, cut.book) == [], f"{survived - cut.size} bytes more than was acknowledged"
        finally:
            await store.close()


async def test_work_goes_on_after_a_log_that_ends_in_the_midst_of_a_call(
    redis_always: RedisServer,
) -> None:
    random = Random(4)
    writer = Writer(redis_always, random)
    store = open_store(redis_always.url)
    await make_traffic(store, writer.book, random, writer.enough)
    await store.close()
    whole = redis_always.appended.read_bytes()
    store = await open_again(redis_always, whole[: -random.randint(10, 3000)])
    try:
        # The runner is gone with the machine, though its lease has not lapsed.
        await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
        await check_works_on(store)
    finally:
        await store.close()


async def test_a_shorter_log_has_lost_something(redis_always: RedisServer) -> None:
    """The proof that the tests above can fail."""
    writer = Writer(redis_always, Random(5))
    store = open_store(redis_always.url)
    await make_traffic(store, writer.book, Random(5), writer.enough)
    await store.close()
    first, last = writer.cuts[0], writer.cuts[-1]
    store = await open_again(redis_always, redis_always.appended.read_bytes()[: first.size])
    try:
        assert await lost(store, last.book)
    finally:
        await store.close()
