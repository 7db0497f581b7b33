"""What a worker says about itself in the registry."""

import asyncio
import contextlib
import os
import socket

from windlass.core.events import StoreFailed, StoreRecovered, WorkerStarted, WorkerStopped
from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.open import redact
from windlass.store.records import Note, WorkerInfo
from windlass.version import __version__
from windlass.worker.runner.held_jobs import MAX_PREFETCH_WAIT
from windlass.worker.shared_table import State
from windlass.worker.store_retry import describe_error, retry_until_done
from windlass.worker.supervisor.runner_process import Runner
from windlass.worker.supervisor.state import SupervisorState

UNREGISTER_SECONDS, SHORT_UNREGISTER = 5.0, 0.2


class Registration:
    """Measures the worker as it beats."""

    def __init__(self, state: SupervisorState) -> None:
        self._state = state
        self._ended: tuple[int, Micros] = (0, 0)
        self._per_minute = 0.0
        self.draining = False

    def info(self) -> WorkerInfo:
        """The worker as it is now."""
        state = self._state
        self._measure()
        return WorkerInfo(
            id=state.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            queues=state.queues,
            types=state.types,
            processes=state.config.processes,
            slots=state.config.processes * state.config.concurrency,
            per_minute=round(self._per_minute, 1),
            draining=self.draining,
        )

    async def register(self) -> None:
        """Enter the worker into the registry, and say so."""
        state, info = self._state, self.info()
        await retry_until_done("registering", lambda: state.store.workers.beat(info), state.emit, hopeful=False)
        state.emit(
            WorkerStarted(
                worker=state.id,
                processes=state.config.processes,
                concurrency=state.config.concurrency,
                queues=state.queues,
                store=redact(state.store.address),
            )
        )

    async def unregister(self, seconds: float) -> None:
        """Take the worker out of the registry if the store answers within this time, and close the store."""
        store, worker, signed_off = self._state.store, self._state.id, False
        with contextlib.suppress(StoreUnavailable, TimeoutError):
            await asyncio.wait_for(store.workers.unregister(worker), seconds)
            signed_off = True
        store.leases.release_liveness_lock(worker)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(store.close(), SHORT_UNREGISTER if not signed_off else None)
        self._state.emit(WorkerStopped(worker=worker, code=0, signed_off=signed_off))

    def _measure(self) -> None:
        ended, now = sum(child.table.completed for child in self._state.runners), since_boot()
        before, then = self._ended
        if then and now - then > SECOND // 10:
            self._per_minute = max(0, ended - before) * 60 * SECOND / (now - then)
        self._ended = (ended, now)


class Reports:
    """The registry and the notes of one worker, refreshed once per beat."""

    def __init__(self, state: SupervisorState, registration: Registration) -> None:
        self._state = state
        self._registration = registration

    async def run(self) -> None:
        """Until cancelled. An outage is emitted once, and its end."""
        beat, failing = self._state.config.beat / SECOND, False
        while True:
            await asyncio.sleep(min(1.0, beat / 4) if failing else beat)
            try:
                await self._report()
            except Exception as error:
                # Any error: a worker that cannot report still works.
                if not failing:
                    self._state.emit(StoreFailed(doing="reporting to the store", problem=describe_error(error)))
                failing = True
            else:
                if failing:
                    self._state.emit(StoreRecovered(doing="reporting to the store"))
                failing = False

    async def _report(self) -> None:
        store, serving = self._state.store, self._state.serving
        await store.workers.beat(self._registration.info())
        notes = {child: _started(child) for child in serving.values()}
        await store.jobs.note([note for each in notes.values() for note in each])
        for child, each in notes.items():
            child.noted |= {(note.id, note.attempt) for note in each}


def _started(child: Runner) -> list[Note]:
    """Jobs that have been running for a while, and were not noted yet: since when."""
    started = [entry for entry in child.table.held() if entry.state is State.STARTED]
    child.noted &= {(entry.id, entry.attempt) for entry in started}
    return [
        Note(
            id=entry.id,
            queue="",
            attempt=entry.attempt,
            started_after=max(0, entry.since - (entry.start_by - MAX_PREFETCH_WAIT)),
        )
        for entry in started
        if (entry.id, entry.attempt) not in child.noted
    ]
