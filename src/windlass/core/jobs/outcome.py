"""Outcome → settlement: how an attempt ended, and what becomes of its job. Pure and total."""

from random import Random
from typing import Any, assert_never

import msgspec

from windlass.core.control import Cancel, Dead, Retry, Snooze
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, JobError
from windlass.core.jobs.retry import DEFAULT_POLICY, RetryPolicy, policy_in_meta, wait_after
from windlass.core.moments import MAX_DURATION, SECOND, Duration, Micros, duration
from windlass.core.status import Status
from windlass.errors import InvalidOption

CRASH_LIMIT = 3
"""After this many crashes while it ran alone, a job is dead."""

MANY_RESCUES = 3
"""From this many rescues on, a job is a suspect, though no crash was seen."""
MAX_REASON_LENGTH = 1000
MAX_PAUSE = 16
"""Seconds until a job that needs another version of its task is tried again, at most."""


class Ending(msgspec.Struct, frozen=True, gc=False):
    """The effect of an attempt's end on its job, as facts for the store."""

    status: Status
    outcome: str
    """How the attempt ended, as kept in its history: completed, failed, snoozed, requeued, …"""
    reason: str | None = None
    delay: Micros = 0
    """Time from the store's clock to the next run; only for scheduled and failed."""
    result: str | None = None
    error: JobError | None = None
    failures: int = 0
    crashes: int = 0
    rescues: int = 0
    suspicions: int = 0
    requeues: int = 0
    snoozes: int = 0
    started_after: Micros | None = None
    """From the claim to the handler's start; None if it never started."""


class Settlement(Ending, frozen=True, kw_only=True, gc=False):
    """How one attempt ended, as its runner reports it; fenced by (id, attempt)."""

    id: JobId
    queue: str
    attempt: int
    keyed: bool = False
    """Whether the job holds an idempotency key, so that jobs without one never touch the keys."""
    concurrency_key: str | None = None
    """The key of the job, of which its end may free a key slot."""


class Done(msgspec.Struct, frozen=True, gc=False):
    """The handler returned; the result is JSON."""

    result: str | None


class Raised(msgspec.Struct, frozen=True):
    """The handler raised; `report` is its bounded text."""

    error: BaseException
    report: JobError


class Requeued(msgspec.Struct, frozen=True):
    """The attempt was not started, or was stopped through no fault of its own."""


class NotRun(msgspec.Struct, frozen=True):
    """No process, descriptor or memory was available to run the attempt."""


class OtherVersion(msgspec.Struct, frozen=True):
    """The payload has arguments that only another version of the task knows, and a live worker has that version."""

    arguments: tuple[str, ...]


class Crashed(msgspec.Struct, frozen=True):
    """The handler's process ended during the attempt; `report` says how it ended."""

    report: JobError


class Decided(msgspec.Struct, frozen=True):
    """The handler ran in a process of its own, which decided the settlement."""

    settlement: Settlement


Outcome = Done | Raised | Requeued | NotRun | OtherVersion | Crashed | Decided


class Policy(msgspec.Struct, frozen=True):
    """A task's rules for failures."""

    retry: RetryPolicy
    dead_on: tuple[type[BaseException], ...] = ()


def completed(job: Claimed, result: str | None, started_after: Micros | None = None) -> Settlement:
    """The settlement of an attempt whose handler returned: the most frequent one, so built directly."""
    return Settlement(
        id=job.id,
        queue=job.queue,
        attempt=job.attempt,
        status=Status.COMPLETED,
        outcome="completed",
        result=result,
        started_after=started_after,
        keyed=job.idempotency_key is not None,
        concurrency_key=job.concurrency_key,
    )


def decide(job: Claimed, outcome: Outcome, policy: Policy, random: Random) -> Settlement:
    """The settlement for an outcome. Never raises: an outcome without a settlement would be lost."""
    match outcome:
        case Done(result):
            return completed(job, result)
        case Requeued() | NotRun():
            return _settlement(job, Status.PENDING, "requeued", requeues=1)
        case OtherVersion(arguments):
            reason = f"left to a worker whose version of the task has {', '.join(arguments)}"
            pause = _pause(job.requeues, random)
            return _settlement(
                job, Status.SCHEDULED, "requeued", reason=_bounded_reason(reason), delay=pause, requeues=1
            )
        case Raised(error, report):
            return _raised(job, error, report, policy, random)
        case Crashed(report):
            return _crashed(job, report)
        case Decided(settlement):
            return settlement
        case _:
            assert_never(outcome)


