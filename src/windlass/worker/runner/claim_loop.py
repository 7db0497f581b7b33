"""The claim loop: keeps the slots full, and waits only when there is nothing to do."""

import asyncio
import random
from collections.abc import Mapping

from windlass.core.events import Emit, HintsUnavailable, StoreFailed, StoreRecovered
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import requeue
from windlass.errors import LeaseLost, StoreUnavailable, StoreUnusable
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, QueueQuota
from windlass.worker.handlers.work import Work
from windlass.worker.runner.held_jobs import MAX_PREFETCH_WAIT, HeldJobs, PrefetchSize
from windlass.worker.runner.settler import MAX_BACKLOG_SIZE, Settler
from windlass.worker.runner.slots import Slots
from windlass.worker.shared_table import SharedTable
from windlass.worker.store_retry import FailureReports, MemoryErrors, describe_error

MAX_POLL = 1.0
MIN_POLL = 0.05
ADMIT_EVERY = 1.0
MAX_ADMITTED = 500
MAX_CLAIMED = 2_000
"""Max jobs per claim, however many slots are free: they arrive in one reply."""
MANY = 100
"""After a claim of this size the next follows at once: a store may give less than was asked for, to stay quick."""
MAX_EMPTY_CLAIMS = 8
EMPTY_CLAIM_PAUSE = 0.05
"""After MAX_EMPTY_CLAIMS claims in a row that a hint called for and that found nothing, each waits this long."""


