"""Examine a server: every check, one after the other, whatever the others found. Nothing is written."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.core.stats.meter import METER_RETENTION
from windlass.errors import StoreUnavailable
from windlass.store.clock import Clock
from windlass.store.doctor import Census, Examination, Finding, Level, Waiting, problem
from windlass.store.redis.connection.address import Address
from windlass.store.redis.connection.errors import translate
from windlass.store.redis.connection.server import Server
from windlass.store.redis.doctor.contents import (
    check_counts,
    check_idempotency_keys,
    check_jobs,
    check_keys,
    check_retention,
    check_rights,
    check_schedules,
)
from windlass.store.redis.doctor.read_only_access import ReadOnlyAccess
from windlass.store.redis.doctor.server import (
    Info,
    check_connections,
    check_durability,
    check_memory,
    check_role,
    check_versions,
)
from windlass.store.redis.liveness.workers import coordinator, held_by_runner, late_runners, live_workers
from windlass.store.redis.operator.queues import read_queues
from windlass.store.redis.schedules.read_schedules import all_schedules
from windlass.store.redis.verbs.stats import oldest, recent

MAX_DELAYED = 2_000
"""Delayed jobs of a queue that are read: the doctor must not take long on a store with millions of jobs."""
STEP = 500


class QueueCensus(msgspec.Struct):
    """What census.lua found in one queue."""

    waiting: list[Waiting]
    counted_all: bool
    newest: Micros | None
    dead: int


async def take_census(access: ReadOnlyAccess) -> Census:
    """Each queue is one consistent read; queues are read one after the other."""
    now = await access.now()
    names = await access.queue_names()
    workers = await live_workers(access)
    late = await late_runners(access, now)
    queues = [await _queue_census(access, name, now) for name in names]
    held = await held_by_runner(access, names if late else ())
    moments = [queue_census.newest for queue_census in queues] + [await _last_beat(access)]
    kept = await read_queues(access, names)
    return Census(
        now=now,
        newest=max((moment for moment in moments if moment is not None), default=None),
        workers=tuple(workers),
        waiting=tuple(each for queue_census in queues for each in queue_census.waiting),
        counted_all=all(queue_census.counted_all for queue_census in queues),
        paused=tuple(name for name in names if kept[name].queue.paused),
        dead=sum(queue_census.dead for queue_census in queues),
        late_runners=len(late),
        late_jobs=sum(held[runner] for runner in late),
        coordinator=await coordinator(access, now),
        schedules=tuple(await all_schedules(access)),
        oldest=await oldest(access),
        recent=await recent(access, METER_RETENTION),
    )


async def _queue_census(access: ReadOnlyAccess, queue: str, now: Micros) -> QueueCensus:
    pending, parked, newest, dead = await access.call("census", queue, ())
    waiting = [Waiting(queue=queue, type=type_.decode(), jobs=jobs, due=True) for type_, jobs in pending]
    waiting += [
        Waiting(queue=queue, type=type_.decode(), jobs=jobs, due=False, parked=True) for type_, jobs in parked
    ]
    delayed, complete = await _delayed(access, queue, now)
    return QueueCensus(waiting + delayed, complete, newest or None, dead)


async def _delayed(access: ReadOnlyAccess, queue: str, now: Micros) -> tuple[list[Waiting], bool]:
    """Delayed jobs and retries, the earliest first, and whether these are all."""
    found: Counter[tuple[str, bool]] = Counter()
    for start in range(0, MAX_DELAYED, STEP):
        rows: list[Any] = await access.call("census_delayed", queue, (start, STEP))
        for type_, moment in rows:
            found[type_.decode(), moment <= now] += 1
        if len(rows) < STEP:
            break
    waiting = [Waiting(queue=queue, type=type_, jobs=jobs, due=due) for (type_, due), jobs in sorted(found.items())]
    return waiting, sum(found.values()) < MAX_DELAYED


async def _last_beat(access: ReadOnlyAccess) -> Micros | None:
    last = await access.command("ZREVRANGE", "heartbeats", 0, 0, "WITHSCORES")
    if not last:
        return None
    first = last[0]
    return int(float(first[1] if isinstance(first, tuple | list) else last[1]))


SECONDS_TO_CHECK = 20.0
"""Each check; a deep one takes as long as it needs."""

OfServer = Callable[[Info, Address], Iterator[Finding]]
OfContents = Callable[[ReadOnlyAccess], AsyncIterator[Finding]]
_OF_SERVER: tuple[OfServer, ...] = (
    check_versions,
    check_durability,
    check_memory,
    check_role,
    check_connections,
)
_WORSE = list(Level)


async def examine(address: Address, shown: str, clock: Clock | None, *, deep: bool) -> Examination:
    """All findings about a server, which may be unreachable or without a store."""
    server = Server(address, shown, clock)
    findings = Findings(ReadOnlyAccess(server), shown)
    try:
        infos = await findings.onlooker.infos()
        findings.findings += [each for check in _OF_SERVER for each in worst(check, infos, address)]
        return await _inside(findings, deep=deep)
    except StoreUnavailable as error:
        advice = "check host, port, user and password of the address, and whether the server runs"
        findings.findings.append(problem("server", str(error), advice))
        return Examination(tuple(findings.findings), None)
    finally:
        await server.wire.close()


def worst(check: OfServer, infos: Sequence[Info], address: Address) -> list[Finding]:
    """The worst finding of a check over all servers."""
    found = [list(check(info, address)) for info in infos]
    return max(found, key=lambda each: max(_WORSE.index(finding.level) for finding in each), default=[])


async def _inside(findings: "Findings", *, deep: bool) -> Examination:
    census = None
    await findings.look("rights", check_rights)
    if await findings.look("keys", check_keys):
        await findings.look("retention", check_retention)
        await findings.look("contents", check_counts)
        await findings.look("contents", check_schedules)
        if deep:
            await findings.look("contents", check_jobs, seconds=None)
            await findings.look("idempotency keys", check_idempotency_keys, seconds=None)
        census = await findings.count()
    return Examination(tuple(findings.findings), census)


class Findings:
    """The findings so far."""

    def __init__(self, access: ReadOnlyAccess, shown: str) -> None:
        self.onlooker = access
        self._shown = shown
        self.findings: list[Finding] = []

    async def look(self, name: str, check: OfContents, seconds: float | None = SECONDS_TO_CHECK) -> bool:
        """Run a check and keep its findings; returns whether none is a problem."""
        found = []
        try:
            async with asyncio.timeout(seconds):
                found = [each async for each in check(self.onlooker)]
        except Exception as error:
            found.append(self._translate(name, error))
        self.findings += found
        return all(each.level in (Level.OK, Level.NOTE) for each in found)

    async def count(self) -> Census | None:
        """The census."""
        try:
            async with asyncio.timeout(SECONDS_TO_CHECK):
                return await take_census(self.onlooker)
        except Exception as error:
            self.findings.append(self._translate("jobs", error))
            return None

    def _translate(self, name: str, error: Exception) -> Finding:
        why = error if isinstance(error, StoreUnavailable) else translate(error, self._shown)
        return problem(
            name, f"could not be checked: {why}", "if no other finding explains that, look at the server's log"
        )
