"""claim: a runner takes pending jobs, best first; repeating a claim returns the same jobs."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Claimed
from windlass.core.moments import SECOND, Micros
from windlass.errors import LeaseLost
from windlass.store.clock import since_boot
from windlass.store.postgres.access import Access
from windlass.store.records import ClaimRequest

SWEEP_EVERY: Micros = 1 * SECOND
"""So often a claim begins at the floor again, however well the jobs flow."""
SHARE = 20
"""Of so many parts of the time, claims that begin at the floor may take one, once they take long."""
LONG: Micros = SECOND // 100

_BEGIN = 3
_END = _BEGIN + len(Claimed.__struct_fields__)
_order = itemgetter("urgency", "rank", "id")

At = tuple[str, int]
"""A queue and an urgency."""
Seen = tuple[Micros, JobId]
"""How far a place has been looked through: the rank and the id of the last that was claimed there."""


class Claims:
    """The claims of one process, and how far it has come in each queue.

    While jobs flow, a claim begins where the last one ended: what was dead then is not walked past again. If a job
    was put back in one of its queues since, it begins at the floor, where that is found. So it does every second, and
    whenever jobs do not flow, as long as this takes only a small part of the time: for jobs that were committed late.
    """

    def __init__(self) -> None:
        self._seen: dict[At, Seen] = {}
        self._returns: dict[tuple[str, ...], int] = {}
        self._flowing = False
        self._swept = 0
        self._sweep_again = 0

    async def claim(self, access: Access, request: ClaimRequest) -> list[Claimed]:
        """One atomic step under the runner's lease: a runner that was rescued gets nothing."""
        jobs: list[Claimed] = []
        for queues, most in _portions(request):
            limit = min(most, request.limit - len(jobs))
            if limit <= 0:
                break
            taken = await self._from(access, _Portion(request, queues, limit, first=not jobs))
            if taken is None:
                # The reply to an earlier try was lost: the jobs it took are still under its number.
                jobs = await _taken_before(access, request)
                break
            jobs += taken
        if len(request.shares) > 1:
            place = {share.queue: i for i, share in enumerate(request.shares)}
            jobs.sort(key=lambda job: place.get(job.queue, len(place)))
        return jobs

    async def _from(self, access: Access, portion: "_Portion") -> list[Claimed] | None:
        """From the cursors or from the floors on, or from both, one after the other."""
        began = since_boot()
        from_floor = began >= self._sweep_again and (not self._flowing or began - self._swept >= SWEEP_EVERY)
        seen = {} if from_floor else {at: seen for at, seen in self._seen.items() if at[0] in portion.queues}
        jobs = await self._take(access, portion, seen)
        if jobs is None:
            return None
        if not seen:
            self._note_sweep(began)
        elif len(jobs) < portion.limit and (began := since_boot()) >= self._sweep_again:
            rest = _Portion(portion.request, portion.queues, portion.limit - len(jobs), first=False)
            jobs += await self._take(access, rest, {}) or []
            self._note_sweep(began)
        self._flowing = len(jobs) == portion.limit
        return jobs

    async def _take(self, access: Access, portion: "_Portion", seen: dict[At, Seen]) -> list[Claimed] | None:
        known = self._returns.get(portion.queues, -1)
        values = portion.values(seen, known)
        rows = await access.once(lambda db: db.rows("claim", values))
        leased, again, returns = rows[0][:_BEGIN]
        if not leased:
            raise LeaseLost(portion.request.runner)
        if again:
            return None
        self._returns[portion.queues] = returns
        if rows[0][_BEGIN] is None:
            return []
        rows.sort(key=_order)
        # Within a queue and a priority the last is the farthest.
        reached = {(row["queue"], row["urgency"]): (row["rank"], row["id"]) for row in rows}
        if len(rows) == portion.limit and (returns != known or not seen):
            self._forget_beyond(portion.queues, reached)
        self._seen |= reached
        return [Claimed(*row[_BEGIN:_END]) for row in rows]

    def _forget_beyond(self, queues: tuple[str, ...], reached: Iterable[At]) -> None:
        """A claim that began at the floors had enough before it came to these places: it did not look there."""
        place = {queue: i for i, queue in enumerate(queues)}
        last = max((place[queue], urgency) for queue, urgency in reached)
        for at in [at for at in self._seen if at[0] in place and (place[at[0]], at[1]) > last]:
            del self._seen[at]

    def _note_sweep(self, began: Micros) -> None:
        self._swept = since_boot()
        taken = self._swept - began
        self._sweep_again = self._swept + SHARE * taken if taken > LONG else 0


class _Portion(msgspec.Struct, frozen=True):
    """What one statement takes for a claim."""

    request: ClaimRequest
    queues: tuple[str, ...]
    limit: int
    first: bool
    """Whether nothing was taken yet: then what is found under the claim's number is from an earlier try."""

    def values(self, seen: dict[At, Seen], returns: int) -> dict[str, Any]:
        """For the statement."""
        return {
            "runner": self.request.runner,
            "claim": self.request.claim,
            "first": self.first,
            "queues": list(self.queues),
            "types": list(self.request.types),
            "limit": self.limit,
            "returns": returns,
            "seen_queues": [queue for queue, _ in seen],
            "seen_urgencies": [urgency for _, urgency in seen],
            "seen_ranks": [rank for rank, _ in seen.values()],
            "seen_ids": [id_ for _, id_ in seen.values()],
        }


def _portions(request: ClaimRequest) -> list[tuple[tuple[str, ...], int]]:
    """Queues that give all they are asked for need no statements of their own: an earlier one is emptied first."""
    if all(share.most >= request.limit for share in request.shares):
        return [(tuple(share.queue for share in request.shares), request.limit)]
    return [((share.queue,), share.most) for share in request.shares]


async def _taken_before(access: Access, request: ClaimRequest) -> list[Claimed]:
    values = {"runner": request.runner, "claim": request.claim}
    return [Claimed(*row) for row in await access.read(lambda db: db.rows("claimed", values))]