class ClaimLoop:
    """Claims what fits, hands it to the slots, and waits for room or for work."""

    def __init__(
        self,
        store: Store,
        slots: Slots,
        held_jobs: HeldJobs,
        settler: Settler,
        table: SharedTable,
        emit: Emit,
        *,
        reconcile_every: float,
    ) -> None:
        self._store = store
        self._slots = slots
        self._held_jobs = held_jobs
        self._settler = settler
        self._table = table
        self._emit = emit
        self._prefetch = PrefetchSize()
        self._runner = ""
        self._claim = 0
        self._lease = asyncio.Event()
        self._poll = MIN_POLL
        self._empty_claims = 0
        self._outage: str | None = None
        self._failures = FailureReports(emit)
        self._memory_errors = MemoryErrors()
        self._admitted, self._found_work = 0.0, False
        self._reconciled = 0.0
        self._reconcile_every = reconcile_every
        self.asking = False
        """Whether a claim is in flight."""
        self.lost = asyncio.Event()
        """Set when the store says that this runner's lease is gone."""

    def serve(self, runner: str) -> None:
        """Claim under this id from now on; it has a lease."""
        self._runner, self._claim = runner, 0
        self.lost.clear()
        self._lease.set()

    async def run(self, queues: Mapping[str, int | None], types: tuple[str, ...]) -> None:
        """Claim until cancelled. An unexpected error ends no handler; the jobs of its claim are requeued."""
        self._store.signals.subscribe(tuple(queues))
        while True:
            try:
                await self._run(queues, types)
            except StoreUnusable:
                raise
            except Exception as error:
                self._failures.failed("claiming", describe_error(error))
                self._memory_errors.count(error)
                self.asking = False
                await asyncio.sleep(MAX_POLL)
                if self._lease.is_set():
                    await self._reconcile()  # requeue now, since the next claim may fail in the same way

    async def _run(self, queues: Mapping[str, int | None], types: tuple[str, ...]) -> None:
        while True:
            await self._lease.wait()
            await self._wait_for_room()
            quotas, room = self._quotas(queues)
            free = self._slots.free
            cursor = self._store.signals.cursor()
            self._settler.go(claiming=True)
            await asyncio.sleep(0)  # outcomes first, since they free slots
            self.asking = True
            jobs = await self._attempt(quotas, self._held_jobs.claimable(types), room)
            self.asking = False
            self._slots.add(self._held_jobs.add(jobs))
            self._memory_errors.end()
            self._failures.succeeded("claiming")
            if not self._slots.buffered:
                self._settler.go()
            self._held_jobs.remove(self._slots.taken_away())
            if self._now() - self._reconciled > self._reconcile_every:
                await self._reconcile()
            missed, self._found_work = self._found_work and not jobs, False  # a job may be due and not admitted yet
            if missed or self._now() - self._admitted > ADMIT_EVERY:
                await self._admit(tuple(queues))
            if jobs:
                self._poll, self._empty_claims = MIN_POLL, 0
            if len(jobs) == room or len(jobs) >= MANY:
                continue
            if len(jobs) <= free and not self._slots.free:
                await self._wait_for_slot()
            elif self._store.signals.names_queues:
                self._emit_outage()
                await self._wait_for_hint(cursor)
            else:
                await self._wait_for_work(tuple(queues), types)

    def _quotas(self, queues: Mapping[str, int | None]) -> tuple[tuple[QueueQuota, ...], int]:
        """What to claim: free slots and a small prefetch, and of each queue no more than its quota."""
        slots = self._slots
        self._prefetch.measure(slots.ended, self._now())
        room = slots.concurrency + self._prefetch.jobs - slots.running - slots.buffered
        room = min(room, self._table.room, MAX_CLAIMED)
        held = self._held_jobs.by_queue
        quotas = [
            QueueQuota(queue, room if most is None else min(room, most - held[queue]), held[queue])
            for queue, most in queues.items()
        ]
        return tuple(quota for quota in quotas if quota.limit > 0), room

    async def _attempt(self, quotas: tuple[QueueQuota, ...], types: tuple[str, ...], room: int) -> list[Claimed]:
        """One claim, repeated under its own number until the store has answered it."""
        if not quotas or room <= 0 or not self._table.may_start(since_boot()):
            await asyncio.sleep(0.01)
            return []
        self._claim += 1
        free = min(room, self._slots.free)
        request = ClaimRequest(
            runner=self._runner, claim=self._claim, quotas=quotas, types=types, limit=room, free=free
        )
        pause, failing = MIN_POLL, False
        while True:
            try:
                jobs = await self._ask(request)
            except LeaseLost:
                if request.runner == self._runner:
                    self._lease.clear()
                    self.lost.set()
                return []
            except StoreUnusable:
                raise
            except StoreUnavailable as error:
                if not failing:
                    self._emit(StoreFailed(doing="claiming", problem=str(error)))
                failing, self._reconciled = True, 0.0
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, MAX_POLL)
                continue
            if failing:
                self._emit(StoreRecovered(doing="claiming"))
            # A new lease may have arrived meanwhile; jobs claimed under the old one were rescued with it.
            return jobs if request.runner == self._runner else []

    async def _ask(self, request: ClaimRequest) -> list[Claimed]:
        """Send a claim and await its reply; if this is cancelled meanwhile, the jobs of the reply are requeued."""
        asking = asyncio.ensure_future(self._store.jobs.claim(request))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(self._give_back)
            raise

    def _give_back(self, asked: "asyncio.Future[list[Claimed]]") -> None:
        if not asked.cancelled() and asked.exception() is None:
            for work in self._held_jobs.add(asked.result()):
                self._requeue(work)

    async def _wait_for_room(self) -> None:
        """Wait until a claim is worthwhile: a slot is free and no job waits for it, or the prefetch runs low."""
        slots = self._slots
        while True:
            slots.changed.clear()
            low = slots.buffered <= self._prefetch.jobs // 2
            starved = slots.running < slots.concurrency or self._prefetch.jobs
            # A write in flight ends soon; then outcomes and the next claim go together.
            together = not (self._store.jobs.grouped and self._settler.writing and slots.buffered)
            if low and starved and together and self._settler.backlog < MAX_BACKLOG_SIZE:
                return
            try:
                async with asyncio.timeout(MAX_POLL):
                    await slots.changed.wait()
            except TimeoutError:
                self._requeue_stuck()
                slots.feed()

    async def _wait_for_slot(self) -> None:
        """Wait until a slot is free, or for one poll: the store has nothing to prefetch."""
        slots = self._slots
        while not slots.free:
            slots.changed.clear()
            try:
                async with asyncio.timeout(MAX_POLL):
                    await slots.changed.wait()
            except TimeoutError:
                return

    def _requeue_stuck(self) -> None:
        """Requeue prefetched jobs that wait behind slow handlers: other runners may be free."""
        oldest = self._slots.oldest
        if oldest is None or since_boot() - oldest.claimed_on < MAX_PREFETCH_WAIT // 2:
            return
        self._prefetch.reset()
        for work in self._slots.take_unstarted():
            self._requeue(work)

    def _requeue(self, work: Work) -> None:
        job = work.claimed
        self._settler.add(work, requeue(job.id, job.queue, job.attempt))

    async def _wait_for_hint(self, cursor: int) -> None:
        """Wait for a hint, or for one poll: hints name queues here, so the claim itself looks for work."""
        if await self._store.signals.wait(cursor, self._poll * random.uniform(0.75, 1.0)):
            await self._back_off_if_empty()
        else:
            self._poll, self._empty_claims = min(self._poll * 2, MAX_POLL), 0

    def _emit_outage(self) -> None:
        """Emit each start of an outage of hints once. Where hints are relayed, the supervisor emits it."""
        signals = self._store.signals
        if not signals.via_supervisor and signals.outage != self._outage:
            self._outage = signals.outage
            if self._outage is not None:
                self._emit(HintsUnavailable(why=self._outage))

    async def _back_off_if_empty(self) -> None:
        """Delay the next claim if many in a row found nothing."""
        self._empty_claims += 1
        if self._empty_claims > MAX_EMPTY_CLAIMS:
            await asyncio.sleep(EMPTY_CLAIM_PAUSE)

    async def _wait_for_work(self, queues: tuple[str, ...], types: tuple[str, ...]) -> None:
        """Until a hint or the next poll says that a claim may find something."""
        signals = self._store.signals
        while self._lease.is_set() and self._now() - self._reconciled < self._reconcile_every:
            cursor = signals.cursor()
            try:
                # A read without a lock: most hints are about work of other runners.
                if await signals.has_work(queues, self._held_jobs.claimable(types)):
                    await self._back_off_if_empty()
                    self._found_work = True
                    return
                self._empty_claims = 0
            except StoreUnavailable:
                await asyncio.sleep(self._poll)
                return
            if not await signals.wait(cursor, self._poll * random.uniform(0.75, 1.0)):
                self._poll = min(self._poll * 2, MAX_POLL)

    async def _admit(self, queues: tuple[str, ...]) -> None:
        """Admit due jobs of the served queues, which must not wait for an absent coordinator."""
        self._admitted = self._now()
        try:
            await self._store.jobs.admit(MAX_ADMITTED, queues)
            self._failures.succeeded("admitting")
        except StoreUnavailable as error:
            self._failures.failed("admitting", str(error))

    async def _reconcile(self) -> None:
        """Requeue jobs that only the store lists for this runner: a reply was lost, or a job was taken.

        Runs between claims, so that no job of a claim in flight looks unknown.
        """
        self._reconciled = self._now()
        try:
            held = await self._store.jobs.held(self._runner)
            unknown = [job for job in held if not self._held_jobs.holds(job.id, job.attempt)]
            if unknown:
                await self._store.jobs.settle([requeue(job.id, job.queue, job.attempt) for job in unknown])
            self._failures.succeeded("comparing what is held")
        except StoreUnusable:
            raise
        except Exception as error:
            self._failures.failed("comparing what is held", describe_error(error))

    @staticmethod
    def _now() -> float:
        return since_boot() / 1_000_000
