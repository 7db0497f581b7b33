"""Progress and log lines: gathered from handlers, written a few times a second, the newest progress winning."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from windlass.core.events import Emit
from windlass.core.jobs.outcome import Settlement
from windlass.errors import StoreUnavailable
from windlass.store.contract import JobStore
from windlass.store.records import Note
from windlass.worker.handlers.work import Work
from windlass.worker.store_retry import FailureReports, describe_error

EVERY_SECONDS = 0.25
FINAL_SECONDS = 5.0
"""Max wait of an outcome for the last notes of its attempt: half of the time a stopping runner has for both."""


class Notes:
    """Writes the notes of handlers. A note that cannot be written now is written with the next ones."""

    def __init__(self, store: JobStore, emit: Emit) -> None:
        self._store = store
        self._failures = FailureReports(emit)
        self.unsent: set[Work] = set()
        self._under_way: dict[Work, asyncio.Task[None]] = {}

    def is_written(self, work: Work) -> bool:
        """Whether the store has answered all notes of this handler."""
        return work not in self.unsent and work not in self._under_way

    async def run(self) -> None:
        """Write notes until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            if self.unsent:
                await self.send()

    async def send(self, works: set[Work] | None = None) -> None:
        """Write the unsent notes of these handlers, or of all, after their notes in flight."""
        under_way = {self._under_way[work] for work in works or () if work in self._under_way}
        if under_way:
            await asyncio.wait(under_way)
        chosen = self.unsent & works if works is not None else set(self.unsent)
        self.unsent -= chosen
        by_queue: dict[str, list[Work]] = defaultdict(list)
        for work in chosen:
            by_queue[work.claimed.queue].append(work)
        await asyncio.gather(*map(self._start, by_queue.values()))

    def _start(self, chosen: list[Work]) -> asyncio.Task[None]:
        sending = asyncio.create_task(self._send(chosen))
        self._under_way.update(dict.fromkeys(chosen, sending))
        return sending

    async def _send(self, chosen: list[Work]) -> None:
        """Write the notes of one queue: if that fails, those of other queues are not repeated."""
        notes = [take_note(work) for work in chosen]
        doing = f"writing progress in {chosen[0].claimed.queue}"
        try:
            await self._store.note(notes)
            self._failures.succeeded(doing)
        except StoreUnavailable as error:
            self._failures.failed(doing, str(error))
            for work, note in zip(chosen, notes, strict=True):
                work.lines[:0] = note.lines
            self.unsent.update(chosen)
        except Exception as error:
            # Not the store's fault, so trying again would not help: a note is lost, the job goes on.
            self._failures.failed(doing, describe_error(error), retried=False)
        finally:
            for work in chosen:
                if self._under_way.get(work) is asyncio.current_task():
                    del self._under_way[work]


class _Ended(NamedTuple):
    work: Work
    settlement: Settlement
    until: float
    """When it is settled even without its notes."""


class FinalNotes:
    """Settles attempts after their last notes: notes are fenced by the running attempt, so they go first.

    Notes that fail or hang are awaited for FINAL_SECONDS: a store that is away could not take the outcome either,
    and one that takes outcomes but no notes must not delay them.
    """

    def __init__(self, notes: Notes, settle: Callable[[Work, Settlement], None]) -> None:
        self._notes = notes
        self._settle = settle
        self._waiting: dict[str, list[_Ended]] = defaultdict(list)
        """Attempts by queue, since queues may be on different servers."""
        self._sending: dict[str, asyncio.Task[None]] = {}

    def settle(self, work: Work, settlement: Settlement) -> None:
        """Settle at once if every note of the handler is written."""
        if self._notes.is_written(work):
            self._settle(work, settlement)
            return
        queue = work.claimed.queue
        self._waiting[queue].append(_Ended(work, settlement, time.monotonic() + FINAL_SECONDS))
        if queue not in self._sending:
            self._sending[queue] = asyncio.create_task(self._send(queue))

    async def sent(self) -> None:
        """Wait until no settlement waits for notes."""
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    async def _send(self, queue: str) -> None:
        try:
            while self._waiting[queue]:
                works = {each.work for each in self._waiting[queue]}
                left = min(each.until for each in self._waiting[queue]) - time.monotonic()
                await asyncio.wait([asyncio.create_task(self._notes.send(works))], timeout=max(0.0, left))
                failed = not all(map(self._notes.is_written, works))
                self._settle_written(queue)
                if failed:
                    await asyncio.sleep(EVERY_SECONDS)
        finally:
            # Here, not in a done callback: an attempt that ends in between starts the next task.
            del self._sending[queue]
            for each in self._waiting.pop(queue, []):
                self._settle(each.work, each.settlement)

    def _settle_written(self, queue: str) -> None:
        now, waiting = time.monotonic(), self._waiting.pop(queue)
        for each in waiting:
            if self._notes.is_written(each.work) or now >= each.until:
                self._settle(each.work, each.settlement)
            else:
                self._waiting[queue].append(each)


def take_note(work: Work) -> Note:
    """The unwritten progress and lines of one handler, removed from it so that the next note does not repeat them."""
    job, lines = work.claimed, tuple(work.lines)
    # In place, and only the notes read here: the handler's thread may be adding to it.
    del work.lines[: len(lines)]
    return Note(
        id=job.id,
        queue=job.queue,
        attempt=job.attempt,
        started_after=work.started_after,
        progress=work.latest_progress,
        lines=lines,
    )
