"""Claims from limited queues, one queue at a time.

For quotas see queue_limits.py, for rates rate_check.py, for fairness fairness.py.
"""

from typing import Any

import msgspec

from windlass.core.jobs.job import Claimed
from windlass.core.moments import Micros
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.limits.claim_memory import ClaimMemory
from windlass.store.postgres.limits.key_queue import KeyQueues
from windlass.store.postgres.limits.limited_attempt import LimitedAttempt
from windlass.store.postgres.limits.limited_outcome import Asked, Leave, Outcome
from windlass.store.postgres.limits.queue_limits import ask_for_slots
from windlass.store.postgres.limits.rate_check import Grant
from windlass.store.waits import RateWaits

__all__ = ["Asked", "LimitedClaims", "claimed"]

MAX_ROUNDS = 20
"""A claim ends after this many rounds in which jobs were throttled."""

_FIELDS = len(Claimed.__struct_fields__)


class LimitedClaims:
    """The claims of one process from limited queues; remembers granted tokens, and when there will be more."""

    def __init__(self, key_queues: KeyQueues) -> None:
        self._key_queues = key_queues
        self._memory = ClaimMemory()
        self._grants: dict[tuple[str, str], Grant] = {}
        self.rate_waits = RateWaits()

    async def claim(self, access: Access, asked: Asked) -> Outcome:
        """The part of a claim for one queue."""
        outcome = await self._granted(access, asked)
        rows = list(outcome.rows)
        for _ in range(MAX_ROUNDS):
            if not outcome.throttled or len(rows) >= asked.limit:
                break
            # Other jobs may start instead of the throttled ones.
            left, taken = asked.limit - len(rows), asked.taken + len(rows)
            rest = msgspec.structs.replace(asked, limit=left, taken=taken, first=False)
            outcome = await self._granted(access, rest)
            rows += outcome.rows
        return Outcome(rows, shrunk=outcome.shrunk) if rows else outcome

    async def _granted(self, access: Access, asked: Asked) -> Outcome:
        """Claim; if needed, first admit jobs that wait for keys, or get a larger quota."""
        outcome = await self._try(access, asked, Leave(admit=True, ask=True))
        if outcome.admit:
            await self._key_queues.admit(access, asked.limit, self.farthest(asked.queue) + 1)
            outcome = await self._try(access, asked, Leave(admit=False, ask=True))
        if outcome.short:
            shrunk = outcome.shrunk
            await ask_for_slots(access, asked.queue, asked.request.runner, outcome.short)
            outcome = await self._try(access, asked, Leave(admit=False, ask=False))
            outcome = msgspec.structs.replace(outcome, shrunk=shrunk or outcome.shrunk)
        return outcome

    async def _try(self, access: Access, asked: Asked, leave: Leave) -> Outcome:
        at = (asked.queue, asked.request.runner)
        self.rate_waits.forget(asked.queue)
        # Removed now: if there is no answer, it is unknown how many tokens were spent.
        grant = self._grants.pop(at, None)
        attempt = LimitedAttempt(self._memory, asked, grant, leave, since=self._key_queues.since([asked.queue]))
        try:
            outcome = await access.write(attempt.claim)
        except BaseException:
            self._memory.doubt(*at)
            raise
        finally:
            access.server.conflicts.lock_waits += attempt.lock_waits
        self._memory.note_taken(*at, len(outcome.rows))
        if outcome.grant is not None:
            self._grants[at] = outcome.grant
        if (limits := attempt.limits) is not None:
            self._key_queues.note([asked.queue], [asked.queue] if limits.marked else [], limits.behind)
            if outcome.wait is not None:
                self.rate_waits.note(asked.queue, outcome.now, outcome.wait, limits.rate_limit)
            if not outcome.short and not outcome.admit:
                self._memory.cursors(asked.queue).end(outcome.rows, fair=limits.fair, flowing=outcome.found)
                self._memory.turns(asked.queue).after_claim(outcome.rows, limits.weights)
        return outcome

    def farthest(self, queue: str) -> Micros:
        """The highest rank that was claimed from a queue."""
        return self._memory.cursors(queue).farthest


def claimed(row: Any) -> Claimed:
    """The claimed job of a row."""
    return Claimed(*row[:_FIELDS])
