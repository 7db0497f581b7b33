"""One attempt of a claim from a limited queue: read the limits, lock candidates, decide which may run, claim."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from windlass.core.flow.rate import wait_for
from windlass.core.moments import Micros
from windlass.errors import LeaseLost
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.bucket_turns import MAX_TURNS, pause
from windlass.store.postgres.limits.claim_memory import ClaimMemory
from windlass.store.postgres.limits.cursors import Candidate
from windlass.store.postgres.limits.fairness import Search
from windlass.store.postgres.limits.limited_outcome import Asked, Leave, Outcome
from windlass.store.postgres.limits.queue_limits import QueueLimits
from windlass.store.postgres.limits.rate_check import (
    FAR,
    SOON,
    Grant,
    RateRequest,
    RateResult,
    lock_queue_token_bucket,
    spend_tokens,
)


class LimitedAttempt:
    """One attempt, which is one transaction."""

    def __init__(self, memory: ClaimMemory, asked: Asked, grant: Grant | None, leave: Leave, *, since: int) -> None:
        self.limits: QueueLimits | None = None
        self.lock_waits = 0
        """How often the attempt had to wait for another claim's lock on the queue."""
        self._trip: Micros = 0
        """How long a small statement takes at present."""
        self._since = since
        self._memory = memory
        self._asked = asked
        self._cursors = memory.cursors(asked.queue)
        self._grant = grant
        self._leave = leave

    async def claim(self, db: Db) -> Outcome:
        request, queue = self._asked.request, self._asked.queue
        numbers = {"runner": request.runner, "claim": request.claim, "first": self._asked.first}
        values = {"queue": queue, "since": self._since, "over": list(self._asked.over), **numbers}
        limits = self.limits = await self._limits_in_turn(db, values)
        if limits is None:
            return Outcome()
        if limits.leased is None:
            raise LeaseLost(request.runner)
        if not limits.leased:
            return Outcome()
        if limits.again or limits.plain:
            return Outcome(again=limits.again, plain=limits.plain)
        if limits.marked and self._leave.admit:
            return Outcome(admit=True, grant=self._grant)
        room = self._asked.limit
        if limits.max_concurrency is not None:
            held = self._memory.holds(queue, request.runner)
            if held is None or limits.slots - held < self._asked.limit or limits.given > limits.max_concurrency:
                held, again = await self._count(db, numbers)
                if again:
                    return Outcome(again=True)
            if limits.given > limits.max_concurrency:
                return await self._shrink(db, limits, held)
            room = limits.slots - held
        return await self._from(db, limits, room)

    async def _limits_in_turn(self, db: Db, values: dict[str, Any]) -> QueueLimits | None:
        """The limits of the queue; None if it is paused. With buckets, waits for the queue's lock for a bounded time:
        without the lock, jobs may be taken out of order.
        """
        limits = None
        for attempt in range(MAX_TURNS + 1):
            began = since_boot()
            rows = await db.rows("queue_limits", values)
            self._trip = since_boot() - began
            limits = QueueLimits(*rows[0]) if rows else None
            if limits is None or limits.free or attempt == MAX_TURNS:
                break
            self.lock_waits += 1
            await pause(attempt)
        if limits is not None and db.profile.has_buckets:
            db.buckets = limits.buckets
        return limits

    async def _count(self, db: Db, numbers: dict[str, Any]) -> tuple[int, bool]:
        """How many jobs the runner holds, now that its quota is locked, and whether this claim took some before."""
        queue, runner = self._asked.queue, self._asked.request.runner
        values = {"queue": queue, "since": self._memory.oldest(queue, runner), **numbers}
        held, oldest, again = (await db.rows("count_held", values))[0]
        self._memory.note_held(queue, runner, held, oldest or self._asked.request.claim)
        return held, again

    async def _shrink(self, db: Db, limits: QueueLimits, held: int) -> Outcome:
        """Give up unused slots after the limit was lowered: nothing starts until the quotas fit the limit.

        Also asks for slots, so that unused ones are taken from other runners, which may not claim for a long time.
        """
        if held < limits.slots:
            values = {"queue": self._asked.queue, "runner": self._asked.request.runner, "slots": held}
            await db.run("set_slots", values)
        return Outcome(
            short=self._asked.limit if self._leave.ask else 0, shrunk=held < limits.slots, grant=self._grant
        )

    async def _from(self, db: Db, limits: QueueLimits, room: int) -> Outcome:
        jobs, wait = self._most(limits, room)
        if jobs <= 0:
            return Outcome(grant=self._grant, wait=wait, now=limits.now)
        if (
            limits.rate is not None
            and self._grant is None
            and not await lock_queue_token_bucket(db, self._asked.queue, limits.rate)
        ):
            return Outcome(wait=SOON, now=limits.now)
        self._cursors.begin(limits.returns)
        if not limits.rated and limits.rate is None and room >= jobs:
            rows = await self._take_at_once(db, self._search(limits), jobs, fair=limits.fair)
            return Outcome(rows, found=len(rows) == jobs)
        return await self._take_found(db, limits, jobs, room)

    async def _take_found(self, db: Db, limits: QueueLimits, jobs: int, room: int) -> Outcome:
        """Lock candidates, decide which may start, and claim those."""
        found = await self._find(db, limits, jobs)
        full = len(found) == jobs
        if limits.max_concurrency is not None and len(found) > room:
            if self._leave.ask:
                return Outcome(short=len(found) - room, grant=self._grant)
            found = found[: max(0, room)]
        result = (
            await self._spend_tokens(db, limits, found)
            if limits.rate or limits.rated
            else RateResult(paid=found, grant=self._grant)
        )
        rows = await self._take(db, result) if result.paid or result.throttled else []
        throttled = bool(result.throttled)
        return Outcome(rows, throttled=throttled, found=full, grant=result.grant, wait=result.wait, now=result.now)

    def _most(self, limits: QueueLimits, room: int) -> tuple[int, Micros | None]:
        """How many jobs to search for; without tokens none, and how long until there are some."""
        asked, left, wait = self._asked, [], None
        if limits.max_concurrency is not None:
            left.append(limits.max_concurrency - limits.given + max(0, room))
        if limits.rate is not None:
            token_bucket = limits.token_bucket(limits.rate)
            if self._grant is not None and (self._grant.tokens < asked.limit or self._grant.until < limits.now):
                self._grant = None
            left.append(token_bucket.tokens if self._grant is None else self._grant.tokens)
            wait = wait_for(token_bucket, limits.rate, 1) if left[-1] <= 0 else None
        jobs = asked.limit
        near = min(left, default=FAR * asked.request.limit) < FAR * asked.request.limit
        if asked.request.free is not None and (near or limits.rated):
            # Near a limit, claim for free slots only.
            jobs = min(jobs, asked.request.free - asked.taken)
        return min(jobs, left[-1]) if limits.rate is not None else jobs, wait

    def _search(self, limits: QueueLimits) -> Search:
        levels = list(zip(limits.sort_priorities, limits.watermarks, strict=True))
        return Search(self._asked.queue, self._asked.request.types, levels, limits.weights)

    async def _take_at_once(self, db: Db, search: Search, jobs: int, *, fair: bool) -> list[Any]:
        """Claim without locking candidates first, because nothing must be decided about each job."""
        if not fair:
            return await self._take_best(db, search, jobs)
        claim = (self._asked.request.runner, self._asked.request.claim)
        turns = self._memory.turns(search.queue)
        rows = await turns.claim(db, search, self._cursors, jobs, claim, self._trip)
        if len(rows) < jobs and self._cursors.from_watermark:
            left = await self._ask(db, search, jobs - len(rows), unassigned=True)
            rows += await self._take(db, RateResult(paid=left)) if left else []
        return rows

    async def _take_best(self, db: Db, search: Search, jobs: int) -> list[Any]:
        """Claim the best jobs in one statement, because no tokens are needed."""
        numbers = {"runner": self._asked.request.runner, "claim": self._asked.request.claim}
        rows = await db.rows("claim_best", {**numbers, **self._values(search, jobs)})
        if len(rows) < jobs and self._cursors.may_sweep():
            rows += await db.rows("claim_best", {**numbers, **self._values(search, jobs - len(rows))})
        return sorted(rows, key=itemgetter("sort_priority", "rank", "id"))

    async def _find(self, db: Db, limits: QueueLimits, jobs: int) -> list[Candidate]:
        search = self._search(limits)
        if not limits.fair:
            return await self._best(db, search, jobs)
        found = await self._memory.turns(search.queue).candidates(db, search, self._cursors, jobs, self._trip)
        if len(found) < jobs and self._cursors.from_watermark:
            # Add jobs without a tenant queue, from before the queue became fair.
            found += await self._ask(db, search, jobs - len(found), unassigned=True)
        return found

    async def _best(self, db: Db, search: Search, jobs: int) -> list[Candidate]:
        found = await self._ask(db, search, jobs)
        if len(found) < jobs and self._cursors.may_sweep():
            # This transaction has locked the candidates found before, so it finds them again.
            found = await self._ask(db, search, jobs)
        return found

    async def _ask(self, db: Db, search: Search, jobs: int, *, unassigned: bool = False) -> list[Candidate]:
        values = {**self._values(search, jobs), "unassigned": unassigned}
        return [Candidate(*row) for row in await db.rows("candidates", values)]

    def _values(self, search: Search, jobs: int) -> dict[str, Any]:
        starts = self._cursors.starts(
            [((sort_priority, None), watermark) for sort_priority, watermark in search.levels]
        )
        return {
            "queue": search.queue,
            "types": list(search.types),
            "limit": jobs,
            "sort_priorities": [sort_priority for sort_priority, _ in search.levels],
            "ranks": [rank for rank, _ in starts],
            "ids": [id_ for _, id_ in starts],
        }

    async def _spend_tokens(self, db: Db, limits: QueueLimits, found: Sequence[Candidate]) -> RateResult:
        if not found:
            return RateResult(grant=self._grant)
        asked = self._asked
        rate_request = RateRequest(
            asked.queue, asked.request.runner, limits.rate, self._grant, asked.limit, limits.now
        )
        result = await spend_tokens(db, rate_request, found)
        if self._grant is not None and result.wait is not None:
            # The grant is used up, but the token bucket may have more.
            result.grant, result.wait = None, 0
        return result

    async def _take(self, db: Db, result: RateResult) -> list[Any]:
        request = self._asked.request
        values = {"queue": self._asked.queue, "runner": request.runner, "claim": request.claim, **result.values()}
        rows = await db.rows("claim_candidates", values)
        nth = {job.id: n for n, job in enumerate(result.paid)}
        return sorted(rows, key=lambda row: nth[row["id"]])
