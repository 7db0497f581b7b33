"""claim: assign pending jobs to a runner, best first; repeating a claim returns the same jobs."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed
from windlass.core.moments import Micros
from windlass.errors import LeaseLost
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.server import Server
from windlass.store.postgres.limits.bucket_turns import ALL_BUCKETS, BucketTurns
from windlass.store.postgres.limits.key_queue import KeyQueues
from windlass.store.postgres.limits.limited_claim import Asked, LimitedClaims, claimed
from windlass.store.postgres.limits.throttle import Rescans
from windlass.store.postgres.verbs.open_claims import OpenClaims
from windlass.store.records import ClaimRequest, QueueQuota

MAX_KNOWN = 1000
"""Lists of queues for which rescans are remembered."""
_BEGIN = 7
_END = _BEGIN + len(Claimed.__struct_fields__)
_order = itemgetter("sort_priority", "rank", "id")

At = tuple[str, int, int]
"""A queue, a sort priority, and a bucket, or ALL_BUCKETS."""
Seen = tuple[Micros, JobId]
"""A cursor: rank and id of the last job claimed there."""


class Claims:
    """The claims of one process, with a cursor per queue and priority.

    While claims get as many jobs as they ask for, each begins at the cursors, where the last one ended, so that it
    does not read dead index entries again. A claim begins at the watermarks if a job was put back since; and also
    every second (`rescan_every` of the profile), or if the last claim got too few jobs, to find jobs that were
    committed late or whose rows were locked. Once these rescans take long, they are limited to 1/20 of the time.
    """

    def __init__(self, announce: Callable[[], None], server: Server) -> None:
        self._announce = announce
        self._turns = BucketTurns(server) if server.texts.profile.has_buckets else None
        self._rescan_every = server.address.profile.rescan_every
        self._rescans: dict[tuple[str, ...], Rescans] = {}
        self.key_queues = KeyQueues()
        self.admitted_more = False
        """Whether the last claim admitted more jobs than it took, so that other runners should be woken."""
        self._seen: dict[At, Seen] = {}
        self._returns: dict[tuple[str, ...], int] = {}
        self._limited: set[str] = set()
        self.limited = LimitedClaims(self.key_queues)
        self.open = OpenClaims()

    async def claim(self, access: Access, request: ClaimRequest) -> list[Claimed]:
        """Claim jobs, under a valid lease only; if that admits jobs that wait for keys, claim again."""
        over = self.open.due(request.runner)
        try:
            jobs = await self._claim(access, request, list(over))
        except BaseException:
            self.open.forget(request.runner, over)
            raise
        self.open.shortened(request.runner, over)
        short = request.limit - len(jobs)
        admitted = await self._admit(access, short) if self.key_queues.due(idle=short > 0) else 0
        more = await self._claim(access, _rest(request, jobs), again=True) if admitted and short > 0 else []
        self.admitted_more = admitted > len(more)
        jobs = [*jobs, *more] if more else jobs
        self.open.take(request.runner, request.claim, [job.id for job in jobs])
        return jobs

    async def _admit(self, access: Access, wanted: int) -> int:
        """Admit jobs that wait for their keys, at ranks beyond this process's cursors."""
        ranks = [rank for (queue, *_), (rank, _) in self._seen.items() if queue in self.key_queues.dirty]
        ranks += [self.limited.farthest(queue) for queue in self.key_queues.dirty]
        return await self.key_queues.admit(access, wanted, max(ranks, default=0) + 1)

    async def _claim(
        self, access: Access, request: ClaimRequest, over: Sequence[int] = (), *, again: bool = False
    ) -> list[Claimed]:
        jobs: list[Claimed] = []
        quotas = request.quotas
        while quotas and len(jobs) < request.limit:
            queues = _portion(request, quotas, self._limited)
            limit = min(quotas[0].limit, request.limit - len(jobs))
            if limit <= 0:
                taken: list[Claimed] | None = []
            elif queues[0] in self._limited:
                asked = Asked(request, queues[0], limit, len(jobs), first=not jobs and not again, over=over)
                taken = await self._from_limited(access, asked)
            else:
                portion = _Portion(request, queues, limit, first=not jobs and not again, over=over)
                taken = await self._from(access, portion)
                # Limited queues, and all after them, come next.
                queues = tuple(takewhile(lambda queue: queue not in self._limited, queues))
            if taken is None:
                # An earlier try took jobs, and its reply was lost: return those.
                jobs = await _taken_before(access, request)
                break
            jobs += taken
            quotas = quotas[len(queues) :]
        if len(request.quotas) > 1:
            position = {quota.queue: i for i, quota in enumerate(request.quotas)}
            jobs.sort(key=lambda job: position.get(job.queue, len(position)))
        return jobs

    async def _from_limited(self, access: Access, asked: Asked) -> list[Claimed] | None:
        """Claim from a limited queue; returns None if an earlier try of this claim took jobs."""
        outcome = await self.limited.claim(access, asked)
        if outcome.shrunk:
            self._announce()
        if outcome.plain:
            self._limited.discard(asked.queue)
            return await self._from(access, _Portion(asked.request, (asked.queue,), asked.limit, first=asked.first))
        return None if outcome.again else [claimed(row) for row in outcome.rows]

    async def _from(self, access: Access, portion: "_Portion") -> list[Claimed] | None:
        """Claim from unlimited queues, from the cursors or watermarks on, or from both, one after the other."""
        rescans = self._rescans_of(portion.queues)
        due = rescans.due()
        seen = {} if due else {at: seen for at, seen in self._seen.items() if at[0] in portion.queues}
        rows = await self._take(access, portion, seen)
        if rows is None:
            return None
        if not seen:
            rescans.done(self._waited)
        elif len(rows) < portion.limit and rescans.may_run():
            rest = _Portion(portion.request, portion.queues, portion.limit - len(rows), first=False)
            rows = sorted([*rows, *(await self._take(access, rest, {}) or [])], key=_order)
            rescans.done(self._waited)
        rescans.flowing = len(rows) == portion.limit
        return [Claimed(*row[_BEGIN:_END]) for row in rows]

    def _rescans_of(self, queues: tuple[str, ...]) -> Rescans:
        if queues not in self._rescans:
            if len(self._rescans) >= MAX_KNOWN:  # REST workers name any queues
                self._rescans.clear()
                self._returns.clear()
            self._rescans[queues] = Rescans(self._rescan_every)
        return self._rescans[queues]

    async def _take(self, access: Access, portion: "_Portion", seen: dict[At, Seen]) -> list[Any] | None:
        known = self._returns.get(portion.queues, -1)
        values = portion.values(seen, known, self.key_queues.since(portion.queues))
        rows = await self._rows(access, values)
        head = next(i for i, row in enumerate(rows) if row["id"] is None)
        leased, again, returns, limited, marked, behind, _ = rows.pop(head)[:_BEGIN]
        if leased is None:
            raise LeaseLost(portion.request.runner)
        if not leased:
            return []  # the next renewal shows whether the lease is lost
        if again:
            return None
        self._returns[portion.queues] = returns
        self._limited.update(limited)
        self.key_queues.note(portion.queues, marked, behind)
        if not rows:
            return []
        rows.sort(key=_order)
        loose = self._turns is not None and self._turns.loose
        reached = {
            # A claim from all buckets takes the best jobs, so that one cursor is enough.
            (row["queue"], row["sort_priority"], row["bucket"] if loose else ALL_BUCKETS): (row["rank"], row["id"])
            for row in rows
        }
        if len(rows) == portion.limit and (returns != known or not seen):
            self._forget_beyond(portion.queues, reached)
        self._seen |= reached
        return rows

    async def _rows(self, access: Access, values: dict[str, Any]) -> list[Any]:
        """Run the statement `claim`; with buckets, in turn with other claims."""
        if self._turns is None:
            return await access.once(lambda db: db.rows("claim", values))

        def claim(of_turn: dict[str, Any]) -> Awaitable[list[Any]]:
            # A careful claim needs no bound for waits: it skips locked jobs. It takes longer, because it locks each
            # job.
            chosen = access if of_turn["careful"] else access.ending_waits()
            return chosen.once(lambda db: db.rows("claim", of_turn))

        return await self._turns.take(claim, values)

    def _forget_beyond(self, queues: tuple[str, ...], reached: Iterable[At]) -> None:
        """Forget the cursors that a claim did not reach, because it began at the watermarks and got enough jobs."""
        position = {queue: i for i, queue in enumerate(queues)}
        if self._turns is not None and self._turns.loose:
            # A loose claim has read some of the buckets only.
            self._seen = {at: seen for at, seen in self._seen.items() if at[0] not in position}
            return
        last = max((position[queue], sort_priority) for queue, sort_priority, _ in reached)
        for at in [at for at in self._seen if at[0] in position and (position[at[0]], at[1]) > last]:
            del self._seen[at]

    @property
    def _waited(self) -> Micros:
        """How long the last claim waited for other claims, which does not count as work."""
        return 0 if self._turns is None else self._turns.waited


