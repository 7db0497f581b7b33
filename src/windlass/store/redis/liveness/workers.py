"""Workers, the coordinator's leadership, and the jobs that runners hold."""

import struct
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from windlass.core.moments import Micros
from windlass.store.records import Campaign, Held, WorkerInfo
from windlass.store.redis.connection.access import Access
from windlass.store.redis.liveness.leases import registrations_of
from windlass.store.rows import to_worker

MAX_BEATS = 200
"""Max reports that one call writes."""
_SINCE = struct.Struct(">q")


async def beat(access: Access, workers: Sequence[WorkerInfo]) -> None:
    """Register workers, or refresh their reports."""
    reports = [(worker.id, msgspec.json.encode(worker).decode()) for worker in workers]
    for first in range(0, len(reports), MAX_BEATS):
        await access.call_global("heartbeat", (reports[first : first + MAX_BEATS],))


async def unregister(access: Access, worker: str) -> None:
    """Remove a worker."""
    await access.call_global("unregister_worker", (worker,))


async def live_workers(access: Access) -> list[WorkerInfo]:
    """Workers with a recent heartbeat, with the number of jobs that they hold."""
    alive = await registered(access)
    held = await _held(access) if alive else Counter()
    return [msgspec.structs.replace(each, running=held[each.id]) for each in alive]


async def registered(access: Access) -> list[WorkerInfo]:
    """Live workers, without the number of jobs that they hold."""
    found = [
        to_worker(info[_SINCE.size :].decode(), _SINCE.unpack_from(info)[0], int(beat_at), 0)
        for info, beat_at in await access.call_global("live_workers", ())
    ]
    return sorted(found, key=lambda each: (each.started_at, each.id))


async def _held(access: Access) -> Counter[str]:
    """How many jobs each worker's runners hold, in the queues in which they may hold any."""
    members = await access.command("ZRANGE", "registrations", 0, -1)
    worker_of = {runner: worker for worker, runner, _ in (member.decode().split("\0") for member in members)}
    held: Counter[str] = Counter()
    for runner, jobs in (await held_by_runner(access, registrations_of(members))).items():
        held[worker_of.get(runner, "")] += jobs
    return held


async def campaign(access: Access, bid: Campaign) -> int | None:
    """Take the leadership if it is free, or keep it."""
    term: int = await access.call_global("campaign", (bid.candidate, bid.length))
    return term or None


async def resign(access: Access, candidate: str) -> None:
    """Give up the leadership, if the candidate has it."""
    await access.call_global("resign", (candidate,))


MAX_RUNNERS = 1000
_WORKER_AT = struct.calcsize(">qqB")
"""A lease is its end, its length, its number of graces, and its worker: see parts/liveness/lease_activity.lua."""


async def worker_of(access: Access, runner: str) -> str | None:
    """The worker of a runner that has a lease."""
    lease = await access.command("HGET", "leases", runner)
    return None if lease is None else lease[_WORKER_AT:].decode()


async def late_runners(access: Access, now: Micros) -> list[str]:
    """Runners whose leases are over, and dead ones with jobs that are not put back yet."""
    lapsed = await access.command("ZRANGEBYSCORE", "lease_ends", "-inf", now, "LIMIT", 0, MAX_RUNNERS)
    _, dead = await access.command("HSCAN", "dead_runners", 0, "COUNT", MAX_RUNNERS)
    return sorted({runner.decode() for runner in (*lapsed, *dead[::2])})


async def current(access: Access) -> str | None:
    """The current coordinator, by the server's clock."""
    return await coordinator(access, await access.now())


async def coordinator(access: Access, now: Micros) -> str | None:
    """The current coordinator."""
    holder, expires = await access.command("HMGET", "leadership", "holder", "expires")
    return holder.decode() if holder and int(expires or 0) > now else None


async def held(access: Access, runner: str) -> list[Held]:
    """The jobs that a runner holds in all reachable queues."""
    found: list[Held] = []
    after = dict.fromkeys(await access.queue_names(), -1)
    while after:
        replies, troubles = await access.call_reachable(
            "held", {queue: ((runner, claim),) for queue, claim in after.items()}
        )
        if troubles and not replies:
            raise troubles[0]
        found += [
            Held(id_.decode(), attempt, queue, number)
            for queue, (_, *jobs) in replies.items()
            for id_, attempt, number in jobs
        ]
        after = {queue: claim for queue, (claim, *_) in replies.items() if claim >= 0}
    return found


async def held_by_runner(access: Access, queues: Iterable[str]) -> Counter[str]:
    """How many jobs each runner holds in these queues. Claims made or ended meanwhile may be missed."""
    found: Counter[str] = Counter()
    after = dict.fromkeys(queues, ("", 0))
    while after:
        replies = await access.call_queues("held_counts", {queue: (last,) for queue, last in after.items()})
        for _, _, *pairs in replies.values():
            for runner, jobs in zip(pairs[::2], pairs[1::2], strict=True):
                found[runner.decode()] += jobs
        after = {queue: (runner.decode(), claim) for queue, (runner, claim, *_) in replies.items() if runner}
    return found
