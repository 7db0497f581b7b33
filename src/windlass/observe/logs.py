"""Events as log lines: a sentence for people, and the facts as fields for programs.

By default failures, dead letters, rescues and what concerns the worker itself; claims and completions when asked for.
"""

import logging
import os
import sys
from typing import TextIO, get_args

from windlass.core import events
from windlass.core.events import Event
from windlass.core.log_events import FailuresRepeated, FlowEnded, GroupStaysOpen, JobsClaimed, OperatorActed
from windlass.core.status import Status
from windlass.core.text import cut
from windlass.errors import ConfigError
from windlass.observe.log_lines import ForTerminal, JsonLines, Lines, LogfmtLines, LogFormat
from windlass.observe.log_sampling import FailureSampling

logger = logging.getLogger("windlass")

MAX_LINE_LENGTH = 500
LOG_FORMAT_VARIABLE = "WINDLASS_LOG_FORMAT"
_LOUD = {Status.DEAD: logging.ERROR}


def sentence(event: Event) -> tuple[int, str]:
    """The level and the text of an event."""
    match event:
        case events.AttemptEnded():
            return _attempt(event)
        case FlowEnded() | GroupStaysOpen():
            return _flow(event)
        case events.JobRescued():
            return logging.WARNING, _rescued(event)
        case events.JobsRescued():
            now = " or ".join(event.statuses)
            return logging.WARNING, f"{_count(event.jobs, 'more job')} of dead runners rescued: {now} now"
        case events.StaleWrite():
            return logging.WARNING, (
                f"job {event.job} attempt {event.attempt} ended too late ({event.found}): a later attempt has begun"
            )
        case events.StoreFailed():
            again = ", trying again" if event.retried else ""
            return logging.WARNING, f"{event.doing} failed{again}: {event.problem}"
        case events.DutyFailed():
            return logging.WARNING, f"duty {event.duty} failed, trying again: {event.problem}"
        case events.HookFailed():
            about = "" if event.job is None else f" for job {event.job}"
            return logging.ERROR, f"the {event.hook} failed{about}: {event.problem}"
        case events.InternalError():
            about = "" if event.job is None else f" of job {event.job}"
            return logging.ERROR, f"internal error while {event.doing}{about}: {event.problem}"
        case events.ClockJumped():
            return logging.WARNING, (
                f"the wall clock jumped {'forwards' if event.seconds > 0 else 'back'} by {abs(event.seconds):.0f} s: "
                "leases go on, delayed jobs and retention follow the new time"
            )
        case events.LeaseExpired():
            return logging.WARNING, f"the lease of runner {event.runner} lapsed; it goes on under a new id"
        case events.JobOverdue():
            return logging.WARNING, _overdue(event)
        case events.RunnerBlocked():
            jobs = ", ".join(event.jobs)
            return logging.WARNING, (
                f"runner {event.runner} (pid {event.pid}) blocked for {event.seconds:.0f} s by {jobs}: {event.where}"
            )
        case events.RunnerHung():
            jobs = ", ".join(event.jobs)
            return logging.ERROR, (
                f"runner {event.runner} (pid {event.pid}) is ended: {jobs} held it beyond the timeout: {event.where}"
            )
        case events.RunnerEnded() if not event.expected:
            return logging.ERROR, f"runner {event.runner} (pid {event.pid}) ended: {event.status}"
        case _:
            return _info_sentence(event)


def _flow(event: FlowEnded | GroupStaysOpen) -> tuple[int, str]:
    if isinstance(event, GroupStaysOpen):
        return logging.WARNING, (
            f"this worker waits for the open group {event.flow}: its members have ended, but it was not sealed; "
            f"run its producer again, or windlass flows cancel {event.flow}"
        )
    level = logging.DEBUG if event.status is Status.COMPLETED else logging.WARNING
    return level, f"the {event.kind} {event.flow} is {event.status}: windlass flows show {event.flow}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _rescued(event: events.JobRescued) -> str:
    what = f"job {event.job} ({event.type}) attempt {event.attempt}"
    if event.status is Status.CANCELLED:
        return f"{what} ended with its runner, and is not run again: the job is cancelled"
    return f"{what} {event.outcome}; it is {event.status} now"


