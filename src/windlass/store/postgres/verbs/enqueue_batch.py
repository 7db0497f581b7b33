"""Enqueue: batched per event loop, or in a caller's transaction."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from weakref import WeakKeyDictionary

import msgspec

from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.drive import running_loop, to_loop
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.caller_transaction import check_kind, on_own_connection, run_inside
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.connection.deadline import SLACK_SECONDS
from windlass.store.postgres.connection.hints import Hint, Hints
from windlass.store.postgres.connection.session import CANCEL_SECONDS
from windlass.store.postgres.verbs.enqueue import MAX_TEXT, are_alike, enqueue, enqueue_alike
from windlass.store.postgres.verbs.enqueue_direct import DirectEnqueue
from windlass.store.rows import shared_values
from windlass.store.sql.queues import declare, is_undeclared

Store = Callable[[Sequence[NewJob], float | None], Awaitable[list[Enqueued]]]
"""Stores jobs, until a moment of the loop's clock if one is given."""
MAX_TOGETHER = 1000
"""Jobs of several enqueues in one statement; the jobs of one enqueue are never split."""


class Batcher:
    """Batches enqueues per event loop; a lone enqueue is never delayed."""

    def __init__(self) -> None:
        self._busy = False
        self._waiting: dict[Hashable, list[_Part]] = defaultdict(list)
        self._task: asyncio.Task[None] | None = None

    async def add(self, kind: Hashable, jobs: Sequence[NewJob], store: Store, seconds: float) -> list[Enqueued]:
        """Store the jobs, alone or in a batch; waits at most `seconds` for other batches."""
        if self._busy:
            part = _Part(jobs, store, seconds)
            self._waiting[kind].append(part)
            try:
                async with part.limit:
                    return await part.answer
            except TimeoutError:
                raise StoreUnavailable(f"no answer within {seconds:g} s", maybe_done=part.begun) from None
        self._busy = True
        try:
            return await store(jobs, None)
        finally:
            if self._waiting:
                self._task = asyncio.get_running_loop().create_task(self._go_on())
            else:
                self._busy = False

    async def _go_on(self) -> None:
        some: list[_Part] = []
        try:
            while self._waiting:
                some = self._next()
                await _store_together(some)
        finally:
            # If all tasks of this loop were cancelled, no caller may go on waiting for this one.
            self._busy = False
            for part in [*some, *(part for parts in self._waiting.values() for part in parts)]:
                part.fail(StoreUnavailable("interrupted on the way to the store", maybe_done=part.begun))
            self._waiting.clear()

    def _next(self) -> "list[_Part]":
        """The next batch: enqueues of one kind, at least one."""
        kind = next(iter(self._waiting))
        parts = self._waiting.pop(kind)
        jobs = text = some = 0
        for part in parts:
            jobs, text = jobs + len(part.jobs), text + part.text
            if some and (jobs > MAX_TOGETHER or text > MAX_TEXT):
                break
            some += 1
        if rest := parts[some:]:
            self._waiting[kind] = rest
        return parts[:some]