def _raised(job: Claimed, error: BaseException, report: JobError, policy: Policy, random: Random) -> Settlement:
    match error:
        case Snooze():
            return _settlement(job, Status.SCHEDULED, "snoozed", delay=_checked_wait(error.delay), snoozes=1)
        case Cancel():
            return _settlement(job, Status.CANCELLED, "cancelled", reason=_bounded_reason(error.reason))
    if (reason := dead_because(job, error, policy.dead_on)) is not None:
        return _settlement(job, Status.DEAD, "dead", reason=reason, error=report, failures=1)
    failures = job.failures + 1
    if isinstance(error, Retry) and error.after is not None:
        delay = _checked_wait(error.after)
    else:
        delay = _wait(policy_in_meta(job.meta) or policy.retry, error, failures, random)
    return _settlement(job, Status.FAILED, "failed", delay=delay, error=report, failures=1)


def dead_because(job: Claimed, error: BaseException, dead_on: tuple[type[BaseException], ...]) -> str | None:
    """Why a job is dead after this error of its handler; None if it is not."""
    if isinstance(error, Snooze | Cancel):
        return None
    if isinstance(error, Dead):
        return _bounded_reason(error.reason)
    if isinstance(error, dead_on):
        return f"{type(error).__name__} is not retried"
    if job.failures + 1 + job.crashes >= job.max_attempts:
        return f"failed {job.failures + 1} of {job.max_attempts} attempts"
    return None


def _crashed(job: Claimed, report: JobError) -> Settlement:
    end = after_crash(failures=job.failures, crashes=job.crashes, max_attempts=job.max_attempts, suspects=1)
    return _settlement(job, end.status, end.outcome, reason=end.reason, error=report, crashes=end.crashes)


def is_suspect(job: Claimed) -> bool:
    """Whether the job may have ended a runner: then it runs alone, so that its next crash is certainly its own.

    A lost machine is not caused by a job, but several rescues of one job are more than chance.
    """
    return bool(job.crashes or job.suspicions or job.rescues >= MANY_RESCUES)


def after_crash(*, failures: int, crashes: int, max_attempts: int, suspects: int) -> Ending:
    """The ending of a job that was running when its runner crashed, one of `suspects` started jobs.

    Only a crash while alone is surely caused by the job, so only that uses up its budget.
    """
    if suspects > 1:
        return Ending(Status.PENDING, "crashed among several", suspicions=1)
    if crashes + 1 >= CRASH_LIMIT:
        return Ending(Status.DEAD, "crashed", f"crashed its runner {crashes + 1} times", crashes=1)
    if failures + crashes + 1 >= max_attempts:
        reason = f"crashed; {failures + crashes + 1} of {max_attempts} attempts used"
        return Ending(Status.DEAD, "crashed", reason, crashes=1)
    return Ending(Status.PENDING, "crashed", crashes=1)


LOST = Ending(Status.PENDING, "rescued", rescues=1)
"""The ending after its runner's lease expired: a failure of host, power or network, not of the job."""

UNSTARTED = Ending(Status.PENDING, "requeued", requeues=1)
"""The ending of a claimed job that was never started, or was stopped."""


def requeue(id_: JobId, queue: str, attempt: int) -> Settlement:
    """The settlement of an attempt that the store gives to a runner that does not hold it."""
    return Settlement(id=id_, queue=queue, attempt=attempt, status=Status.PENDING, outcome="requeued", requeues=1)


def _wait(policy: RetryPolicy, error: BaseException, failures: int, random: Random) -> Micros:
    """The policy's wait; if a user's policy fails, the default's."""
    try:
        return duration(min(wait_after(policy, error, failures, random), MAX_DURATION // SECOND), "retry")
    except Exception:
        return round(DEFAULT_POLICY.seconds(failures, random) * SECOND)


def _pause(requeues: int, random: Random) -> Micros:
    """1 s, 2 s, 4 s, …, ±10 %: an old worker may get the job again, so each wait is longer."""
    return round(min(1 << min(requeues, 10), MAX_PAUSE) * SECOND * random.uniform(0.9, 1.1))


def check_reason(reason: object, field: str = "reason") -> str:
    """An operator's reason, as bounded text that every store can keep."""
    if not isinstance(reason, str) or _bounded_reason(reason) != reason:
        raise InvalidOption(field, f"must be text of at most {MAX_REASON_LENGTH:,} characters, without NUL")
    return reason


def _bounded_reason(reason: object) -> str:
    """A handler's reason as bounded text that every store can keep."""
    try:
        text = str(reason)[:MAX_REASON_LENGTH]
    except Exception:
        text = type(reason).__name__
    return text.replace("\x00", "␀").encode(errors="replace").decode()


def _checked_wait(wait: Duration) -> Micros:
    """A handler's wait; an invalid one becomes zero, since the attempt must be settled anyway."""
    try:
        return duration(wait, "after")
    except Exception:
        return 0


def _settlement(job: Claimed, status: Status, outcome: str, **facts: Any) -> Settlement:
    return Settlement(
        id=job.id,
        queue=job.queue,
        attempt=job.attempt,
        status=status,
        outcome=outcome,
        keyed=job.idempotency_key is not None,
        concurrency_key=job.concurrency_key,
        **facts,
    )
