"""claim: a runner takes pending jobs, best first; repeating a claim returns the same jobs."""

from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Claimed
from windlass.core.moments import SECOND, Micros
from windlass.errors import LeaseLost
from windlass.store.clock import since_boot
from windlass.store.postgres.access import Access
from windlass.store.records import ClaimRequest, QueueShare

SWEEP_EVERY: Micros = 1 * SECOND
"""So often a claim begins at the floor again, however well the jobs flow."""
SHARE = 20
"""Of so many parts of the time, claims that begin at the floor may take one."""

_BEGIN = 2
_END = _BEGIN + len(Claimed.__struct_fields__)


class Seen(msgspec.Struct, frozen=True, order=True):
    """How far a place has been looked through; not true any more once a job was put back there."""

    returns: int
    rank: Micros
    id: JobId


At = tuple[str, int]
"""A queue and an urgency."""


class Claims:
    """The claims of one process, and how far it has come in each queue.

    While jobs flow, a claim begins where the last one ended: what was dead then is not walked past again. Jobs behind
    that cursor, which were committed late or put back, are found by claims that begin at the floor: every second,
    and whenever jobs do not flow, as long as these take only a small part of the time.
    """

    def __init__(self) -> None:
        self._seen: dict[At, Seen] = {}
        self._flowing = False
        self._swept = 0
        self._sweep_again = 0

    async def claim(self, access: Access, request: ClaimRequest) -> list[Claimed]:
        """One atomic step under the runner's lease: a runner that was rescued gets nothing."""
        # A queue that gives all it is asked for needs no statement of its own: an earlier one is emptied first.
        if all(share.most >= request.limit for share in request.shares):
            return await self._claim(access, request, request.shares, request.limit, first=True)
        jobs: list[Claimed] = []
        for share in request.shares:
            limit = min(share.most, request.limit - len(jobs))
            if limit > 0:
                jobs += await self._claim(access, request, (share,), limit, first=not jobs)
        return jobs

    async def _claim(
        self, access: Access, request: ClaimRequest, shares: Sequence[QueueShare], limit: int, *, first: bool
    ) -> list[Claimed]:
        began = since_boot()
        from_floor = began >= self._sweep_again and (not self._flowing or began - self._swept >= SWEEP_EVERY)
        seen = {} if from_floor else self._cursors(shares)
        jobs = await self._take(access, request, shares, limit, seen, first=first)
        if not seen:
            self._note_sweep(began)
        elif len(jobs) < limit and (began := since_boot()) >= self._sweep_again:
            jobs += await self._take(access, request, shares, limit - len(jobs), {}, first=False)
            self._note_sweep(began)
        self._flowing = len(jobs) == limit
        if len(shares) > 1:
            place = {share.queue: i for i, share in enumerate(shares)}
            jobs.sort(key=lambda job: place.get(job.queue, len(place)))
        return jobs

    async def _take(
        self,
        access: Access,
        request: ClaimRequest,
        shares: Sequence[QueueShare],
        limit: int,
        seen: dict[At, Seen],
        *,
        first: bool,
    ) -> list[Claimed]:
        values = {
            "runner": request.runner,
            "claim": request.claim,
            "first": first,
            "queues": [share.queue for share in shares],
            "types": list(request.types),
            "limit": limit,
            "seen_queues": [queue for queue, _ in seen],
            "seen_urgencies": [urgency for _, urgency in seen],
            "seen_returns": [each.returns for each in seen.values()],
            "seen_ranks": [each.rank for each in seen.values()],
            "seen_ids": [each.id for each in seen.values()],
        }
        rows = await access.once(lambda db: db.rows("claim", values))
        leased, again = rows[0][0], rows[0][1]
        if not leased:
            raise LeaseLost(request.runner)
        if again:
            # The reply to an earlier try was lost: the jobs it took are still under its number.
            mine = {"runner": request.runner, "claim": request.claim}
            return [Claimed(*row) for row in await access.read(lambda db: db.rows("claimed", mine))]
        if rows[0][2] is None:
            return []
        self._advance(rows)
        return [Claimed(*row[_BEGIN:_END]) for row in rows]

    def _cursors(self, shares: Sequence[QueueShare]) -> dict[At, Seen]:
        queues = {share.queue for share in shares}
        return {at: seen for at, seen in self._seen.items() if at[0] in queues}

    def _advance(self, rows: Sequence[Any]) -> None:
        """Within a queue and a priority they come in their order: the last of each is the farthest."""
        farthest = {(row["queue"], row["urgency"]): row for row in rows}
        for at, row in farthest.items():
            seen = Seen(row["returns"], row["rank"], row["id"])
            self._seen[at] = max(seen, self._seen.get(at, seen))

    def _note_sweep(self, began: Micros) -> None:
        self._swept = since_boot()
        self._sweep_again = self._swept + SHARE * (self._swept - began)
