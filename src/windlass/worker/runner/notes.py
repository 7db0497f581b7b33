"""Progress and log lines: gathered from handlers, written a few times a second, the newest progress winning."""

import asyncio
from collections import defaultdict
from collections.abc import Callable

from windlass.core.events import Emit
from windlass.core.jobs.outcome import Settlement
from windlass.errors import StoreUnavailable
from windlass.store.contract import JobStore
from windlass.store.records import Note
from windlass.worker.handlers.work import Work
from windlass.worker.store_retry import FailureReports, describe_error

EVERY_SECONDS = 0.25


class Notes:
    """Sends what handlers said. A note that cannot be written now is written with the next ones."""

    def __init__(self, store: JobStore, emit: Emit) -> None:
        self._store = store
        self._failures = FailureReports(emit)
        self.unsent: set[Work] = set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            if self.unsent:
                await self.send()

    async def send(self, works: set[Work] | None = None) -> None:
        """Write down what these (or all) have said since the last time."""
        chosen = self.unsent & works if works is not None else set(self.unsent)
        self.unsent -= chosen
        by_queue: dict[str, list[Work]] = defaultdict(list)
        for work in chosen:
            by_queue[work.claimed.queue].append(work)
        await asyncio.gather(*map(self._send, by_queue.values()))

    async def _send(self, chosen: list[Work]) -> None:
        """Those of one queue: what was written of another is not said again because this one is away."""
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
            self._failures.failed(doing, describe_error(error))


class FinalNotes:
    """Settles attempts after their last notes: notes are fenced by the running attempt, so they go first."""

    def __init__(self, notes: Notes, settle: Callable[[Work, Settlement], None]) -> None:
        self._notes = notes
        self._settle = settle
        self._waiting: list[tuple[Work, Settlement]] = []
        self._sending: asyncio.Task[None] | None = None

    def settle(self, work: Work, settlement: Settlement) -> None:
        """Settle at once if the handler has no unsent notes."""
        if work not in self._notes.unsent:
            self._settle(work, settlement)
            return
        self._waiting.append((work, settlement))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def sent(self) -> None:
        """Wait until no settlement waits for notes."""
        if self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                await self._notes.send({work for work, _ in waiting})
            finally:
                for work, settlement in waiting:
                    self._settle(work, settlement)
        # Here, not in a done callback: an attempt that ends in between starts the next task.
        self._sending = None


def take_note(work: Work) -> Note:
    """The unwritten progress and lines of one handler, removed from it so that the next note does not repeat them."""
    job, lines = work.claimed, tuple(work.lines)
    # In place, and only what we have seen: the handler's thread may be adding to it.
    del work.lines[: len(lines)]
    return Note(
        id=job.id,
        queue=job.queue,
        attempt=job.attempt,
        started_after=work.started_after,
        progress=work.latest_progress,
        lines=lines,
    )
