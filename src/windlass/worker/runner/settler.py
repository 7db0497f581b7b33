"""The settler: outcomes become durable, in batches, and none is lost on the way.

A write that fails is repeated after growing pauses, per queue or job, and delays no others.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from windlass.core.codec import is_unstorable, problem_of_result
from windlass.core.events import AttemptEnded, Emit, ResultNotKept, StaleWrite
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnusable
from windlass.store.clock import since_boot
from windlass.store.contract import JobStore
from windlass.store.records import RowsHeld, Settled
from windlass.worker.handlers.work import Work
from windlass.worker.runner.meters import Measure
from windlass.worker.runner.write_delays import Outcome, WriteDelays

MAX_IN_BATCH = 1000
MAX_BACKLOG_SIZE = 5_000
"""Unwritten outcomes above which nothing is claimed: the store must catch up first."""
MAX_TRIES = 24
"""Failed writes of a divided batch: enough to find two outcomes of a thousand, few if a locked table fails all."""
ENOUGH_ALONE = 300
"""Number of outcomes that are written without a claim to share the flush."""
GATHER_SECONDS = 0.01
"""While jobs flow, outcomes are written together with the next claim, or alone after this time."""


class Settler:
    """Writes the gathered outcomes at once; while a write is in flight, the next batch gathers.

    When jobs flow fast, a claim and the outcomes since the last one are sent at the same moment: a store that
    groups its writes makes both durable by one flush.
    """

    def __init__(
        self,
        store: JobStore,
        emit: Emit,
        done: Callable[[Sequence[Work]], None],
        flowing: Callable[[], bool],
        *,
        verbose: bool,
        measure: Measure = lambda batch, answers: None,
    ) -> None:
        self._store = store
        self._flowing = flowing
        self._emit = emit
        self._done = done
        self._verbose = verbose
        self._measure = measure
        self.runner = ""
        self._enough = MAX_IN_BATCH if store.grouped else ENOUGH_ALONE
        self._waiting: list[Outcome] = []
        self._delays = WriteDelays(emit)
        self._added = asyncio.Event()
        self._gathered = asyncio.Event()
        self._tries = 0
        """Failed writes that are left for dividing a batch."""
        self.writing = False
        """Whether a batch is in flight."""
        self.quiet = asyncio.Event()
        self.quiet.set()

    @property
    def backlog(self) -> int:
        """Outcomes that are not durable yet."""
        return len(self._waiting)

    def add(self, work: Work, settlement: Settlement) -> None:
        """Add the outcome of an attempt."""
        self._waiting.append((work, settlement))
        if len(self._waiting) == 1:
            self.quiet.clear()
            self._added.set()
        elif len(self._waiting) == self._enough:
            self._gathered.set()
        if self._delays.any:
            self._delays.wake()

    def go(self, *, claiming: bool = False) -> None:
        """Write now: a claim is about to be sent, or none is near."""
        if not claiming or self._store.grouped:
            self._gathered.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._added.wait()
            if self._flowing() and len(self._waiting) < self._enough:
                await self._gather()
            batch = self._delays.pass_over(self._waiting)[:MAX_IN_BATCH]
            held = self._delays.next_held(self._waiting)
            if not batch and not held:
                await self._delays.wait()
                continue
            self.writing, self._tries = True, MAX_TRIES
            for part in filter(None, (batch, held)):
                await self._write(part)
            self.writing = False
            if not self._waiting:
                self._added.clear()
                self.quiet.set()

    async def _gather(self) -> None:
        self._gathered.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GATHER_SECONDS):
                await self._gathered.wait()

    async def _write(self, batch: Sequence[Outcome]) -> None:
        """Write once; if that fails, each queue separately, since queues may be on different servers.

        Outcomes that are not written stay. One whose reply was lost is repeated: its settlements answer `already`.
        """
        settlements = [settlement for _, settlement in batch]
        queues = {settlement.queue for settlement in settlements}
        try:
            answers = await self._store.settle(settlements)
        except StoreUnusable:
            raise
        except RowsHeld as error:
            await self._write_apart(batch, error)
            return
        except Exception as error:
            if len(queues) == 1:
                self._delays.delay(settlements[0].queue, error)
                return
            for queue in sorted(queues):
                await self._write([each for each in batch if each[1].queue == queue])
            return
        self._delays.end(settlements)
        self._drop(batch)
        self._measure(batch, answers)
        self._done([work for work, _ in batch])
        for (work, settlement), answer in zip(batch, answers, strict=True):
            plain = answer is not Settled.STALE and settlement.status is Status.COMPLETED
            if self._verbose or not plain or is_unstorable(settlement.result):
                self._emit_settled(work, settlement, answer)

    async def _write_apart(self, batch: Sequence[Outcome], error: RowsHeld) -> None:
        """Another transaction holds some of the rows: find these, and write the others."""
        if len(batch) == 1:
            self._delays.hold(batch[0][1], error)
            return
        self._tries -= 1
        half = len(batch) // 2
        for part in (batch[:half], batch[half:]):
            if self._tries > 0:
                await self._write(part)
            else:
                for queue in {settlement.queue for _, settlement in part}:
                    self._delays.delay(queue, error)

    def _drop(self, batch: Sequence[Outcome]) -> None:
        """Remove written outcomes."""
        if self._waiting[0] is batch[0] and self._waiting[len(batch) - 1] is batch[-1]:
            del self._waiting[: len(batch)]  # nearly always
            return
        written = {id(each) for each in batch}
        self._waiting = [each for each in self._waiting if id(each) not in written]

    def _emit_settled(self, work: Work, settlement: Settlement, answer: Settled) -> None:
        job = work.claimed
        if answer is Settled.STALE:
            self._emit(StaleWrite(job=job.id, attempt=job.attempt, worker=self.runner, found=settlement.outcome))
            return
        if (problem := problem_of_result(settlement.result)) is not None:
            self._emit(
                ResultNotKept(job=job.id, type=job.type, attempt=job.attempt, worker=self.runner, problem=problem)
            )
        if self._verbose or settlement.crashes or settlement.status not in (Status.COMPLETED, Status.PENDING):
            self._emit(_ended(work, settlement, self.runner))


def _ended(work: Work, settlement: Settlement, runner: str) -> AttemptEnded:
    seconds = None if work.started_on is None else (since_boot() - work.started_on) / SECOND
    return attempt_ended(settlement, work.claimed.type, runner, seconds, work.trace)


def attempt_ended(
    settlement: Settlement, type_: str, runner: str, seconds: float | None, trace: tuple[str, str] | None = None
) -> AttemptEnded:
    """The event of a settlement."""
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
        trace=None if trace is None else trace[0],
        span=None if trace is None else trace[1],
    )
