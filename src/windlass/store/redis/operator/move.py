"""Moving jobs to another queue: never in two at once, and finally in one, whichever process dies meanwhile.

Nothing is atomic over two queues. The source keeps the whole job in `moving` (`move_out`); the target stores it
unless it has it (`move_in`); then the source forgets it (`move_done`). Each step is safe to repeat by any process,
so an abandoned move is finished by the next one that finds it, at the latest by `tidy`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.portion import MAX_READ, call_in_portions
from windlass.store.redis.operator.replace import Pair, Replaced
from windlass.store.redis.records.record import STATUS, A, Details, Flag, Letter, Record, encode, pack

RESERVED_FOR: Micros = 60 * SECOND
"""How long an idempotency key is reserved in the target queue."""
OVERDUE: Micros = 30 * SECOND
"""A move of this age is abandoned: no call takes as long."""

Reservation = int | bytes
"""When the reservation of a key ends, 0 if none is needed, or the id of the job that has the key."""
Packet = tuple[bytes, bytes, bytes, bytes]
"""A moving job: target, record, details, notes."""


async def move_all(access: Access, target: str, leaving: Mapping[str, Sequence[Pair]]) -> dict[JobId, Replaced]:
    """Move the jobs of these pairs, by source queue, each on its own; the new record is for the target."""
    replies = await _reserve(access, target, [before for pairs in leaving.values() for before, _ in pairs])
    holders = {id_: JobId(reply.decode()) for id_, reply in replies.items() if isinstance(reply, bytes)}
    movable = {queue: [pair for pair in pairs if pair[0].id not in holders] for queue, pairs in leaving.items()}
    packets = await _move_out(access, target, {queue: pairs for queue, pairs in movable.items() if pairs})
    stayed = [pair for queue, pairs in movable.items() for pair in pairs if pair[0].id not in packets.get(queue, {})]
    await _release(access, target, [before for before, _ in stayed], replies)
    letters = await move_in(access, packets)
    moved = {
        before.id: Replaced(STATUS[letters[before.id]] if letters[before.id] else after.status)
        for queue, pairs in movable.items()
        for before, after in pairs
        if before.id in packets.get(queue, {})
    }
    refused = {id_: Replaced(None, holder) for id_, holder in holders.items()}
    return moved | refused | {before.id: Replaced(None) for before, _ in stayed}


async def _reserve(access: Access, target: str, jobs: Sequence[Record]) -> dict[JobId, Reservation]:
    """Reserve idempotency keys in the target."""
    keyed = [(job.id, job.fields.key_digest, 0) for job in jobs if job.fields.key_digest is not None]
    replies: dict[JobId, Reservation] = {}
    async for _, some, reply in call_in_portions(
        access, "reserve_keys", {target: keyed}, lambda some: ((some, RESERVED_FOR),)
    ):
        replies |= zip([id_ for id_, *_ in some], reply, strict=True)
    return replies


async def _release(
    access: Access, target: str, jobs: Sequence[Record], reserved: Mapping[JobId, Reservation]
) -> None:
    """End the reservations of jobs that do not move."""
    ended = [(job.id, job.fields.key_digest, reserved[job.id]) for job in jobs if reserved.get(job.id)]
    async for _ in call_in_portions(access, "reserve_keys", {target: ended}, lambda some: ((some, 0),)):
        pass


async def _move_out(
    access: Access, target: str, leaving: Mapping[str, Sequence[Pair]]
) -> dict[str, dict[JobId, Packet]]:
    """Remove jobs from their source queues; returns their packets, by source queue."""
    requests = {queue: _move_out_request(target, pairs) for queue, pairs in leaving.items()}
    replies = await access.call_queues("move_out", requests)
    return {
        queue: {
            before.id: tuple(packet)
            for (before, _), packet in zip(leaving[queue], answers, strict=True)
            if packet != 0
        }
        for queue, answers in replies.items()
    }


def _move_out_request(target: str, pairs: Sequence[Pair]) -> tuple[Any, ...]:
    blobs = [blob for _, after in pairs for blob in _blobs(after)]
    return (target, [(before.id, before.version) for before, _ in pairs]), *blobs


def _blobs(after: Record) -> tuple[bytes, bytes]:
    more = after.details != Details()
    after.flags = after.flags | Flag.HAS_DETAILS if more else after.flags & ~Flag.HAS_DETAILS
    return pack(after), encode(after.details) if more else b""


async def move_in(access: Access, packets: Mapping[str, Mapping[JobId, Packet]]) -> dict[JobId, int]:
    """Store moving jobs in their targets, then remove them from the sources; returns the letter of each."""
    by_target: dict[str, list[tuple[JobId, Packet]]] = defaultdict(list)
    for jobs in packets.values():
        for id_, packet in jobs.items():
            by_target[packet[0].decode()].append((id_, packet))
    if parking := [target for target, jobs in by_target.items() if any(_is_parked(packet) for _, packet in jobs)]:
        await access.call_global("add_queue_names", ("parked_queues", parking))
    letters: dict[JobId, int] = {}
    async for target, some, reply in call_in_portions(access, "move_in", by_target, _move_in_request):
        ids = [id_ for id_, _ in some]
        letters |= zip(ids, reply, strict=True)
        access.server.job_locations.note(target, ids)
    versions = {
        queue: [(id_, A.unpack_from(packet[1])[1]) for id_, packet in jobs.items()] for queue, jobs in packets.items()
    }
    await access.call_queues("move_done", {queue: (entries,) for queue, entries in versions.items() if entries})
    return letters


def _move_in_request(jobs: Sequence[tuple[JobId, Packet]]) -> tuple[Any, ...]:
    return [id_ for id_, _ in jobs], *(blob for _, packet in jobs for blob in packet[1:])


def _is_parked(packet: Packet) -> bool:
    """Parked jobs are looked for only in `parked_queues`."""
    return packet[1][0] == Letter.NO_WORKER


async def finish_moves(access: Access, queues: Sequence[str] | None = None, least: Micros = OVERDUE) -> int:
    """Finish moves of dead processes; returns how many jobs were moved."""
    names = await access.queue_names() if queues is None else queues
    replies = await access.call_queues("unfinished_moves", dict.fromkeys(names, ((least, MAX_READ),)))
    packets = {queue: {id_.decode(): tuple(packet) for id_, packet in found} for queue, found in replies.items()}
    return len(await move_in(access, packets))