class _Portion(msgspec.Struct, frozen=True):
    """The part of a claim that one statement serves."""

    request: ClaimRequest
    queues: tuple[str, ...]
    limit: int
    first: bool
    """Whether nothing was taken yet: then jobs with the number of this claim are from an earlier try."""
    over: Sequence[int] = ()
    """Older claims of the runner whose rows can be shortened."""

    def values(self, seen: dict[At, Seen], returns: int, since: int) -> dict[str, Any]:
        return {
            "runner": self.request.runner,
            "claim": self.request.claim,
            "first": self.first,
            "over": list(self.over),
            "queues": list(self.queues),
            "types": list(self.request.types),
            "limit": self.limit,
            "returns": returns,
            "since": since,
            "seen_queues": [queue for queue, _, _ in seen],
            "seen_sort_priorities": [sort_priority for _, sort_priority, _ in seen],
            "seen_buckets": [bucket for _, _, bucket in seen],
            "seen_ranks": [rank for rank, _ in seen.values()],
            "seen_ids": [id_ for _, id_ in seen.values()],
        }


def _portion(request: ClaimRequest, quotas: Sequence[QueueQuota], limited: Collection[str]) -> tuple[str, ...]:
    """The queues from which to claim next: unlimited ones share a statement."""
    if quotas[0].queue in limited or any(quota.limit < request.limit for quota in request.quotas):
        return (quotas[0].queue,)
    return tuple(takewhile(lambda queue: queue not in limited, (quota.queue for quota in quotas)))


def _rest(request: ClaimRequest, taken: list[Claimed]) -> ClaimRequest:
    """The request, less the jobs that were taken."""
    by_queue = Counter(job.queue for job in taken)
    quotas = tuple(
        QueueQuota(quota.queue, quota.limit - by_queue[quota.queue], quota.held + by_queue[quota.queue])
        for quota in request.quotas
    )
    free = None if request.free is None else max(0, request.free - len(taken))
    return msgspec.structs.replace(request, quotas=quotas, limit=request.limit - len(taken), free=free)


async def _taken_before(access: Access, request: ClaimRequest) -> list[Claimed]:
    values = {"runner": request.runner, "claim": request.claim}
    return [Claimed(*row) for row in await access.read(lambda db: db.rows("claimed", values))]
