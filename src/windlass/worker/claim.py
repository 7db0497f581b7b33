"""The claim loop: keeps the slots full, and sleeps only when there is nothing to do."""

import asyncio
import random
from collections.abc import Mapping

from windlass.core.events import Emit, HintsSilent, StoreBack, StoreTrouble
from windlass.core.job import Claimed
from windlass.core.outcome import hand_back
from windlass.errors import LeaseLost, SchemaMismatch, StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, QueueShare
from windlass.worker.holdings import PATIENCE, Holdings
from windlass.worker.pace import Pace
from windlass.worker.settle import LARGEST_BACKLOG, Settler
from windlass.worker.slots import Slots
from windlass.worker.table import Table
from windlass.worker.work import Work

LONGEST_POLL = 1.0
SHORTEST_POLL = 0.05
ADMIT_EVERY = 1.0
MOST_ADMITTED = 500
MOST_CLAIMED = 2_000
"""By one claim, however many slots are free: what it brings is one answer."""
MOST_IN_VAIN = 8
VAIN_PAUSE = 0.05
"""After so many claims in a row that brought nothing although something called for them, each waits so long."""


class ClaimLoop:
    """Claims what fits, hands it to the slots, and waits for room or for work."""

    def __init__(
        self,
        store: Store,
        slots: Slots,
        holdings: Holdings,
        settler: Settler,
        table: Table,
        emit: Emit,
        *,
        reconcile_every: float,
    ) -> None:
        self._store = store
        self._slots = slots
        self._holdings = holdings
        self._settler = settler
        self._table = table
        self._emit = emit
        self._pace = Pace()
        self._runner = ""
        self._claim = 0
        self._lease = asyncio.Event()
        self._poll = SHORTEST_POLL
        self._vain = 0
        self._silence: str | None = None
        self._admitted = 0.0
        self._reconciled = 0.0
        self._reconcile_every = reconcile_every
        self.asking = False
        """Whether a claim is on its way."""
        self.lost = asyncio.Event()
        """Set when the store says that this runner's lease is gone."""

    def serve(self, runner: str) -> None:
        """Claim under this id from now on: it has a lease."""
        self._runner, self._claim = runner, 0
        self.lost.clear()
        self._lease.set()

    async def run(self, queues: Mapping[str, int | None], types: tuple[str, ...]) -> None:
        """Until cancelled."""
        self._store.signals.attend(tuple(queues))
        while True:
            await self._lease.wait()
            await self._wait_for_room()
            shares, room = self._shares(queues)
            free = self._slots.free
            mark = self._store.signals.mark()
            self._settler.go(claiming=True)
            await asyncio.sleep(0)  # outcomes first: they are what makes room
            self.asking = True
            jobs = await self._attempt(shares, types, room)
            self.asking = False
            self._slots.add(self._holdings.add(jobs))
            if not self._slots.buffered:
                self._settler.go()
            self._drop_taken()
            if self._now() - self._reconciled > self._reconcile_every:
                await self._reconcile()
            if self._now() - self._admitted > ADMIT_EVERY:
                await self._admit()
            if len(jobs) == room:
                continue
            if jobs:
                self._poll, self._vain = SHORTEST_POLL, 0
            if len(jobs) <= free and not self._slots.free:
                await self._wait_for_slot()
            elif self._store.signals.telling:
                self._tell_silence()
                await self._wait_for_hint(mark)
            else:
                await self._wait_for_work(tuple(queues), types)

    def _shares(self, queues: Mapping[str, int | None]) -> tuple[tuple[QueueShare, ...], int]:
        """What to ask for: free slots and a small prefetch, and of each queue no more than its share."""
        slots = self._slots
        self._pace.measure(slots.ended, self._now())
        room = slots.concurrency + self._pace.prefetch - slots.running - slots.buffered
        room = min(room, self._table.room, MOST_CLAIMED)
        held = self._holdings.by_queue
        shares = [
            QueueShare(queue, room if most is None else min(room, most - held[queue]), held[queue])
            for queue, most in queues.items()
        ]
        return tuple(share for share in shares if share.most > 0), room

    async def _attempt(self, shares: tuple[QueueShare, ...], types: tuple[str, ...], room: int) -> list[Claimed]:
        """One claim, repeated under its own number until the store has answered it."""
        if not shares or room <= 0 or not self._table.may_start(since_boot()):
            await asyncio.sleep(0.01)
            return []
        self._claim += 1
        free = min(room, self._slots.free)
        request = ClaimRequest(
            runner=self._runner, claim=self._claim, shares=shares, types=types, limit=room, free=free
        )
        pause, troubled = SHORTEST_POLL, False
        while True:
            try:
                jobs = await self._ask(request)
            except LeaseLost:
                if request.runner == self._runner:
                    self._lease.clear()
                    self.lost.set()
                return []
            except SchemaMismatch:
                raise
            except StoreUnavailable as error:
                if not troubled:
                    self._emit(StoreTrouble(doing="claiming", problem=str(error)))
                troubled, self._reconciled = True, 0.0
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, LONGEST_POLL)
                continue
            if troubled:
                self._emit(StoreBack(doing="claiming"))
            # A new lease may have come while we asked; what was claimed under the old one went with it.
            return jobs if request.runner == self._runner else []

    async def _ask(self, request: ClaimRequest) -> list[Claimed]:
        """A claim is asked to its end, also when we are stopped meanwhile: what it brings then goes back at once."""
        asking = asyncio.ensure_future(self._store.jobs.claim(request))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(self._give_back)
            raise

    def _give_back(self, asked: "asyncio.Future[list[Claimed]]") -> None:
        if not asked.cancelled() and asked.exception() is None:
            for work in self._holdings.add(asked.result()):
                self._hand_back(work)

    async def _wait_for_room(self) -> None:
        """Until it is worth asking: a slot is free with nothing waiting for it, or the prefetch runs low."""
        slots = self._slots
        while True:
            slots.changed.clear()
            low = slots.buffered <= self._pace.prefetch // 2
            starved = slots.running < slots.concurrency or self._pace.prefetch
            # A write that is under way will be over soon; then outcomes and the next claim go together.
            together = not (self._store.jobs.grouped and self._settler.writing and slots.buffered)
            if low and starved and together and self._settler.backlog < LARGEST_BACKLOG:
                return
            try:
                async with asyncio.timeout(LONGEST_POLL):
                    await slots.changed.wait()
            except TimeoutError:
                self._hand_back_stuck()
                slots.feed()

    async def _wait_for_slot(self) -> None:
        """Until a slot is free, or for one poll. Nothing came ahead of the slots, so there is nothing, or a limit is
        near: asking again before one is free would only cost.
        """
        slots = self._slots
        while not slots.free:
            slots.changed.clear()
            try:
                async with asyncio.timeout(LONGEST_POLL):
                    await slots.changed.wait()
            except TimeoutError:
                return

    def _hand_back_stuck(self) -> None:
        """The slots turned slow while jobs waited behind them: let others have these."""
        oldest = self._slots.oldest
        if oldest is None or since_boot() - oldest.claimed_on < PATIENCE // 2:
            return
        self._pace.slow()
        for work in self._slots.take_unstarted():
            self._hand_back(work)

    def _hand_back(self, work: Work) -> None:
        job = work.claimed
        self._settler.add(work, hand_back(job.id, job.queue, job.attempt))

    async def _wait_for_hint(self, mark: int) -> None:
        """Until there is work, or for one poll: here a hint says that there is, and the claim itself is the look."""
        if await self._store.signals.wait(mark, self._poll * random.uniform(0.75, 1.0)):
            await self._called()
        else:
            self._poll, self._vain = min(self._poll * 2, LONGEST_POLL), 0

    def _tell_silence(self) -> None:
        """Said once each time that hints stop coming. Where they are relayed, the supervisor says it."""
        signals = self._store.signals
        if not signals.relayed and signals.silence != self._silence:
            self._silence = signals.silence
            if self._silence is not None:
                self._emit(HintsSilent(why=self._silence))

    async def _called(self) -> None:
        """Something calls for a claim. If those before were in vain, it is kept back or always somebody else's."""
        self._vain += 1
        if self._vain > MOST_IN_VAIN:
            await asyncio.sleep(VAIN_PAUSE)

    async def _wait_for_work(self, queues: tuple[str, ...], types: tuple[str, ...]) -> None:
        """Until a hint or the next poll says that a claim may find something."""
        signals = self._store.signals
        while self._lease.is_set() and self._now() - self._reconciled < self._reconcile_every:
            mark = signals.mark()
            try:
                # A look without a lock: most hints are about other people's work.
                if await signals.work(queues, types):
                    await self._called()
                    await self._admit()
                    return
                self._vain = 0
            except StoreUnavailable:
                await asyncio.sleep(self._poll)
                return
            if not await signals.wait(mark, self._poll * random.uniform(0.75, 1.0)):
                self._poll = min(self._poll * 2, LONGEST_POLL)

    async def _admit(self) -> None:
        """Due jobs must not wait for a coordinator that is away."""
        self._admitted = self._now()
        try:
            await self._store.jobs.admit(MOST_ADMITTED)
        except StoreUnavailable as error:
            self._emit(StoreTrouble(doing="admitting", problem=str(error)))

    async def _reconcile(self) -> None:
        """Hand back what the store thinks we hold and we do not: a claim's reply was lost, or a job was taken.

        Runs between claims, so that no claim is under way whose jobs would look like strangers.
        """
        self._reconciled = self._now()
        try:
            held = await self._store.jobs.held(self._runner)
            strangers = [job for job in held if not self._holdings.holds(job.id, job.attempt)]
            if strangers:
                await self._store.jobs.settle([hand_back(job.id, job.queue, job.attempt) for job in strangers])
        except StoreUnavailable as error:
            self._emit(StoreTrouble(doing="comparing what is held", problem=str(error)))

    def _drop_taken(self) -> None:
        for work in self._slots.taken_away():
            self._holdings.remove(work)

    @staticmethod
    def _now() -> float:
        return since_boot() / 1_000_000