def _attempt(event: events.AttemptEnded) -> tuple[int, str]:
    took = "" if event.seconds is None else f" after {event.seconds:.3f} s"
    what = f"job {event.job} ({event.type}) attempt {event.attempt}"
    match event.status:
        case Status.DEAD:
            return logging.ERROR, f"{what} is dead{took}: {event.error}"
        case Status.FAILED:
            return logging.WARNING, f"{what} failed{took}, next try in {event.wait or 0:.1f} s: {event.error}"
        case Status.PENDING if event.outcome == "crashed":
            return logging.WARNING, f"{what} crashed{took} and runs again: {event.error}"
        case Status.SCHEDULED if event.outcome == "requeued":
            return logging.INFO, f"{what} requeued for {event.wait or 0:.1f} s: {event.error}"
        case Status.COMPLETED | Status.PENDING | Status.SCHEDULED:
            return logging.DEBUG, f"{what} {event.outcome}{took}"
        case _:
            return logging.INFO, f"{what} {event.outcome}{took}" + (f": {event.error}" if event.error else "")


def _mistyped(event: events.WorkerStarted) -> str:
    """Served queues that the app does not name, as a note."""
    strange = [name for name in event.queues if name not in event.app_queues] if event.app_queues else []
    return f"; the app names no queue {', '.join(strange)}, but {', '.join(event.app_queues)}" if strange else ""


def _info_sentence(event: Event) -> tuple[int, str]:
    match event:
        case events.WorkerStarted():
            return logging.INFO, (
                f"worker {event.worker} serves {', '.join(event.queues)} with {event.processes} × "
                f"{event.concurrency} slots on {event.store}{_mistyped(event)}"
            )
        case events.WorkerStopped():
            if event.signed_off:
                return logging.INFO, f"worker {event.worker} signed off"
            return logging.WARNING, f"worker {event.worker} ended, and could not sign off: the store does not answer"
        case events.RunnerStarted():
            return logging.INFO, f"runner {event.runner} (pid {event.pid}) is ready"
        case events.RunnerEnded():
            return logging.INFO, f"runner {event.runner} (pid {event.pid}) ended: {event.status}"
        case events.DrainStarted() if event.empty:
            others = f"; jobs wait in queues that it does not serve: {', '.join(event.unserved)}"
            return logging.INFO, f"nothing is left to do: stopping{others if event.unserved else ''}"
        case events.DrainStarted():
            return logging.INFO, f"stopping: running jobs get {event.seconds:g} s, a second signal ends them at once"
        case events.HintsUnavailable():
            return logging.INFO, f"no hints wake this worker ({event.why}): idle runners poll every second"
        case events.StoreRecovered():
            return logging.INFO, f"{event.doing} works again"
        case events.LeadershipGained():
            return logging.DEBUG, f"worker {event.worker} is the coordinator (term {event.term})"
        case events.LeadershipLost():
            return logging.DEBUG, f"worker {event.worker} is no longer the coordinator"
        case events.JobsParked():
            return logging.WARNING, (
                f"{_count(event.jobs, 'job')} set aside: no live worker knows {', '.join(event.types)}"
            )
        case events.ResultNotKept():
            what = f"job {event.job} ({event.type}) attempt {event.attempt}"
            return logging.WARNING, f"{what} completed, but its result was not kept: {event.problem}"
        case OperatorActed():
            return logging.INFO, f"{event.actor} ({event.source}): {event.action} {event.target}"
        case events.JobsExpired():
            return logging.INFO, f"{_count(event.jobs, 'job')} expired before starting"
        case events.JobsAged():
            return logging.DEBUG, f"{_count(event.jobs, 'job')} moved up in priority after a long wait"
        case events.JobsPruned():
            return logging.INFO, f"{_count(event.jobs, 'finished job')} dropped: the retention is over"
        case events.BlobsSwept():
            return logging.INFO, f"{_count(event.blobs, 'blob')} removed that no job refers to"
        case _:
            return _count_sentence(event)


