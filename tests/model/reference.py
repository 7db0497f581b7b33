"""A job queue in plain Python, slow and obvious: what every store must agree with."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

from windlass.core.admission import birth
from windlass.core.change import JobChange
from windlass.core.idempotency import OnConflict
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.moments import Micros
from windlass.core.outcome import LOST, UNSTARTED, Fate, Settlement, after_crash
from windlass.core.queue import DEFAULT_RETENTION, TOMBSTONE
from windlass.core.status import FINISHED, LIVE, RETRYABLE, WAITING, Status, may_move
from windlass.store.records import ClaimRequest, Settled


@dataclass
class Job:
    """What the reference knows of a job."""

    id: JobId
    queue: str
    type: str
    priority: int
    key: str | None
    rank: Micros
    run_at: Micros
    max_attempts: int
    status: Status
    window: Micros
    expires_at: Micros | None
    attempt: int = 0
    failures: int = 0
    crashes: int = 0
    runner: str | None = None
    claim: int | None = None
    cancel_requested: bool = False
    finished_at: Micros = 0
    ended: dict[int, str] = field(default_factory=dict)
    """attempt → how it ended"""

    def expired(self, now: Micros) -> bool:
        """Whether it should have started by now."""
        return self.expires_at is not None and self.expires_at <= now

    def move(self, status: Status) -> None:
        """Change status, by the table."""
        assert status is self.status or may_move(self.status, status), f"{self.status} → {status}"
        self.status = status


class Reference:
    """Jobs by id, and the few other things a store remembers."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, Job] = {}
        self.graves: dict[JobId, tuple[Micros, int, str]] = {}
        self.paused: set[str] = set()
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
        answers = [self._enqueue(job, now) for job in batch]
        if None in answers:
            self.jobs, self.windows = kept, windows
            return None
        return [answer for answer in answers if answer is not None]

    def _enqueue(self, new: NewJob, now: Micros) -> tuple[JobId, bool] | None:
        if new.id in self.jobs or new.id in self.graves:
            return new.id, True
        holder = self.holder(new.queue, new.idempotency_key, now)
        if holder is not None:
            standing = self.jobs.get(holder)
            if new.on_conflict is OnConflict.RAISE and holder != new.id:
                return None
            if new.on_conflict is not OnConflict.REPLACE or standing is None or standing.status not in WAITING:
                return holder, True
            self._rest(standing, Status.CANCELLED, now)
        born = birth(new, now)
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
        )
        return new.id, False

    def expire(self, now: Micros) -> int:
        """Whatever waits and should have started by now."""
        over = [job for job in self.jobs.values() if job.status in WAITING and job.expired(now)]
        for job in over:
            self._rest(job, Status.CANCELLED, now)
        return len(over)

    def admit(self, limit: int, now: Micros) -> int:
        """Due jobs, earliest first."""
        waiting = [job for job in self.jobs.values() if job.status in (Status.SCHEDULED, Status.FAILED)]
        due = sorted((job for job in waiting if job.run_at <= now), key=lambda job: (job.run_at, job.id))[:limit]
        for job in due:
            job.move(Status.PENDING)
            job.rank = now
        return len(due)

    def claim(self, request: ClaimRequest) -> list[tuple[JobId, int]]:
        """The same jobs again, or the best of each queue in turn."""
        mine = (request.runner, request.claim)
        order = [share.queue for share in request.shares]
        again = [job for job in self.jobs.values() if (job.runner, job.claim) == mine]
        if again:
            again.sort(key=lambda job: (order.index(job.queue), -job.priority, job.rank, job.id))
            return [(job.id, job.attempt) for job in again]
        taken: list[Job] = []
        for share in request.shares:
            pending = [job for job in self.jobs.values() if job.status is Status.PENDING and job.queue == share.queue]
            best = sorted(pending, key=lambda job: (-job.priority, job.rank, job.id))
            room = min(share.most, request.limit - len(taken))
            taken += [] if share.queue in self.paused else [job for job in best if job.type in request.types][:room]
        for job in taken:
            job.move(Status.RUNNING)
            job.attempt += 1
            job.runner, job.claim = mine
        return [(job.id, job.attempt) for job in taken]

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
            self._end(job, settlement.status, settlement.outcome, settlement.delay, now)
            return Settled.SETTLED
        known = job is not None and job.ended.get(settlement.attempt) == settlement.outcome
        buried = settlement.id in self.graves and self.graves[settlement.id][1:] == mine
        return Settled.ALREADY if known or buried else Settled.STALE

    def _end(self, job: Job, status: Status, outcome: str, delay: Micros, now: Micros) -> None:
        if status not in FINISHED and (job.cancel_requested or job.expired(now)):
            status = Status.CANCELLED
        job.ended[job.attempt] = outcome
        job.runner = job.claim = None
        if status in (Status.SCHEDULED, Status.FAILED):
            job.run_at = job.rank = now + delay
        self._rest(job, status, now)

    def _rest(self, job: Job, status: Status, now: Micros) -> None:
        job.move(status)
        if status not in FINISHED:
            return
        job.finished_at = now
        if job.key is not None and job.window:
            self.windows[job.queue, job.key] = (job.id, now + job.window)

    def lose(self, runner: str, now: Micros) -> set[JobId]:
        """A runner fell silent."""
        return self._release(runner, lambda job: LOST, now)

    def end(self, runner: str, started: frozenset[tuple[JobId, int]], crashed: bool, now: Micros) -> set[JobId]:
        """A runner ended under its supervisor's eyes."""

        def fate(job: Job) -> Fate:
            if not crashed or (job.id, job.attempt) not in started:
                return UNSTARTED
            return after_crash(
                failures=job.failures, crashes=job.crashes, max_attempts=job.max_attempts, suspects=len(started)
            )

        return self._release(runner, fate, now)

    def _release(self, runner: str, fate: Callable[[Job], Fate], now: Micros) -> set[JobId]:
        held = [job for job in self.jobs.values() if job.runner == runner]
        for job in held:
            end = fate(job)
            job.crashes += end.crashes
            self._end(job, end.status, end.outcome, 0, now)
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
        return job.status, True

    def retry(self, id_: JobId, now: Micros) -> tuple[Status, bool] | None:
        """A new life with the old attempts."""
        if (job := self.jobs.get(id_)) is None:
            return None
        if job.status not in RETRYABLE or self.holder(job.queue, job.key, now) not in (None, id_):
            return job.status, False
        job.move(Status.PENDING)
        self.windows.pop((job.queue, job.key), None)
        self.jobs[id_] = replace(
            job, failures=0, crashes=0, run_at=now, rank=now, cancel_requested=False, expires_at=None
        )
        return Status.PENDING, True

    def run_now(self, id_: JobId, now: Micros) -> tuple[Status, bool] | None:
        """What waits for its time only."""
        if (job := self.jobs.get(id_)) is None:
            return None
        if job.status in (Status.SCHEDULED, Status.FAILED):
            job.move(Status.PENDING)
            job.run_at = job.rank = now
        return job.status, job.status is Status.PENDING

    def change(self, id_: JobId, wanted: JobChange, now: Micros) -> tuple[Status, bool] | None:
        """What waits, wholly or not at all."""
        if (job := self.jobs.get(id_)) is None:
            return None
        queue = wanted.queue or job.queue
        if job.status not in WAITING or self.holder(queue, job.key, now) not in (None, id_):
            return job.status, False
        if wanted.delay is not None:
            job.run_at = now + wanted.delay
            if job.status in (Status.SCHEDULED, Status.FAILED):
                job.rank = job.run_at
            if job.status is Status.PENDING and wanted.delay:
                job.rank = job.run_at
                job.move(Status.SCHEDULED)
            elif not wanted.delay:
                job.move(Status.PENDING)
        self.windows.pop((queue, job.key), None)
        job.queue = queue
        job.priority = job.priority if wanted.priority is None else wanted.priority
        return job.status, True

    def delete(self, id_: JobId, now: Micros) -> tuple[Status, bool] | None:
        """Finished jobs only."""
        if (job := self.jobs.get(id_)) is None:
            return None
        if job.status in FINISHED:
            self._bury(job, now)
        return job.status, job.status in FINISHED

    def over(self, now: Micros) -> set[JobId]:
        """Everything whose retention is over."""
        finished = [job for job in self.jobs.values() if job.status in FINISHED]
        return {job.id for job in finished if job.finished_at + DEFAULT_RETENTION[job.status] <= now}

    def prune(self, ids: set[JobId], now: Micros) -> None:
        """These are dropped, and old graves with them."""
        for id_ in ids:
            self._bury(self.jobs[id_], now)
        self.graves = {id_: grave for id_, grave in self.graves.items() if grave[0] > now}

    def _bury(self, job: Job, now: Micros) -> None:
        del self.jobs[job.id]
        self.progress.pop(job.id, None)
        until = job.finished_at + TOMBSTONE
        if until > now:
            self.graves[job.id] = (until, job.attempt, job.ended.get(job.attempt, ""))


