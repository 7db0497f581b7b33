"""Delays of failed writes, per queue and per job, so that one does not hold up the others."""

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence

import msgspec

from windlass.core.events import Emit, StoreFailed, StoreRecovered
from windlass.core.ids import JobId
from windlass.core.jobs.outcome import Settlement
from windlass.errors import StoreUnavailable
from windlass.worker.handlers.work import Work
from windlass.worker.store_retry import MAX_PAUSE, MAX_UNEXPECTED, MIN_PAUSE, describe_error

MIN_HELD, MAX_HELD = 0.5, 5.0
"""Seconds between two tries for a row that another transaction holds: each try delays the others."""

Outcome = tuple[Work, Settlement]


class _Delay(msgspec.Struct):
    pause: float
    until: float
    queue: str
    unexpected: int = 0

    def begin(self, longest: float) -> None:
        self.until = time.monotonic() + self.pause * random.uniform(0.5, 1.0)
        self.pause = min(2 * self.pause, longest)


class WriteDelays:
    """Delayed queues and jobs. The first failure is emitted, and the end of the last."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._queues: dict[str, _Delay] = {}
        self._jobs: dict[JobId, _Delay] = {}
        """Jobs whose rows another transaction holds."""
        self.any = False
        """Whether anything is delayed."""
        self._more = asyncio.Event()

    def delay(self, queue: str, error: Exception) -> None:
        """Delay after a failed write. Raises the error if it is not the store's and does not pass."""
        self._emit_failed(error)
        self.any = True
        delay = self._queues.setdefault(queue, _Delay(MIN_PAUSE, 0.0, queue))
        delay.unexpected = 0 if isinstance(error, StoreUnavailable) else delay.unexpected + 1
        if delay.unexpected > MAX_UNEXPECTED:
            raise error
        delay.begin(MAX_PAUSE)

    def hold(self, settlement: Settlement, error: Exception) -> None:
        """Delay a job whose row another transaction holds."""
        self._emit_failed(error)
        self.any = True
        self._jobs.setdefault(settlement.id, _Delay(MIN_HELD, 0.0, settlement.queue)).begin(MAX_HELD)

    def _emit_failed(self, error: Exception) -> None:
        if not self.any:
            self._emit(StoreFailed(doing="settling", problem=describe_error(error)))

    def end(self, settlements: Sequence[Settlement]) -> None:
        """End the delays of written jobs."""
        if self.any:
            for each in settlements:
                self._queues.pop(each.queue, None)
                self._jobs.pop(each.id, None)
            self.any = bool(self._queues or self._jobs)
            if not self.any:
                self._emit(StoreRecovered(doing="settling"))

    def pass_over(self, waiting: list[Outcome]) -> list[Outcome]:
        """The outcomes that may be tried now, together."""
        if not self.any:
            return waiting
        self._more.clear()
        late = self._late()
        return [each for each in waiting if each[1].queue not in late and each[1].id not in self._jobs]

    def next_held(self, waiting: list[Outcome]) -> list[Outcome]:
        """A held job that may be tried again, alone; most of the time None."""
        now, late = time.monotonic(), self._late()
        due = {id_ for id_, delay in self._jobs.items() if now >= delay.until and delay.queue not in late}
        return [each for each in waiting if each[1].id in due][:1] if due else []

    def _late(self) -> set[str]:
        now = time.monotonic()
        return {queue for queue, delay in self._queues.items() if now < delay.until}

    def wake(self) -> None:
        """Wake the writer for another outcome, perhaps of another queue."""
        self._more.set()

    async def wait(self) -> None:
        """Wait until another outcome arrives, or the first delayed one may be tried again."""
        queues = {queue: delay.until for queue, delay in self._queues.items()}
        jobs = [max(delay.until, queues.get(delay.queue, 0.0)) for delay in self._jobs.values()]
        first = min([*queues.values(), *jobs], default=0.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, first - time.monotonic())):
                await self._more.wait()
