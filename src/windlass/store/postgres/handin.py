"""The way in: hand-ins of one process that come while another is on its way go together, by one statement."""

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Sequence
from weakref import WeakKeyDictionary

import msgspec

from windlass.core.job import Enqueued, NewJob
from windlass.core.queue import QueueSettings
from windlass.store.kinds import kind_of
from windlass.store.postgres import queues
from windlass.store.postgres.access import Access
from windlass.store.postgres.db import Db
from windlass.store.postgres.enqueue import Hint, are_alike, enqueue, enqueue_alike
from windlass.store.postgres.gather import Gather
from windlass.store.postgres.guest import on_our_own
from windlass.store.postgres.hints import Hints
from windlass.store.postgres.hosts import check_kind, visit


class HandIn:
    """Hands jobs in, and wakes who may want them."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._declared: dict[str, QueueSettings] = {}
        """What was written for the sake of a caller's transaction."""
        self._gathers: WeakKeyDictionary[asyncio.AbstractEventLoop, Gather] = WeakKeyDictionary()

    async def enqueue(self, access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """All or none."""
        if not jobs:
            return []
        if not are_alike(jobs):
            with self.telling({job.queue for job in jobs}) as hint:
                return await access.for_many(len(jobs)).write(lambda db: enqueue(db, jobs, hint))
        loop = asyncio.get_running_loop()
        gather = self._gathers.get(loop)
        if gather is None:
            gather = self._gathers[loop] = Gather()
        return await gather.add(
            kind_of(jobs[0]), jobs, lambda alike: self._enqueue_alike(access, alike), access.seconds
        )

    async def _enqueue_alike(self, access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with self.telling((jobs[0].queue,)) as hint:
            stored = await access.once(lambda db: enqueue_alike(db, jobs, hint))
            if stored is None:
                known = [msgspec.structs.replace(job, fresh="") for job in jobs]
                stored = await access.write(lambda db: enqueue(db, known, hint))
            return stored

    @contextlib.contextmanager
    def telling(self, queues: Collection[str]) -> Iterator[Hint]:
        """The hint for a hand-in; if that fails, what others had left to it is told all the same."""
        hint = self._hints.next(queues)
        try:
            yield hint
        except BaseException:
            if hint.given:
                self._hints.later(queues)
            raise
        if not hint.given:
            # Not before it is committed: who is woken too early finds nothing, and is not woken again.
            self._hints.later(queues)
        self._hints.hear()

    async def enqueue_inside(
        self, access: Access, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        """In the caller's own transaction. The hint goes with it: it is heard when they commit, and only then.

        What is declared does not: their transaction would hold the rows of queues, and others would wait for it.
        """

        async def work(db: Db) -> list[Enqueued]:
            hint = self._hints.always()
            answers = await enqueue_alike(db, jobs, hint) if jobs and are_alike(jobs) else None
            return await enqueue(db, jobs, hint) if answers is None else answers

        check_kind(connection)
        if access.server.known is None or self._declared != declared:
            await on_our_own(access.server, lambda: self._declare(access, declared))
        return await visit(access.server, connection, work)

    async def _declare(self, access: Access, declared: dict[str, QueueSettings]) -> None:
        if await access.read(lambda db: queues.undeclared(db, declared)):
            await access.write(lambda db: queues.declare(db, declared))
        self._declared = declared
