"""app.queues: verbs on queues, each also with the prefix `a`."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Unpack

from windlass.client.groups.waking import cancel_jobs
from windlass.client.runtime.portal import blocking
from windlass.client.verbs.filters import each_page
from windlass.client.verbs.group import Verbs
from windlass.core.flow.queue import Queue, QueueOptions, QueueSettings, amended, settings, without
from windlass.core.moments import Duration, duration
from windlass.core.names import check_name
from windlass.core.status import WAITING, Status
from windlass.core.suggest import suggest
from windlass.errors import InvalidOption, QueueNotFound
from windlass.store.contract import OperatorStore, QueueStore
from windlass.store.records import JobFilter, Transition

PURGED = "purged"
"""The reason of jobs that `purge` cancelled."""


class Queues(Verbs):
    """Read queues, change, pause, close and empty them.

    Changes are kept in the store, and apply on all workers within a second. Verbs that take a `version` raise
    ChangedSince if the queue has another one by then, and change nothing.
    """

    async def aget(self, name: str) -> Queue:
        """One queue: its `declared` settings, what an operator `changed`, and the effective `rules`.

        Raises QueueNotFound, like every verb here but `add`, if it was never used, declared, added, changed or
        paused, and this app does not name it.
        """
        queues = await self._by_name()
        if check_name(name, "queue") not in queues and name not in self._home.queue_names:
            hint = suggest(name, [*queues, *self._home.queue_names])
            raise QueueNotFound(name, f"{hint}; `queues add` makes one before its first job")
        return queues.get(name, Queue(name=name))

    async def aadd(self, name: str) -> Queue:
        """Make a queue known before its first job, for example to pause it; an existing one is left as it is."""
        check_name(name, "queue")
        queues = await self._by_name()
        if name in queues:
            return queues[name]
        store = await self._home._ready()
        queue = await store.queues.change(name, QueueSettings(), QueueSettings())
        await self._audit("queue.add", name)
        return queue

    async def _by_name(self) -> dict[str, Queue]:
        return {queue.name: queue for queue in await self.alist()}

    async def aset(
        self, name: str, *, reset: Sequence[str] = (), version: str | None = None, **options: Unpack[QueueOptions]
    ) -> Queue:
        """Change settings of a queue; they override what the code declares. Other settings stay.

        "none" removes a `max_concurrency`, `rate_limit`, `timeout` or `ageing` that the code declares; `reset`
        restores it, of all settings that it names, before the others are changed. Entries of `retention` and
        `weights` are changed one by one.
        """
        said = checked_settings(reset, options)
        return await self._amend(
            name, lambda before: amended(without(before, reset) if reset else before, said), version
        )

    async def areset(self, name: str, *names: str, version: str | None = None) -> Queue:
        """Undo an operator's changes, or only those of the named settings."""
        return await self._amend(name, lambda before: without(before, names), version)

    async def _amend(self, name: str, amend: Callable[[QueueSettings], QueueSettings], version: str | None) -> Queue:
        """Compare-and-set on the operator's settings, repeated after a concurrent change."""
        while True:
            before = (await self.aget(name)).changed
            changed = amend(before)
            store = await self._home._ready()
            queue = await store.queues.change(name, changed, before, version)
            if queue.changed == changed:
                await self._audit("queue.change", name, before=before, after=changed)
                return queue

    async def apause(self, name: str, length: Duration | None = None, *, version: str | None = None) -> Queue:
        """Stop claims from it, for a time or until resumed; running jobs continue."""
        micros = None if length is None else duration(length, "length")
        return await self._turn("pause", name, lambda queues: queues.pause(name, micros, version))

    async def aresume(self, name: str, *, version: str | None = None) -> Queue:
        """Resume claims from it."""
        return await self._turn("resume", name, lambda queues: queues.resume(name, version))

    async def aclose(self, name: str, *, version: str | None = None) -> Queue:
        """Refuse new jobs: enqueueing one raises QueueClosed. Existing jobs continue."""
        return await self._turn("close", name, lambda queues: queues.close(name, version))

    async def aopen(self, name: str, *, version: str | None = None) -> Queue:
        """Accept new jobs again."""
        return await self._turn("open", name, lambda queues: queues.open(name, version))

    async def _turn(self, verb: str, name: str, turn: Callable[[QueueStore], Coroutine[Any, Any, Queue]]) -> Queue:
        """Pause, resume, close or open a queue that exists: a misspelt name must not succeed."""
        before = await self.aget(name)
        queue = await turn((await self._home._ready()).queues)
        await self._audit(f"queue.{verb}", name, before=_state(before), after=_state(queue))
        return queue

    async def apurge(self, name: str) -> int:
        """Cancel every waiting job in it, due or not, with the reason "purged"; returns how many.

        Running jobs continue; one that starts at this moment is asked to stop, and not counted. Each page of jobs is
        cancelled atomically, the whole is not: close the queue first to keep new jobs out.
        """
        await self.aget(name)
        store = await self._home._ready()
        wanted = JobFilter(queue=name, status=tuple(sorted(WAITING)))
        count = await each_page(store.operator, wanted, _purge)
        await self._audit("queue.purge", name, after={"jobs": count})
        return count

    async def alist(self) -> list[Queue]:
        """Every queue that was declared, added, changed, paused, closed or used."""
        store = await self._home._ready()
        return await store.queues.list()

    get = blocking(aget)
    add = blocking(aadd)
    set = blocking(aset)
    reset = blocking(areset)
    pause = blocking(apause)
    resume = blocking(aresume)
    close = blocking(aclose)
    open = blocking(aopen)
    purge = blocking(apurge)
    list = blocking(alist)


def checked_settings(reset: Sequence[str], options: QueueOptions) -> QueueSettings:
    """The settings that `set` changes; raises InvalidOption."""
    said = settings(**options)
    if said == QueueSettings() and not reset:
        there = ", ".join(QueueOptions.__annotations__)
        raise InvalidOption("set", f'nothing to change; there are {there}; "none" lifts a limit')
    return said


def _state(queue: Queue) -> dict[str, Any]:
    """The state of a pause or closure, for the audit."""
    return {"paused": queue.paused, "paused_until": queue.paused_until, "closed": queue.closed}


async def _purge(operator: OperatorStore, ids: Sequence[str]) -> Sequence[Transition | None]:
    moved = await cancel_jobs(operator, ids, PURGED)
    return [each for each in moved if each is not None and each.status is Status.CANCELLED]
