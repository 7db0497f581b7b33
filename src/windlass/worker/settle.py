"""The settler: outcomes become durable, in batches, and none is ever lost on the way."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from windlass.core.events import AttemptEnded, Emit, StaleWrite
from windlass.core.moments import SECOND
from windlass.core.outcome import Settlement
from windlass.core.status import Status
from windlass.store.clock import since_boot
from windlass.store.contract import JobStore
from windlass.store.records import Settled
from windlass.worker.meter import Measure, unmeasured
from windlass.worker.patience import persist
from windlass.worker.work import Work

MOST_IN_BATCH = 1000
LARGEST_BACKLOG = 5_000
"""With so many outcomes unwritten no more jobs are claimed: the store must catch up first."""
ENOUGH_ALONE = 300
"""So many are worth a write of their own, where a claim would not share it."""
GATHER_SECONDS = 0.01
"""While jobs flow, the next claim is near: outcomes go along with it, or alone after this time."""


class Settler:
    """Writes what has gathered, at once; while a write is under way, the next batch gathers.

    When jobs flow fast, a claim and the outcomes since the last one are asked for in the same moment: a store that
    groups its writes makes both durable by one flush.
    """

    def __init__(
        self,
        store: JobStore,
        emit: Emit,
        done: Callable[[Work], None],
        flowing: Callable[[], bool],
        *,
        verbose: bool,
        measure: Measure = unmeasured,
    ) -> None:
        self._store = store
        self._flowing = flowing
        self._emit = emit
        self._done = done
        self._verbose = verbose
        self._measure = measure
        self.runner = ""
        self._enough = MOST_IN_BATCH if store.grouped else ENOUGH_ALONE
        self._waiting: list[tuple[Work, Settlement]] = []
        self._added = asyncio.Event()
        self._gathered = asyncio.Event()
        self.writing = False
        """Whether a batch is on its way to the store."""
        self.quiet = asyncio.Event()
        self.quiet.set()

    @property
    def backlog(self) -> int:
        """Outcomes that are not durable yet."""
        return len(self._waiting)

    def add(self, work: Work, settlement: Settlement) -> None:
        """An attempt has ended."""
        self._waiting.append((work, settlement))
        if len(self._waiting) == 1:
            self.quiet.clear()
            self._added.set()
        elif len(self._waiting) == self._enough:
            self._gathered.set()

    def go(self, *, claiming: bool = False) -> None:
        """Now is the moment: a claim is about to be asked, or none is near."""
        if not claiming or self._store.grouped:
            self._gathered.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._added.wait()
            if self._flowing() and len(self._waiting) < self._enough:
                await self._gather()
            batch = self._waiting[:MOST_IN_BATCH]
            self.writing = True
            await self._write(batch)
            self.writing = False
            del self._waiting[: len(batch)]
            if not self._waiting:
                self._added.clear()
                self.quiet.set()

    async def _gather(self) -> None:
        self._gathered.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GATHER_SECONDS):
                await self._gathered.wait()

    async def _write(self, batch: Sequence[tuple[Work, Settlement]]) -> None:
        settlements = [settlement for _, settlement in batch]
        # A write whose reply was lost is repeated too: its settlements then answer `already`.
        answers = await persist("settling", lambda: self._store.settle(settlements), self._emit)
        self._measure(batch, answers)
        for (work, settlement), answer in zip(batch, answers, strict=True):
            self._done(work)
            self._tell(work, settlement, answer)

    def _tell(self, work: Work, settlement: Settlement, answer: Settled) -> None:
        job = work.claimed
        if answer is Settled.STALE:
            self._emit(StaleWrite(job=job.id, attempt=job.attempt, worker=self.runner, found=settlement.outcome))
        elif self._verbose or settlement.crashes or settlement.status not in (Status.COMPLETED, Status.PENDING):
            self._emit(_ended(work, settlement, self.runner))


def _ended(work: Work, settlement: Settlement, runner: str) -> AttemptEnded:
    seconds = None if work.started_on is None else (since_boot() - work.started_on) / SECOND
    return attempt_ended(settlement, work.claimed.type, runner, seconds)


def attempt_ended(settlement: Settlement, type_: str, runner: str, seconds: float | None) -> AttemptEnded:
    """A settlement as news."""
    error = settlement.error
    reason = "" if error is not None and error.message == settlement.reason else settlement.reason or ""
    said = [f"{error.type}: {error.message}" if error else "", reason]
    return AttemptEnded(
        job=settlement.id,
        type=type_,
        queue=settlement.queue,
        attempt=settlement.attempt,
        status=settlement.status,
        outcome=settlement.outcome,
        worker=runner,
        seconds=seconds,
        error="; ".join(filter(None, said)),
        wait=settlement.delay / SECOND if settlement.delay else None,
    )
