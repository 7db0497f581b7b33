"""The registry of workers."""

import struct
from collections import Counter

import msgspec

from windlass.store.records import WorkerInfo
from windlass.store.redis.access import Access
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
    found, members = await access.office("workers", ())
    held = await _held(access, members) if found else Counter()
    alive = [
        to_worker(info[_SINCE.size :].decode(), _SINCE.unpack_from(info)[0], int(beat_at), held[worker.decode()])
        for worker, info, beat_at in found
        if info is not None
    ]
    return sorted(alive, key=lambda each: (each.started_at, each.id))


async def _held(access: Access, members: list[bytes]) -> Counter[str]:
    """How many jobs each worker's runners hold, in the queues in which they may hold any."""
    worker_of = {runner: worker for worker, runner, _ in (member.decode().split("\0") for member in members)}
    replies = await access.calls("busy", dict.fromkeys(berths_of(members), ((),)))
    held: Counter[str] = Counter()
    for reply in replies.values():
        for runner, jobs in zip(reply[::2], reply[1::2], strict=True):
            held[worker_of.get(runner.decode(), "")] += jobs
    return held
