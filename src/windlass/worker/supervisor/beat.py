"""The writes of a worker in each beat: renewals of its leases and, in other calls, its registration."""

import asyncio
import contextlib
import os
import socket

from windlass.core.events import LeaseExpired, RunnerStarted, WorkerStarted, WorkerStopped
from windlass.core.ids import runner_id
from windlass.core.moments import SECOND, Micros
from windlass.core.webhooks.delivery import WEBHOOK_QUEUE
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.open import redact
from windlass.store.records import LeaseRequest, Note, WorkerInfo
from windlass.version import __version__
from windlass.worker.channel import LeaseGranted
from windlass.worker.processes import children, memory
from windlass.worker.runner.held_jobs import MAX_PREFETCH_WAIT
from windlass.worker.shared_table import State
from windlass.worker.store_retry import repeat, retry_until_done
from windlass.worker.supervisor.runner_process import Runner
from windlass.worker.supervisor.state import SupervisorState

UNREGISTER_SECONDS, SHORT_UNREGISTER = 5.0, 0.2
START_SECONDS = 2.0
"""How often starts of handlers are noted; a shorter attempt has its start in the settlement."""


class LeaseKeeper:
    """Opens leases and renews them."""

    def __init__(self, state: SupervisorState) -> None:
        self._state = state
        self.beat_at: Micros = 0
        """The last successful renewal."""
        self._opened = 0
        """How many leases were opened; ids of runners contain this number."""

    async def open(self, child: Runner) -> None:
        """Open a lease under a new id: ids are never used twice, so a lapsed runner cannot return under its old
        id.
        """
        state, self._opened = self._state, self._opened + 1
        runner = runner_id(state.id, self._opened)
        if child.runner is not None:
            state.emit(LeaseExpired(runner=child.runner))
        request = LeaseRequest(runner=runner, worker=state.id, length=state.config.lease)
        child.table.valid_until = 0
        sent = since_boot()
        await retry_until_done("opening a lease", lambda: state.store.leases.open(request), state.emit)
        child.table.lease += 1
        child.table.valid_until = sent + state.config.lease
        child.runner = runner
        child.channel.send(LeaseGranted(runner, child.table.lease))
        state.emit(RunnerStarted(runner=runner, pid=child.pid))

    async def replace(self, child: Runner, lost: str) -> None:
        """Replace a lost lease. Runner and supervisor may both notice the loss: the second call is a no-op."""
        async with child.leasing:
            if child.runner == lost and child in self._state.runners:
                await self.open(child)

    async def run(self) -> None:
        """Renew until cancelled, despite errors: without renewals every job of every runner would be interrupted."""
        beat = self._state.config.beat / SECOND
        await repeat("renewing leases", self._beat, self._state.emit, every=beat, after_failure=min(1.0, beat / 4))

    def current(self) -> bool:
        """Whether the store answered one of the last two renewals."""
        return since_boot() - self.beat_at < 2 * self._state.config.beat + SECOND

    def held(self) -> bool:
        """Whether a runner has a lease that is valid."""
        now = since_boot()
        return any(child.table.valid_until > now for child in self._state.serving.values())

    async def _beat(self) -> None:
        """Renew leases and nothing else: other writes may wait for a lock."""
        state, serving = self._state, self._state.serving
        # Validity counts from before the renewal was sent: however long the reply takes, `valid_until`
        # is never later than the end of the lease in the store.
        sent = since_boot()
        renewal = await state.store.leases.renew(state.id, tuple(serving), state.config.lease)
        self.beat_at = since_boot()
        for runner in renewal.kept:
            # Unless the runner reported a loss meanwhile and has a new lease.
            if serving[runner].runner == runner:
                serving[runner].table.valid_until = sent + state.config.lease
        for runner in renewal.lost:
            await self.replace(serving[runner], runner)


class Registration:
    """The worker's entry in the registry."""

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
            parameters=state.parameters,
            memory=self._memory(),
        )

    def _memory(self) -> int | None:
        """Resident bytes of the supervisor, its runners and their handler processes."""
        runners = {os.getpid(), *(child.pid for child in self._state.runners)}
        handlers = {pid for runner in runners for pid in children(runner)}
        return sum(map(memory, runners | handlers)) or None

    async def register(self) -> None:
        """Write the worker into the registry, and emit that."""
        state, info = self._state, self.info()
        await retry_until_done("registering", lambda: state.store.workers.beat(info), state.emit, hopeful=False)
        state.emit(
            WorkerStarted(
                worker=state.id,
                processes=state.config.processes,
                concurrency=state.config.concurrency,
                queues=state.queues,
                app_queues=state.app_queues,
                store=redact(state.store.address),
            )
        )

    async def unregister(self, seconds: float) -> None:
        """Remove the worker from the registry if the store answers within this time, and close the store."""
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
    """The registry of one worker, refreshed once per beat, and the starts of its handlers, noted more often."""

    def __init__(self, state: SupervisorState, registration: Registration) -> None:
        self._state = state
        self._registration = registration
        self._beat_due: Micros = 0

    async def run(self) -> None:
        """Report until cancelled, despite errors: a worker that cannot report still works."""
        state = self._state
        beat = state.config.beat / SECOND
        every = min(START_SECONDS, beat)
        await repeat(
            "reporting to the store", self._report, state.emit, every=every, after_failure=min(1.0, beat / 4)
        )

    async def _report(self) -> None:
        store, serving = self._state.store, self._state.serving
        if since_boot() >= self._beat_due:
            await self._look_for_webhooks()
            await store.workers.beat(self._registration.info())
            # A little early: a pause that ends just before a beat must not delay it by another one.
            self._beat_due = since_boot() + self._state.config.beat * 3 // 4
        notes = {child: _started(child) for child in serving.values()}
        if any(notes.values()):
            await store.jobs.note([note for each in notes.values() for note in each])
        for child, each in notes.items():
            child.noted |= {(note.id, note.attempt) for note in each}

    async def _look_for_webhooks(self) -> None:
        """Once there is a webhook, the runners serve its queue, and the registry shows it."""
        state = self._state
        if not state.has_webhooks and not state.config.queues:
            queues = await state.store.queues.list()
            state.has_webhooks = any(queue.name == WEBHOOK_QUEUE for queue in queues)
            if state.has_webhooks:
                state.store.signals.subscribe(state.queues)


def _started(child: Runner) -> list[Note]:
    """Notes of the starts of running jobs that were not noted yet."""
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
