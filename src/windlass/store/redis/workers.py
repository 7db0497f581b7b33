"""The registry of workers."""

import struct
from collections import Counter

import msgspec

from windlass.store.records import WorkerInfo
from windlass.store.redis.access import Access
from windlass.store.redis.held import held_by_runner
from windlass.store.redis.leases import berths_of
from windlass.store.workers import to_worker

_SINCE = struct.Struct(">q")


async def beat(access: Access, worker: WorkerInfo) -> None:
    """Register or refresh."""
    await access.office("beat", (worker.id, msgspec.json.encode(worker).decode()))


async def forget(access: Access, worker: str) -> None:
    """Sign off."""
    await access.office("forget", (worker,))


async def live_workers(access: Access) -> list[WorkerInfo]:
    """Those that are alive, as far as time tells, with the number of jobs that they hold now."""
    alive = await registered(access)
    held = await _held(access) if alive else Counter()
    return [msgspec.structs.replace(each, running=held[each.id]) for each in alive]


async def registered(access: Access) -> list[WorkerInfo]:
    """Those that are alive, without a look at what they hold."""
    found = [
        to_worker(info[_SINCE.size :].decode(), _SINCE.unpack_from(info)[0], int(beat_at), 0)
        for info, beat_at in await access.office("workers", ())
    ]
    return sorted(found, key=lambda each: (each.started_at, each.id))


async def _held(access: Access) -> Counter[str]:
    """How many jobs each worker's runners hold, in the queues in which they may hold any."""
    members = await access.command("ZRANGE", "berths", 0, -1)
    worker_of = {runner: worker for worker, runner, _ in (member.decode().split("\0") for member in members)}
    held: Counter[str] = Counter()
    for runner, jobs in (await held_by_runner(access, berths_of(members))).items():
        held[worker_of.get(runner, "")] += jobs
    return held
