"""Sweeps: what is due in any queue is done, the longest due first, a bounded number by each call."""

import msgspec

from windlass.core.moments import Micros
from windlass.store.redis.access import Access

MOST_IN_CALL = 250
"""No script may keep the server from others for long: it does less if these are much work."""


class Swept(msgspec.Struct, frozen=True):
    """What was done, and how long until there is more to do (None: nothing waits)."""

    jobs: int
    next_in: Micros | None


async def sweep(access: Access, name: str, limit: int) -> Swept:
    """Let a script that takes a limit, and tells how long until its next, do up to `limit` over all queues.

    They take turns, the longest due first: very many of one queue do not hold up the one that is due in another.
    """
    looks = await access.calls(name, dict.fromkeys(await access.queue_names(), (0,)))
    waits = {queue: wait for queue, reply in looks.items() if (wait := _wait(reply)) is not None}
    due = sorted((queue for queue, wait in waits.items() if wait <= 0), key=waits.__getitem__)
    done = 0
    while due and done < limit:
        portion, turn, due = max(1, min(MOST_IN_CALL, limit // len(due))), due, []
        for queue in turn:
            if done == limit:
                break
            reply = await access.call(name, queue, min(portion, limit - done))
            done += reply[0]
            waits.pop(queue)
            if (wait := _wait(reply)) is not None:
                waits[queue] = wait
            # If nothing counted, there is more to do all the same: the caller comes back for it.
            if reply[0] and wait is not None and wait <= 0:
                due.append(queue)
    return Swept(done, max(0, min(waits.values())) if waits else None)


def _wait(reply: list[int]) -> Micros | None:
    return reply[1] if len(reply) > 1 else None
