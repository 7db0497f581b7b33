"""A job queue in plain Python, slow and obvious: what every store must agree with."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

from tests.model.key_queues import move_up
from tests.model.record import Job
from windlass.core.flow.queue import DEFAULT_RETENTION, TOMBSTONE_RETENTION
from windlass.core.ids import JobId
from windlass.core.jobs.admission import initial_state
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import NewJob
from windlass.core.jobs.outcome import LOST, UNSTARTED, Ending, Settlement, after_crash
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, LIVE, RETRYABLE, WAITING, Status
from windlass.store.records import ClaimRequest, Settled


class Reference:
    """Jobs by id, and the few other things a store remembers."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, Job] = {}
        self.graves: dict[JobId, tuple[Micros, int, str]] = {}
        self.paused: set[str] = set()
        self.closed: set[str] = set()
        self.limits: dict[str, int] = {}
        self.progress: dict[JobId, float] = {}
        self.windows: dict[tuple[str, str | None], tuple[JobId, Micros]] = {}
        """(queue, key) → who ended, and until when its key stays taken"""

    def holder(self, queue: str, key: str | None, now: Micros) -> JobId | None:
        """The live job under a key, or the one that ended within its window."""
        alive = (job for job in self.jobs.values() if job.status in LIVE and job.queue == queue)
        live = next((job.id for job in alive if key is not None and job.key == key), None)
        ended, until = self.windows.get((queue, key), (None, now))
        return live or (ended if until > now else None)

    def enqueue(self, batch: list[NewJob], now: Micros) -> list[tuple[JobId, bool]] | None:
        """The jobs that stand, and whether they stood before; None: refused, all of them."""
        kept, windows = deepcopy(self.jobs), dict(self.windows)
        stored_as: dict[JobId, JobId] = {}
        answers: list[tuple[JobId, bool] | None] = []
        for job in batch:
            answers.append(self._enqueue(job, stored_as, now))
            stored_as[job.id] = (answers[-1] or (job.id,))[0]
        if None in answers:
            self.jobs, self.windows = kept, windows
            return None
        for id_, existed in filter(None, answers):
            if not existed:
                self._feel(self.jobs[id_], now)
        self._move_up(now)
        return [answer for answer in answers if answer is not None]

    def _enqueue(self, new: NewJob, stored_as: dict[JobId, JobId], now: Micros) -> tuple[JobId, bool] | None:
        if new.id in self.jobs or new.id in self.graves:
            return new.id, True
        holder = self.holder(new.queue, new.idempotency_key, now)
        if holder is not None:
            existing = self.jobs.get(holder)
            if new.on_conflict is OnConflict.RAISE and holder != new.id:
                return None
            if new.on_conflict is not OnConflict.REPLACE or existing is None or existing.status not in WAITING:
                return holder, True
            self._rest(existing, Status.CANCELLED, now)
        # Another may stand for a parent that came with it and met a key.
        parents = tuple(stored_as.get(parent, parent) for parent in new.parents)
        if new.queue in self.closed or any(parent not in self.jobs for parent in parents):
            return None
        born = initial_state(new, now)
        self.windows.pop((new.queue, new.idempotency_key), None)
        self.jobs[new.id] = Job(
            new.id,
            new.queue,
            new.type,
            new.priority,
            new.idempotency_key,
            born.rank,
            born.run_at,
            new.max_attempts or 3,
            born.status,
            new.idempotency_window or 0,
            None if new.expires is None else now + new.expires,
            new.concurrency_key,
            new.key_limit or 1,
            bool(new.key_strict),
        )
        if parents:
            takes = frozenset(stored_as.get(parent, parent) for _, parent in new.result_params)
            child = replace(
                self.jobs[new.id], parents=parents, waits_for=set(parents), result_params=takes, lag=new.delay
            )
            child.when_ended = new.when_ended
            child.status, child.run_at, child.rank = Status.BLOCKED, now, now
            self.jobs[new.id] = child
        elif born.status is Status.PENDING:
            self.jobs[new.id].come(born.rank)
        return new.id, False

    def _feel(self, child: Job, now: Micros) -> None:
        """What has become of parents before they had this child."""
        for parent in [self.jobs[id_] for id_ in child.parents if self.jobs[id_].status in FINISHED]:
            self._follow(child, parent, now)

    def _follow(self, child: Job, parent: Job, now: Micros) -> None:
        """A parent has ended. If the child needs no more, it goes on when it was the last; else it is taken along."""
        if parent.status is Status.COMPLETED or child.when_ended:
            child.inherit(parent)
            if child.status is Status.BLOCKED and not child.waits_for:
                child.go_on(now)
        elif child.status is Status.BLOCKED:
            child.cancelled_by_parent = True
            self._rest(child, Status.CANCELLED, now)

    def _dependents(self, parent: JobId) -> list[Job]:
        """The jobs that wait for it, or would if it had not ended meanwhile."""
        return sorted((job for job in self.jobs.values() if parent in job.waits_for), key=lambda job: job.id)

    def _move_up(self, now: Micros) -> None:
        move_up(self.jobs.values(), now)

    def expire(self, now: Micros) -> int:
        """Whatever waits and should have started by now."""
        over = [job for job in self.jobs.values() if job.status in WAITING and job.expired(now)]
        for job in over:
            self._rest(job, Status.CANCELLED, now)
        for job in over:
            job.cancelled_by_parent = False  # by itself, though its parent expired with it
        self._move_up(now)
        return len(over)

    def admit(self, limit: int, now: Micros) -> int:
        """Due jobs, earliest first."""
        waiting = [job for job in self.jobs.values() if job.status in (Status.SCHEDULED, Status.FAILED)]
        due = sorted((job for job in waiting if job.run_at <= now), key=lambda job: (job.run_at, job.id))[:limit]
        for job in due:
            # Among those that wait for the key it has its due time as rank; among those that may run it comes last.
            job.come(now if job.line is None or job.slot else job.run_at)
        self._move_up(now)
        return len(due)

    def claim(self, request: ClaimRequest) -> list[tuple[JobId, int]]:
        """The same jobs again, or the best of each queue in turn."""
        mine = (request.runner, request.claim)
        order = [share.queue for share in request.quotas]
        again = [job for job in self.jobs.values() if (job.runner, job.claim) == mine]
        if again:
            again.sort(key=lambda job: (order.index(job.queue), -job.priority, job.rank, job.id))
            return [(job.id, job.attempt) for job in again]
        taken: list[Job] = []
        for share in request.quotas:
            pending = [job for job in self.jobs.values() if job.status is Status.PENDING and job.queue == share.queue]
            best = sorted(pending, key=lambda job: (-job.priority, job.rank, job.id))
            room = min(share.limit, request.limit - len(taken), self.room(share.queue))
            taken += [] if share.queue in self.paused else [job for job in best if job.type in request.types][:room]
        for job in taken:
            job.move(Status.RUNNING)
            job.attempt += 1
            job.runner, job.claim = mine
        return [(job.id, job.attempt) for job in taken]

    def room(self, queue: str) -> int:
        """How many more may run in a queue."""
        running = sum(1 for job in self.jobs.values() if job.queue == queue and job.status is Status.RUNNING)
        return max(0, self.limits[queue] - running) if queue in self.limits else len(self.jobs)

    def note(self, id_: JobId, attempt: int, done: float) -> None:
        """Kept for the running attempt only."""
        job = self.jobs.get(id_)
        if job is not None and job.status is Status.RUNNING and job.attempt == attempt:
            self.progress[id_] = done

    def settle(self, settlement: Settlement, now: Micros) -> Settled:
        """Fenced by (id, attempt)."""
        job, mine = self.jobs.get(settlement.id), (settlement.attempt, settlement.outcome)
        if job is not None and job.status is Status.RUNNING and job.attempt == settlement.attempt:
            job.failures += settlement.failures
            job.result = settlement.result
            self._end(job, settlement.status, settlement.outcome, settlement.delay, now)
            self._move_up(now)
            return Settled.SETTLED
        known = job is not None and job.ended.get(settlement.attempt) == settlement.outcome
        was_dropped = settlement.id in self.graves and self.graves[settlement.id][1:] == mine
        return Settled.ALREADY if known or was_dropped else Settled.STALE

    def _end(self, job: Job, status: Status, outcome: str, delay: Micros, now: Micros) -> None:
        if status not in FINISHED and (job.cancel_requested or job.expired(now)):
            status = Status.CANCELLED
        job.ended[job.attempt] = outcome
        job.runner = job.claim = None
        if status in (Status.SCHEDULED, Status.FAILED):
            job.run_at = job.rank = now + delay
            # In strict order no job may overtake it meanwhile.
            job.slot = job.slot and job.strict
        self._rest(job, status, now)

    def _rest(self, job: Job, status: Status, now: Micros) -> None:
        job.move(status)
        if status not in FINISHED:
            return
        job.finished_at = now
        job.slot = False
        if job.key is not None and job.window:
            self.windows[job.queue, job.key] = (job.id, now + job.window)
        for child in self._dependents(job.id):
            self._follow(child, job, now)

    def lose(self, runner: str, now: Micros) -> set[JobId]:
        """A runner fell silent."""
        return self._release(runner, lambda job: LOST, now)

    def end(self, runner: str, started: frozenset[tuple[JobId, int]], crashed: bool, now: Micros) -> set[JobId]:
        """A runner ended under its supervisor's eyes."""

        def end_of(job: Job) -> Ending:
            if not crashed or (job.id, job.attempt) not in started:
                return UNSTARTED
            return after_crash(
                failures=job.failures, crashes=job.crashes, max_attempts=job.max_attempts, suspects=len(started)
            )

        return self._release(runner, end_of, now)

    def _release(self, runner: str, end_of: Callable[[Job], Ending], now: Micros) -> set[JobId]:
        held = [job for job in self.jobs.values() if job.runner == runner]
        for job in held:
            end = end_of(job)
            job.crashes += end.crashes
            self._end(job, end.status, end.outcome, 0, now)
        self._move_up(now)
        return {job.id for job in held}

    def cancel(self, id_: JobId, now: Micros) -> tuple[Status, bool] | None:
        """Waiting jobs end, running ones are asked."""
        if (job := self.jobs.get(id_)) is None:
            return None
        if job.status in FINISHED:
            return job.status, False
        if job.status is Status.RUNNING:
            job.cancel_requested = True
        else:
            self._rest(job, Status.CANCELLED, now)
            self._move_up(now)
        return job.status, True

    def retry(self, id_: JobId, now: Micros) -> tuple[Status, bool] | None:
        """A new life with the old attempts."""
        if (job := self.jobs.get(id_)) is None:
            return None
        if job.status not in RETRYABLE or not self._may_wait(job) or not self._has_key(job, now):
            return job.status, False
        self._revive(job, now)
        self._move_up(now)
        return job.status, True

    def _revive(self, job: Job, now: Micros) -> None:
        """It is live again, and so is each job that was cancelled because of it alone."""
        self.windows.pop((job.queue, job.key), None)
        job.begin_anew()
        if job.waits_for:
            job.move(Status.BLOCKED)
        else:
            job.come(now)
            job.run_at = now
        for child in self._dependents(job.id):
            if child.cancelled_by_parent and self._may_wait(child) and self._has_key(child, now):
                self._revive(child, now)

    def _may_wait(self, job: Job) -> bool:
        """Whether it would not wait in vain: none of its parents ended badly, or is gone."""
        return all(parent in self.jobs and self.jobs[parent].status in LIVE for parent in job.waits_for)

    def _has_key(self, job: Job, now: Micros) -> bool:
        return self.holder(job.queue, job.key, now) in (None, job.id)

    def run_now(self, id_: JobId, now: Micros) -> tuple[Status, bool] | None:
        """What waits for its time only."""
        if (job := self.jobs.get(id_)) is None:
            return None
        may = job.status in (Status.SCHEDULED, Status.FAILED, Status.PENDING)
        if job.status in (Status.SCHEDULED, Status.FAILED):
            job.run_at = now
            job.come(now)
            self._move_up(now)
        return job.status, may

    def change(self, id_: JobId, wanted: JobChange, now: Micros) -> tuple[Status, bool] | None:
        """What waits, wholly or not at all."""
        if (job := self.jobs.get(id_)) is None:
            return None
        queue = wanted.queue or job.queue
        if job.status not in WAITING or self.holder(queue, job.key, now) not in (None, id_):
            return job.status, False
        if wanted.delay is not None:
            self._retime(job, wanted.delay, now)
        postponed = wanted.delay is not None and job.status in (Status.SCHEDULED, Status.FAILED)
        job.slot = job.slot and queue == job.queue and not postponed
        if job.status is Status.PENDING:
            job.come(job.rank)
        self.windows.pop((queue, job.key), None)
        job.queue = queue
        job.priority = job.priority if wanted.priority is None else wanted.priority
        self._move_up(now)
        return job.status, True

    def _retime(self, job: Job, delay: Micros, now: Micros) -> None:
        job.run_at = now + delay
        if job.waits_for:
            return
        if job.status in (Status.SCHEDULED, Status.FAILED):
            job.rank = job.run_at
            if not delay:
                job.come(now)
        elif delay:
            job.rank = job.run_at
            job.move(Status.SCHEDULED)

    def delete(self, id_: JobId, now: Micros) -> tuple[Status, bool] | None:
        """Finished jobs only."""
        if (job := self.jobs.get(id_)) is None:
            return None
        if job.status in FINISHED:
            self._entomb(job, now)
        return job.status, job.status in FINISHED

    def over(self, now: Micros) -> set[JobId]:
        """Everything whose retention is over."""
        finished = [job for job in self.jobs.values() if job.status in FINISHED]
        return {job.id for job in finished if job.finished_at + DEFAULT_RETENTION[job.status] <= now}

    def prune(self, ids: set[JobId], now: Micros) -> None:
        """These are dropped, and old graves with them."""
        for id_ in ids:
            self._entomb(self.jobs[id_], now)
        self.graves = {id_: grave for id_, grave in self.graves.items() if grave[0] > now}

    def _entomb(self, job: Job, now: Micros) -> None:
        del self.jobs[job.id]
        self.progress.pop(job.id, None)
        until = job.finished_at + TOMBSTONE_RETENTION
        if until > now:
            self.graves[job.id] = (until, job.attempt, job.ended.get(job.attempt, ""))