class Leases:
    """Until when each runner's lease holds, and when anybody was last heard of."""

    def __init__(self) -> None:
        self.ends: dict[str, Micros] = {}
        self._pulse: Micros | None = None
        self._graced: set[str] = set()

    def open(self, runner: str, length: Micros, now: Micros) -> None:
        """A new lease."""
        self.feel_pulse(length, now)
        self.ends.setdefault(runner, now + length)

    def renew(self, runners: list[str], length: Micros, now: Micros) -> list[str]:
        """Those that were kept."""
        self.feel_pulse(length, now)
        kept = [runner for runner in runners if self.holds(runner, now)]
        self.ends.update(dict.fromkeys(kept, now + length))
        self._graced -= set(kept)
        return kept

    def lapsed(self, length: Micros, now: Micros) -> list[str]:
        """Whom a rescuer takes: nobody, if it is the first to come after a general silence."""
        if all(self.holds(runner, now) for runner in self.ends):
            return []
        self.feel_pulse(length, now)
        return [runner for runner in self.ends if not self.holds(runner, now)]

    def holds(self, runner: str, now: Micros) -> bool:
        """Whether the lease is there and not over."""
        return self.ends.get(runner, now) > now

    def feel_pulse(self, length: Micros, now: Micros) -> None:
        """After a general silence, grace for everybody: once, until renewed."""
        if self._pulse is not None and now - self._pulse > length // 2:
            for runner in self.ends.keys() - self._graced:
                self.ends[runner] = max(self.ends[runner], now + length)
            self._graced |= self.ends.keys()
        self._pulse = now