def _count_sentence(event: Event) -> tuple[int, str]:
    match event:
        case events.TicksFired():
            late = f", up to {event.late:.1f} s late" if event.late >= 1 else ""
            what = f"{_count(event.jobs, 'job')} enqueued for {_count(event.schedules, 'schedule')}{late}"
            return logging.DEBUG, what
        case events.TicksMissed():
            return (
                logging.WARNING,
                f"{_ticks(event.ticks)} of {', '.join(event.schedules)} missed: no coordinator was running",
            )
        case events.TicksSkipped():
            why = "the run before has not ended, or the queue is closed"
            return logging.INFO, f"{_ticks(event.ticks)} of {', '.join(event.schedules)} skipped: {why}"
        case JobsClaimed():
            return (
                logging.DEBUG,
                f"runner {event.worker} claimed {_count(event.jobs, 'job')} of {', '.join(event.queues)}",
            )
        case FailuresRepeated():
            what = f"{event.type} is {event.status}" if event.status is Status.DEAD else f"{event.type} failed"
            times = f"{event.times:,} more times in {event.duration:.0f} s"
            return _LOUD.get(event.status, logging.WARNING), f"{what} {times}: {event.error}"
        case events.ScheduleBroken():
            return (
                logging.ERROR,
                f"schedule {event.schedule} is broken, and tried again in a minute: {event.problem}",
            )
        case events.SchedulesUndeclared():
            what = f"schedules that {event.app} no longer declares: {', '.join(event.schedules)}"
            return logging.WARNING, f"{what}; to remove them: windlass schedules prune --app {event.app}"
        case _:
            return logging.INFO, type(event).__name__


def _overdue(event: events.JobOverdue) -> str:
    runner = "its slot is not free before it ends"
    if event.seconds is not None:
        runner = f"its runner takes no more work, and is replaced in at most {event.seconds:g} s"
    return f"job {event.job} ({event.type}) attempt {event.attempt} does not end although {event.why}: {runner}"


def _ticks(count: int) -> str:
    return _count(count, "tick")


def log_events(*, verbose: bool = False, format: str = "text", stream: TextIO | None = None) -> FailureSampling:
    """A listener that writes to standard error, or to `stream`; failures that repeat are counted instead of written
    one by one."""
    if not logger.handlers:
        handler = logging.StreamHandler(stream or sys.stderr)
        handler.setFormatter(formatter(format))
        logger.addHandler(handler)
        logger.propagate = False
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    return FailureSampling(log_event)


def formatter(format: str) -> logging.Formatter:
    """How lines are written; raises ConfigError for a format that does not exist."""
    match check_format(format):
        case "json":
            return JsonLines()
        case "logfmt":
            return LogfmtLines()
        case _:
            # There is no standard error in a process that was started with a closed one: then nothing is written.
            coloured = sys.stderr is not None and sys.stderr.isatty() and "NO_COLOR" not in os.environ
            return ForTerminal() if coloured else Lines()


def check_format(format: str, name: str = "--log-format") -> str:
    """The format, or a ConfigError that names the option."""
    if format not in get_args(LogFormat):
        raise ConfigError(f"{name}: {format!r} is not one of {', '.join(get_args(LogFormat))}")
    return format


def log_event(event: Event) -> None:
    """A listener that leaves the set-up of the logger `windlass` to the program."""
    level, text = sentence(event)
    if logger.isEnabledFor(level):
        logger.log(level, "%s", cut(text, MAX_LINE_LENGTH), extra={"event": event})
