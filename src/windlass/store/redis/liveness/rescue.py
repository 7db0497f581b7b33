"""rescue: put back the jobs of a dead runner. Its lease is removed first.

The global keys list the runner as dead; each queue then records its end, so that no later claim succeeds, and its
jobs are put back in portions. If the rescuer dies in between, the next one finds the dead runner in the list.
Several may rescue at once: each job is put back by one of them.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from windlass.core.jobs.outcome import LOST, Ending
from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.ending import Running, ending_of
from windlass.store.records import Rescued, RunnerEnd
from windlass.store.redis.connection.access import Access
from windlass.store.redis.dependencies.dependents import replace_and_notify
from windlass.store.redis.duties.queue_rotation import QueueRotation
from windlass.store.redis.liveness.leases import Registrations, registrations_of
from windlass.store.redis.records.ending import end_attempt, running_of
from windlass.store.redis.records.record import Record, unpack

PORTION = 100
"""Jobs put back by one call of a script."""
UNREGISTERED_EVERY: Micros = 5 * SECOND
"""Time between checks for runners without a registration: these are rare, and queues are read for them."""


class Rescuer:
    """Finds dead runners, and puts their jobs back."""

    def __init__(self) -> None:
        self._unregistered_at: Micros = 0
        self._rounds = QueueRotation()
        self._cursor = b"0"
        """Where the next call continues in the list of dead runners: see lapsed_runners.lua."""
        self._calls = 0

    async def rescue(self, access: Access, limit: int) -> list[Rescued]:
        """Put back jobs of up to `limit` runners with lapsed leases, at times also of unregistered runners."""
        rescued: list[Rescued] = []
        unreached: dict[str, StoreUnavailable] = {}
        more = 1
        while more and limit > 0:
            self._calls += 1
            runners, found, more, self._cursor = await access.call_global(
                "lapsed_runners", (limit, self._cursor.decode(), self._calls)
            )
            registrations = registrations_of(found)
            rescued += await _put_back(access, registrations, lambda _: LOST, unreached)
            await _forget_dead(access, [runner.decode() for runner in runners], registrations, unreached)
            limit -= len(runners)
        now = since_boot()
        if now - self._unregistered_at >= UNREGISTERED_EVERY:
            self._unregistered_at = now
            unregistered = await _unregistered(access, await self._rounds.take(access, "unregistered"), unreached)
            rescued += await _put_back(access, unregistered, lambda _: LOST, unreached)
        if unreached and not rescued:
            raise next(iter(unreached.values()))
        return rescued


async def end_runner(access: Access, ended: RunnerEnd) -> list[Rescued]:
    """Put back the jobs of a runner whose end its supervisor saw; the caller names the started jobs.

    Its jobs in queues that cannot be reached are left to `rescue`: the caller must not wait.
    """
    registrations = registrations_of(await access.call_global("end_runner", (ended.runner,)))
    unreached: dict[str, StoreUnavailable] = {}
    rescued = await _put_back(access, registrations, lambda job: ending_of(job, ended), unreached)
    await _forget_dead(access, [ended.runner], registrations, unreached)
    return rescued


async def _forget_dead(
    access: Access, runners: Sequence[str], registrations: Registrations, unreached: Collection[str]
) -> None:
    """Forget runners that hold nothing; in unreachable queues their jobs count as held."""
    holding = {runner for queue in unreached for runner in registrations.get(queue, ())}
    if done := [runner for runner in runners if runner not in holding]:
        await access.call_global("forget_dead_runners", done)


async def _unregistered(
    access: Access, queues: Sequence[str], unreached: dict[str, StoreUnavailable]
) -> Registrations:
    """Runners in queues that the global keys do not have: a failover may have lost their registration."""
    known_runners = await _reached(access, "known_runners", dict.fromkeys(queues, ((),)), unreached)
    known = set(await access.command("HKEYS", "leases"))
    unregistered: Registrations = defaultdict(list)
    for queue, runners in known_runners.items():
        unregistered[queue] += [runner.decode() for runner in runners if runner not in known]
    return {queue: runners for queue, runners in unregistered.items() if runners}


async def _reached(
    access: Access, name: str, requests: dict[str, tuple[Any, ...]], unreached: dict[str, StoreUnavailable]
) -> dict[str, Any]:
    """The replies of a script; in a cluster, unreachable queues are added to `unreached`."""
    if not access.clustered:
        return await access.call_queues(name, requests)
    replies = await access.call_each(name, requests)
    unreached |= {queue: reply for queue, reply in replies.items() if isinstance(reply, StoreUnavailable)}
    return {queue: reply for queue, reply in replies.items() if queue not in unreached}


async def _put_back(
    access: Access,
    registrations: Registrations,
    how: Callable[[Running], Ending],
    unreached: dict[str, StoreUnavailable],
) -> list[Rescued]:
    """All jobs of these runners in these queues, in portions."""
    rescued: list[Rescued] = []
    while registrations:
        requests = {
            queue: ((runners, PORTION),) for queue, runners in registrations.items() if queue not in unreached
        }
        replies = await _reached(access, "runner_jobs", requests, unreached)
        for queue, (now, _, *rows) in replies.items():
            records = [unpack(id_.decode(), value, details) for id_, value, details in rows]
            try:
                rescued += await _end(access, {queue: (now, records)} if records else {}, how)
            except StoreUnavailable as error:
                if not access.clustered:
                    raise
                unreached[queue] = error
        registrations = {queue: registrations[queue] for queue, (_, more, *rows) in replies.items() if more or rows}
    return sorted(rescued, key=lambda each: each.id)


async def _end(
    access: Access, held: dict[str, tuple[Micros, list[Record]]], how: Callable[[Running], Ending]
) -> list[Rescued]:
    """End the attempts of jobs that did not end meanwhile."""
    endings = {
        record.id: how(running_of(record, queue)) for queue, (_, records) in held.items() for record in records
    }
    changes = {
        queue: [(record, end_attempt(record, queue, endings[record.id], now)) for record in records]
        for queue, (now, records) in held.items()
    }
    replaced = await replace_and_notify(access, changes)
    return [
        Rescued(old.id, old.fields.type, queue, old.attempt, status, endings[old.id].outcome, old.runner)
        for queue, pairs in changes.items()
        for old, _ in pairs
        if (status := replaced[old.id].status) is not None
    ]
