"""Progress and log lines: gathered from handlers, written a few times a second, the newest progress winning."""

import asyncio

from windlass.core.events import Emit, StoreTrouble
from windlass.errors import StoreUnavailable
from windlass.store.contract import JobStore
from windlass.store.records import Note
from windlass.worker.work import Work

EVERY_SECONDS = 0.25


class Notes:
    """Sends what handlers said. A note that cannot be written now is written with the next ones."""

    def __init__(self, store: JobStore, emit: Emit) -> None:
        self._store = store
        self._emit = emit
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
        notes = [take_note(work) for work in chosen]
        try:
            await self._store.note(notes)
        except StoreUnavailable as error:
            self._emit(StoreTrouble(doing="writing progress", problem=str(error)))
            for work, note in zip(chosen, notes, strict=True):
                work.lines[:0] = note.lines
            self.unsent |= chosen
        except Exception as error:
            # Not the store's fault, so trying again would not help: a note is lost, the job goes on.
            self._emit(StoreTrouble(doing="writing progress", problem=f"{type(error).__name__}: {error}"))


def take_note(work: Work) -> Note:
    """What one handler has said and nobody has written yet. Taken at once: the next note must not say it again."""
    job, lines = work.claimed, tuple(work.lines)
    # In place, and only what we have seen: the handler's thread may be adding to it.
    del work.lines[: len(lines)]
    return Note(
        id=job.id,
        queue=job.queue,
        attempt=job.attempt,
        started_after=work.started_after,
        progress=work.said,
        lines=lines,
    )
