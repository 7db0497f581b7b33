"""claim: a runner takes pending jobs, queue by queue, best first; repeating a claim returns the same jobs.

Plain queues are claimed from by claim.lua, limited ones by claim_limited.lua.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from windlass.core.jobs.job import Claimed
from windlass.errors import StoreUnavailable
from windlass.store.records import ClaimRequest, QueueQuota
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import QueueErrors
from windlass.store.redis.liveness.leases import NO_LEASE, allow_runner, check_lease
from windlass.store.redis.records.record import NO_RARE, A, B, C, Fields, Flag, read_fields
from windlass.store.redis.records.unreadable import decode_text

_LENGTH = struct.Struct(">I")
INPUT, HEAD_C = int(Flag.HAS_PARENT_RESULTS), int(Flag.HAS_HEAD_C)


def to_claimed(queue: str, runner: str, reply: Sequence[bytes]) -> list[Claimed]:
    """The jobs of a claim's reply: ids and records alternately."""
    return list(_read(queue, len(runner.encode()), iter(reply)))


def _read(queue: str, runner: int, reply: Iterator[bytes]) -> Iterator[Claimed]:
    layout = _layout(runner)
    numbers, begin, length = layout.unpack_from, layout.size, _LENGTH.unpack_from
    kinds: dict[bytes, Fields] = {}
    """Decoded fields by their bytes: most jobs share few."""
    for id_, value in zip(reply, reply, strict=True):
        n = numbers(value)
        flags, _, sort_priority, _, run_at, created_at, timeout, max_attempts, size = n[8:]
        at, rare = begin, NO_RARE
        if flags & HEAD_C:
            at, rare = begin + C.size, C.unpack_from(value, begin)
        lifted, expires_at, _, failures, crashes, rescues, suspicions, requeues, snoozes = rare
        end = at + size
        packed = value[at:end]
        fields = kinds.get(packed)
        if fields is None:
            fields = kinds[packed] = read_fields(packed)
        begins = end + 4
        ends = begins + length(value, end)[0]
        yield Claimed(
            id_.decode(),
            queue,
            fields.type,
            decode_text(value[begins:ends]),
            n[2],  # attempt
            max_attempts,
            failures,
            crashes,
            rescues,
            suspicions,
            requeues,
            snoozes,
            -sort_priority - lifted,
            run_at,
            created_at,
            n[5],  # claimed_at
            fields.idempotency_key,
            fields.concurrency_key,
            fields.tenant,
            fields.parent,
            fields.flow,
            timeout,
            expires_at or None,
            fields.tags,
            fields.meta,
            fields.result_params,
            _parent_results(value, ends) if flags & INPUT and fields.result_params else None,
            fields.schedule,
            fields.tick,
        )


def _parent_results(value: bytes, at: int) -> str:
    """The parent results, if the job takes any."""
    begins = at + _LENGTH.size
    return decode_text(value[begins : begins + _LENGTH.unpack_from(value, at)[0]])


@lru_cache(maxsize=64)
def _layout(runner: int) -> struct.Struct:
    return struct.Struct(f"{A.format}{runner}x{B.format[1:]}")


LIMITED = b"limited"
"""The reply of claim.lua if the queue is limited, or one of the next jobs needs claim_limited.lua."""
MAX_AT_ONCE = 500
"""Jobs in one call of a script: it blocks the server."""
MAX_LIMITED = 250
"""The same for a limited queue, where each job costs more."""
NEAR_MAX_TEXT = 900_000
"""Bytes of records from which on a claim may be cut short: scripts stop at a megabyte."""
MAX_EXPIRED = 100
MAX_RETRIES = 8
"""How often a claim that found nothing and was cut short continues."""
EXPIRED = 1
"""The reply of claim_limited.lua if it was cut short by expired jobs."""


async def claim(access: Access, request: ClaimRequest) -> list[Claimed]:
    """Claim jobs; an earlier queue is emptied before a later one."""
    quotas = [quota for quota in request.quotas if quota.limit > 0]
    if request.limit <= 0 or not quotas:
        return []
    fresh = not request.shared and access.server.claim_memory.is_new(request.runner, request.claim)
    if len(quotas) > 1 and not fresh:
        # The reply to an earlier try may have been lost: its jobs are still stored under its number.
        before = await _claimed_before(access, request, quotas)
        if before is None or before:
            return before or []
    jobs: list[Claimed] = []
    troubles = QueueErrors()
    await _claim_into(access, request, quotas[0], jobs, troubles)
    later = await _with_work(access, request, quotas[1:]) if len(jobs) < request.limit else []
    for quota in later:
        if len(jobs) < request.limit:
            await _claim_into(access, request, quota, jobs, troubles)
    if troubles and not jobs and (len(troubles) == len(quotas) or any(each.maybe_done for each in troubles)):
        raise troubles[0]  # a repeat with the same number finds the jobs of a call without a reply
    return jobs


async def _claim_into(
    access: Access, request: ClaimRequest, quota: QueueQuota, jobs: list[Claimed], troubles: QueueErrors
) -> None:
    """Claim from one queue. An unreachable one does not prevent claims from others."""
    try:
        jobs += await _claim_from(access, request, quota, len(jobs))
    except StoreUnavailable as error:
        if error.lasting or not access.clustered:
            raise
        troubles.append(error)