class _Part:
    """An enqueue that waits for its batch."""

    def __init__(self, jobs: Sequence[NewJob], store: Store, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self.jobs = jobs
        self.store = store
        self.until = loop.time() + seconds
        self.limit = asyncio.timeout_at(self.until)
        self.text = sum(len(job.payload) for job in jobs)
        self.begun = False
        self.answer: asyncio.Future[list[Enqueued]] = loop.create_future()

    def begin(self) -> None:
        """Mark the enqueue as in flight: from now on the server's answer is awaited, even after the deadline."""
        self.begun = True
        self.limit.reschedule(self.until + CANCEL_SECONDS + SLACK_SECONDS)

    def succeed(self, answers: list[Enqueued]) -> None:
        if not self.answer.done():
            self.answer.set_result(answers)

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


async def _store_together(parts: list[_Part]) -> None:
    wanted = [part for part in parts if not part.answer.done()]
    if not wanted:
        return
    for part in wanted:
        part.begin()
    # Until the last caller's deadline, and no longer: jobs for which no caller waits must not be stored.
    until = max(part.until for part in wanted)
    try:
        answers = iter(await wanted[0].store([job for part in wanted for job in part.jobs], until))
    except StoreUnavailable as error:
        for part in wanted:
            part.fail(error)
        return
    except Exception:
        # One of the enqueues failed, so none was stored: try each alone.
        for part in wanted:
            await _store_alone(part)
        return
    for part in wanted:
        part.succeed([next(answers) for _ in part.jobs])


async def _store_alone(part: _Part) -> None:
    try:
        part.succeed(await part.store(part.jobs, part.until))
    except Exception as error:
        part.fail(error)


class Hinting:
    """Surrounds an enqueue; its hint is sent with the statement or, if it must be delayed, later."""

    __slots__ = ("_hint", "_hints", "_queues")

    def __init__(self, hints: Hints, queues: Collection[str]) -> None:
        self._hints = hints
        self._queues = queues
        self._hint = hints.next(queues)

    def __enter__(self) -> Hint:
        return self._hint

    def __exit__(self, kind: object, *_: object) -> None:
        failed = kind is not None
        if failed == self._hint.given:
            # Only now, after the commit: a worker that is woken earlier finds nothing.
            self._hints.later(self._queues)
        if not failed:
            self._hints.notify()


class Enqueuer:
    """Stores jobs and wakes workers."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self.direct = DirectEnqueue(hints)
        self._declared: dict[str, QueueSettings] = {}
        """Queues that were declared for callers' transactions."""
        self._batchers: WeakKeyDictionary[asyncio.AbstractEventLoop, Batcher] = WeakKeyDictionary()

    async def enqueue(self, access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store all jobs or none."""
        if not jobs:
            return []
        if running_loop() is not None:
            return await self._enqueue(access, jobs)
        began = since_boot()
        stored = self.direct.enqueue(access, jobs)
        if stored is None:
            left = access.seconds - (since_boot() - began) / SECOND
            await to_loop()
            stored = await self._enqueue(access.until(asyncio.get_running_loop().time() + left), jobs)
            await self.direct.lend(access.server)
        return stored

    async def _enqueue(self, access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
        if not are_alike(jobs):
            with self.hinting({job.queue for job in jobs}) as hint:
                return await access.for_many(len(jobs)).write(lambda db: _enqueue(db, jobs, hint))
        loop = asyncio.get_running_loop()
        batcher = self._batchers.get(loop)
        if batcher is None:
            batcher = self._batchers[loop] = Batcher()
        return await batcher.add(
            shared_values(jobs[0]),
            jobs,
            lambda alike, until: self._enqueue_alike(access.until(until), alike),
            access.seconds,
        )

    async def _enqueue_alike(self, access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with self.hinting((jobs[0].queue,)) as hint:
            stored = await access.once(lambda db: enqueue_alike(db, jobs, hint))
            if stored is None:
                known = [msgspec.structs.replace(job, fresh="") for job in jobs]
                stored = await access.write(lambda db: _enqueue(db, known, hint))
            return stored

    def hinting(self, queues: Collection[str]) -> "Hinting":
        """Surround an enqueue with its hint. If the enqueue fails, the delayed hints that it replaced are sent."""
        return Hinting(self._hints, queues)

    async def enqueue_inside(
        self, access: Access, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        """Store jobs in the caller's transaction; the server sends the hint when the caller commits.

        Queues are declared in another transaction, because the caller's would keep their rows locked.
        """

        async def work(db: Db) -> list[Enqueued]:
            hint = self._hints.always()
            answers = await enqueue_alike(db, jobs, hint) if jobs and are_alike(jobs) else None
            return await enqueue(db, jobs, hint) if answers is None else answers

        await self.prepare_inside(access, connection, declared)
        return await run_inside(access.server, connection, work)

    async def prepare_inside(
        self, access: Access, connection: object, declared: dict[str, QueueSettings] | None = None
    ) -> None:
        """Before the caller's connection is used, find out which database is the store's, and declare queues."""
        check_kind(connection)
        if access.server.identity is None or self._declared != (self._declared if declared is None else declared):
            await on_own_connection(access.server, lambda: self._declare(access, declared or {}))

    async def _declare(self, access: Access, declared: dict[str, QueueSettings]) -> None:
        if await access.read(lambda db: is_undeclared(db, declared)):
            await access.write(lambda db: declare(db, declared))
        self._declared = declared


async def _enqueue(db: Db, jobs: Sequence[NewJob], hint: Hint) -> list[Enqueued]:
    """Store jobs in a transaction of the store.

    After a call whose wait for a standby was cancelled, a repeat finds the jobs stored, but the standby may not have
    them. So the repeat writes something, and thereby waits for the standby.
    """
    answers = await enqueue(db, jobs, hint)
    if all(answer.existing for answer in answers):
        await db.rows("share_lock_queues", {"names": sorted({job.queue for job in jobs})})
    return answers
