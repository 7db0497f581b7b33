"""Hand-ins of one process that come while another is on its way: they go together, by one statement and one flush."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence

from windlass.core.job import Enqueued, NewJob
from windlass.errors import StoreUnavailable
from windlass.store.postgres.enqueue import MOST_TEXT

Store = Callable[[Sequence[NewJob]], Awaitable[list[Enqueued]]]
MOST_TOGETHER = 1000
"""Jobs that go by one statement because they came at the same time; one hand-in is never taken apart."""


class Gather:
    """Those of one event loop. Who comes alone does not wait for company."""

    def __init__(self) -> None:
        self._busy = False
        self._waiting: dict[Hashable, list[_Part]] = defaultdict(list)
        self._task: asyncio.Task[None] | None = None

    async def add(self, kind: Hashable, jobs: Sequence[NewJob], store: Store, seconds: float) -> list[Enqueued]:
        """Store the jobs, alone or with others of their kind; who waits for others waits no longer than so long."""
        if self._busy:
            part = _Part(jobs, store)
            self._waiting[kind].append(part)
            try:
                async with asyncio.timeout(seconds):
                    return await part.answer
            except TimeoutError:
                raise StoreUnavailable(f"no answer within {seconds:g} s", maybe_done=part.begun) from None
        self._busy = True
        try:
            return await store(jobs)
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
            # Somebody may have ended every task of this loop, and this one with them: nobody may wait for it then.
            self._busy = False
            for part in [*some, *(part for parts in self._waiting.values() for part in parts)]:
                part.fail(StoreUnavailable("broken off on the way to the store", maybe_done=part.begun))
            self._waiting.clear()

    def _next(self) -> "list[_Part]":
        """Those of one kind that go next, as many as may go together; the first in any case."""
        kind = next(iter(self._waiting))
        parts = self._waiting.pop(kind)
        jobs = text = some = 0
        for part in parts:
            jobs, text = jobs + len(part.jobs), text + part.text
            if some and (jobs > MOST_TOGETHER or text > MOST_TEXT):
                break
            some += 1
        if rest := parts[some:]:
            self._waiting[kind] = rest
        return parts[:some]


class _Part:
    """One hand-in that waits."""

    def __init__(self, jobs: Sequence[NewJob], store: Store) -> None:
        self.jobs = jobs
        self.store = store
        self.text = sum(len(job.payload) for job in jobs)
        self.begun = False
        self.answer: asyncio.Future[list[Enqueued]] = asyncio.get_running_loop().create_future()

    def tell(self, answers: list[Enqueued]) -> None:
        if not self.answer.done():
            self.answer.set_result(answers)

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


async def _store_together(parts: list[_Part]) -> None:
    wanted = [part for part in parts if not part.answer.done()]
    for part in wanted:
        part.begun = True
    try:
        answers = iter(await wanted[0].store([job for part in wanted for job in part.jobs]) if wanted else [])
    except StoreUnavailable as error:
        for part in wanted:
            part.fail(error)
        return
    except Exception:
        # One of them is not like the others: none was stored, so each may try for itself.
        for part in wanted:
            await _store_alone(part)
        return
    for part in wanted:
        part.tell([next(answers) for _ in part.jobs])


async def _store_alone(part: _Part) -> None:
    try:
        part.tell(await part.store(part.jobs))
    except Exception as error:
        part.fail(error)
