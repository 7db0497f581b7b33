"""admit, expire, age: due work in all queues, the longest due first, a bounded number in each call."""

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import MAX_PRIORITY
from windlass.core.moments import Micros
from windlass.errors import StoreUnavailable
from windlass.store.records import Admitted
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import QueueErrors
from windlass.store.redis.dependencies.dependents import notify_dependents
from windlass.store.redis.duties.queue_rotation import QueueRotation

MAX_IN_CALL = 250
"""Max jobs in one call of a script; it handles fewer if they are large."""


class Swept(msgspec.Struct, frozen=True):
    """How many jobs were handled, and how long until more are due (None: none wait)."""

    jobs: int
    next_in: Micros | None
    queues: Sequence[str] = ()
    """Queues in which any job was handled."""
    ids: Sequence[JobId] = ()
    """Ids of the handled jobs, if the script returns them."""


Waits = dict[str, Micros | None]
"""How long until there is more to do in each queue that was reached; None: nothing waits."""


async def sweep_all(access: Access, name: str, limit: int, rounds: QueueRotation) -> Swept:
    """Sweep the queues in which a job may be due; the rotation remembers when the others have due jobs."""
    known = rounds.of(name)
    queues = await rounds.choose(access, name, await access.queue_names())
    now, waits = rounds.now(access), Waits()
    try:
        swept = await sweep(access, name, limit, queues, waits)
    finally:
        for queue, wait in waits.items():
            known.note(queue, None if wait is None else now + wait)
    due = known.next_due()
    return Swept(swept.jobs, None if due is None else max(0, due - now), swept.queues, swept.ids)


async def sweep(access: Access, name: str, limit: int, queues: Sequence[str], waits: Waits | None = None) -> Swept:
    """Call a script that takes a limit and returns how long until its next job, up to `limit` jobs in all.

    Queues take turns, the longest due first, so that many jobs of one do not delay those of another, nor does an
    unreachable one. Its error is raised at the end, unless there are ids to return.
    """
    waits = Waits() if waits is None else waits
    looks, troubles = await access.call_reachable("next_due", dict.fromkeys(queues, (name,)))
    waits |= {queue: _wait(reply) for queue, reply in looks.items()}
    overdue = {queue: wait for queue, wait in waits.items() if wait is not None and wait <= 0}
    due = sorted(overdue, key=overdue.__getitem__)
    done, at, ids = 0, set[str](), list[JobId]()
    while due and done < limit:
        portion, turn, due = max(1, min(MAX_IN_CALL, limit // len(due))), due, []
        for queue in turn:
            if done == limit:
                break
            del waits[queue]
            try:
                reply = await access.call(name, queue, min(portion, limit - done))
            except StoreUnavailable as error:
                troubles.append(error)
                continue
            done += reply[0]
            at.update([queue] if reply[0] else [])
            ids += [id_.decode() for id_ in reply[2]] if len(reply) > 2 else []
            wait = waits[queue] = _wait(reply)
            # A call may count no job and still leave some due: the caller calls again.
            if reply[0] and wait is not None and wait <= 0:
                due.append(queue)
    if not ids:  # else the caller needs them, and calls again
        troubles.raise_first()
    first = min((wait for wait in waits.values() if wait is not None), default=None)
    return Swept(done, None if first is None else max(0, first), sorted(at), ids)


def _wait(reply: list[Any]) -> Micros | None:
    return reply[1] if len(reply) > 1 else None


async def admit(access: Access, limit: int, queues: Sequence[str] | None, rounds: QueueRotation) -> Admitted:
    """Admit due jobs, the earliest first, in these queues or in all."""
    if queues is None:
        swept = await sweep_all(access, "admit", limit, rounds)
    else:
        swept = await sweep(access, "admit", limit, queues)
    return Admitted(swept.jobs, swept.next_in)


async def expire(access: Access, limit: int, rounds: QueueRotation) -> Sequence[JobId]:
    """Cancel expired jobs of all queues, the longest expired first, and notify their dependents."""
    swept = await sweep_all(access, "expire", limit, rounds)
    with contextlib.suppress(StoreUnavailable):  # `tidy` notifies the rest
        await notify_dependents(access, swept.queues)
    return swept.ids


PORTION = 100
"""Jobs in one call of a script: it blocks the server."""
_NONE = -MAX_PRIORITY - 1
"""Below every sort_priority: the start of a queue, without a priority to move up to."""


async def age(access: Access, limit: int, rounds: QueueRotation) -> int:
    """Move at most `limit` jobs, each by one step; returns how many. Queues share the limit.

    Unreachable queues are left out; their error is raised at the end.
    """
    aged, troubles = 0, QueueErrors()
    going = dict.fromkeys(await rounds.take(access, "age"), (_NONE, _NONE))
    while going and aged < limit:
        asked = list(going)[: limit - aged]
        portion = min(PORTION, (limit - aged) // len(asked))
        replies, unreached = await access.call_reachable(
            "age", {queue: ((portion, *going[queue]),) for queue in asked}
        )
        troubles += unreached
        for queue in set(asked) - replies.keys():
            del going[queue]
        for queue, (moved, *position) in replies.items():
            aged += moved
            if position:
                going[queue] = (position[0], position[1])
            else:
                del going[queue]
    troubles.raise_first()
    return aged