async def _with_work(access: Access, request: ClaimRequest, quotas: Sequence[QueueQuota]) -> Sequence[QueueQuota]:
    """The queues that may have jobs: several are read in one round trip."""
    if len(quotas) < 2:
        return quotas
    found = await claimable_queues(access, [quota.queue for quota in quotas], request.types)
    return [quota for quota in quotas if quota.queue in found]


async def _claim_from(access: Access, request: ClaimRequest, quota: QueueQuota, taken: int) -> list[Claimed]:
    """Claim from one queue; `taken` jobs were claimed from others."""
    memory, queue = access.server.claim_memory, quota.queue
    limit = min(quota.limit, request.limit - taken, MAX_AT_ONCE)
    wanted = (request.runner, request.claim, request.types, limit)
    if not memory.is_limited(queue):
        reply = await _call_with_lease(access, "claim", queue, wanted)
        if reply != LIMITED:
            _note_cut(access, queue, reply or (), limit)
            return to_claimed(queue, request.runner, reply or ())
        memory.note_limited(queue)
    free = None if request.free is None else request.free - taken
    limited = (*wanted[:3], min(limit, MAX_LIMITED), request.limit, free)
    return await _claim_limited(access, queue, limited)


async def _claim_limited(access: Access, queue: str, wanted: tuple[Any, ...]) -> list[Claimed]:
    """Claim with all limits. A call that was cut short and found only jobs that cannot start is repeated."""
    rate_waits = access.server.claim_memory.rate_waits
    rate_waits.forget(queue)
    for _ in range(MAX_RETRIES):
        reply = await _call_with_lease(access, "claim_limited", queue, wanted)
        if reply is None:
            return []
        now, wait, rate, cut, found = reply
        if found or not cut:
            break
        if cut == EXPIRED:
            await access.call("expire", queue, MAX_EXPIRED)
    _note_cut(access, queue, found, wanted[3])
    if wait >= 0:
        rate_waits.note(queue, now, wait, rate.decode())
    return to_claimed(queue, wanted[0], found)


def _note_cut(access: Access, queue: str, found: Sequence[bytes], limit: int) -> None:
    """If a claim was cut short because its records are long, let the next one follow at once."""
    if len(found) < 2 * limit and sum(map(len, found[1::2])) > NEAR_MAX_TEXT:
        access.server.claim_memory.rate_waits.note(queue, 0, 0, None)


async def _call_with_lease(access: Access, name: str, queue: str, wanted: tuple[Any, ...]) -> Any:
    """Call a claim script; if the queue does not know the runner's lease, let it claim there and call again.

    None: there is no such queue, or the lease is over; the next renewal shows whether it is lost.
    """
    reply = await access.call(name, queue, wanted)
    if reply is None:
        await check_lease(access, wanted[0])
    if reply == NO_LEASE and await allow_runner(access, wanted[0], [queue]):
        reply = await access.call(name, queue, wanted)
    return None if reply == NO_LEASE else reply


async def _claimed_before(
    access: Access, request: ClaimRequest, quotas: Sequence[QueueQuota]
) -> list[Claimed] | None:
    """The jobs of an earlier try, in all of its queues, by claims with limit 0.

    None: the lease is over.
    """
    wanted = (request.runner, request.claim, request.types, 0)
    replies, _ = await access.call_reachable("claim", {quota.queue: (wanted,) for quota in quotas})
    without_lease = [queue for queue, reply in replies.items() if reply == NO_LEASE]
    if without_lease and await allow_runner(access, request.runner, without_lease):
        replies |= (await access.call_reachable("claim", dict.fromkeys(without_lease, (wanted,))))[0]
    if NO_LEASE in replies.values():
        return None
    return [job for queue, reply in replies.items() for job in to_claimed(queue, request.runner, reply)]


async def has_work(access: Access, queues: Sequence[str], types: Sequence[str] | None) -> bool:
    """Whether anything is due, or jobs wait in queues that are not paused, full or without tokens.

    Without types: also whether dependents are about to be released.
    """
    replies, troubles = await access.call_reachable("has_work", dict.fromkeys(queues, ((types,),)))
    soon = any(due or notifying for _, due, *_, notifying in replies.values())
    if not _claimable(access, replies) and not soon:
        if troubles:
            raise troubles[0]  # an unreachable queue may have work
        return False
    return True


async def claimable_queues(access: Access, queues: Sequence[str], types: Sequence[str]) -> set[str]:
    """The reachable queues from which a claim may get jobs."""
    replies, troubles = await access.call_reachable("has_work", dict.fromkeys(queues, ((types,),)))
    if troubles and not replies:
        raise troubles[0]
    return _claimable(access, replies)


def _claimable(access: Access, replies: dict[str, tuple[int, int, int, int, bytes, int]]) -> set[str]:
    """The queues with jobs that can start now; notes when the others have tokens again."""
    rate_waits, claimable = access.server.claim_memory.rate_waits, set()
    for queue, (now, _, waiting, wait, rate, _) in replies.items():
        if wait >= 0:
            rate_waits.note(queue, now, wait, rate.decode())
        elif waiting and not rate_waits.is_exhausted(queue, now, rate.decode()):
            claimable.add(queue)
    return claimable
