"""The registry of workers."""

import struct
from collections import Counter

import msgspec

from windlass.store.records import WorkerInfo
from windlass.store.redis.connection.access import Access
from windlass.store.redis.liveness.leases import registrations_of
from windlass.store.redis.verbs.held import held_by_runner
from windlass.store.rows import to_worker

_SINCE = struct.Struct(">q")


async def beat(access: Access, worker: WorkerInfo) -> None:
    """Register or refresh."""
    await access.call_global("heartbeat", (worker.id, msgspec.json.encode(worker).decode()))


async def unregister(access: Access, worker: str) -> None:
    """Sign off."""
    await access.call_global("unregister_worker", (worker,))


async def live_workers(access: Access) -> list[WorkerInfo]:
    """Workers with a recent heartbeat, with the number of jobs that they hold."""
    alive = await registered(access)
    held = await _held(access) if alive else Counter()
    return [msgspec.structs.replace(each, running=held[each.id]) for each in alive]


async def registered(access: Access) -> list[WorkerInfo]:
    """Those that are alive, without a look at what they hold."""
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
