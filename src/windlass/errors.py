"""The errors of Windlass.

    WindlassError
    ├── InvalidInput            the input is wrong; nothing was stored
    │   ├── InvalidPayload
    │   ├── PayloadTooLarge
    │   ├── InvalidName
    │   ├── InvalidTime
    │   └── InvalidOption
    ├── ConfigError             settings, addresses, declarations: lists every problem
    ├── UnknownTask
    ├── UseAsync                a blocking call on a running event loop
    ├── NotInJob                `current_job()` outside a handler
    ├── EnqueueFailed           certain: nothing was stored
    │   └── QueueClosed
    ├── EnqueueUnknown          not certain: enqueue the same id again
    ├── KeyConflict
    ├── JobNotFound
    ├── QueueNotFound
    ├── ScheduleNotFound
    ├── TokenNotFound           raised by `app.tokens`
    ├── FlowNotFound            raised by `app.flows`
    ├── WebhookNotFound, ActionNotFound     raised by `app.webhooks`, `app.actions`
    ├── JobDead, JobCancelled   raised by `result()`
    ├── ResultUnavailable       raised by `result()`: the job completed, its result was not kept
    ├── BlobUnavailable         a large payload or result cannot be kept or fetched
    ├── ChangedSince            what was to be changed has another version than the caller asked for
    ├── NotAllowedNow           the job's status does not allow this move
    ├── LeaseLost               this runner's lease is gone; it may claim nothing more
    └── StoreUnavailable
        └── StoreUnusable       waiting does not help
            └── SchemaMismatch

Each class has a `code` that never changes: it is what REST answers and what programs compare.
"""

from collections.abc import Sequence
from typing import Any, ClassVar


class WindlassError(Exception):
    """The base of all errors of Windlass."""

    code: ClassVar[str] = "error"
    hint: str = ""  # the end of the message, if it suggests other names


class InvalidInput(WindlassError):
    """The input breaks a rule; nothing was stored. `limit` is the maximum that it exceeds, if that is the rule."""

    code = "invalid_input"

    def __init__(self, field: str, problem: str, *, limit: int | None = None) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem, self.limit = field, problem, limit


class InvalidPayload(InvalidInput):
    """The arguments do not fit the task, or are not JSON."""

    code = "invalid_payload"


class PayloadTooLarge(InvalidInput):
    """The encoded arguments are larger than the limit: 64 KiB, or more with a blob store."""

    code = "payload_too_large"


class InvalidName(InvalidInput):
    """A queue, type, tag or key is not a legal name."""

    code = "invalid_name"


class InvalidTime(InvalidInput):
    """A moment or duration is naive, negative or out of range; or a cron expression (`text`) is wrong at `part`."""

    code = "invalid_time"

    def __init__(self, field: str, problem: str, *, text: str = "", part: tuple[int, int] | None = None) -> None:
        super().__init__(field, problem)
        self.text, self.part = text, part


class InvalidOption(InvalidInput):
    """An option is unknown, of the wrong type or out of range."""

    code = "invalid_option"


class ConfigError(WindlassError):
    """Settings that cannot work; carries every problem, not just the first."""

    code = "config"

    def __init__(self, problems: Sequence[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class UnknownTask(WindlassError):
    """No task of this type is registered in this app."""

    code = "unknown_task"

    def __init__(self, type_: str, hint: str = "") -> None:
        super().__init__(f"no task of type {type_!r}{hint}")
        self.type, self.hint = type_, hint


class UseAsync(WindlassError):
    """A blocking call was made on a running event loop, which it would freeze."""

    code = "use_async"

    def __init__(self, verb: str, instead: str | None = None) -> None:
        call = verb if " " in verb else f"{verb}()"
        super().__init__(f"{call} blocks and an event loop is running here: use `{instead or f'await a{verb}()'}`")
        self.verb = verb


class NotInJob(WindlassError):
    """`current_job()` was called by code that no handler runs: a web request, a hook, a bare thread."""

    code = "not_in_job"

    def __init__(self) -> None:
        super().__init__("there is no current job: this code runs in no handler, or in a bare thread of one")


class EnqueueFailed(WindlassError):
    """The enqueue did not happen: nothing was stored."""

    code = "enqueue_failed"


class QueueClosed(EnqueueFailed):
    """The queue takes no new jobs: nothing of the batch was stored."""

    code = "queue_closed"

    def __init__(self, queue: str) -> None:
        super().__init__(f"queue {queue!r} is closed to new jobs; nothing was stored")
        self.queue = queue


class EnqueueUnknown(WindlassError):
    """The jobs may or may not be stored, or only a part: enqueue the same ids again; that never duplicates a job."""

    code = "enqueue_unknown"

    def __init__(self, ids: Sequence[str], problem: str = "") -> None:
        shown = ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        shown += " was stored" + (f" ({problem})" if problem else "")
        super().__init__(f"it is not known whether {shown}: enqueue the same id again")
        self.ids, self.id = list(ids), ids[0]


class KeyConflict(WindlassError):
    """Another job has this idempotency key."""

    code = "key_conflict"

    def __init__(self, key: str, job_id: str) -> None:
        super().__init__(f"idempotency key {key!r} is held by job {job_id}")
        self.key, self.job_id = key, job_id


class JobNotFound(WindlassError):
    """No such job, or nothing of it is kept; `outcome` is how its last attempt ended ("completed", …), if known."""

    code = "job_not_found"

    def __init__(self, job_id: str, outcome: str | None = None) -> None:
        text = f"no job {job_id or repr(job_id)}"
        if outcome is not None:
            how = "completed" if outcome == "completed" else f"ended (its last attempt: {outcome or 'none'})"
            text = f"job {job_id} has {how}, and its result is gone: its queue keeps no such job, or it was deleted"
        super().__init__(text)
        self.job_id, self.outcome = job_id, outcome


class QueueNotFound(WindlassError):
    """No queue has this name: none was used, declared, added, changed or paused."""

    code = "queue_not_found"

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(f"no queue {name!r}{hint}")
        self.name, self.hint = name, hint


class ScheduleNotFound(WindlassError):
    """No schedule has this name."""

    code = "schedule_not_found"

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(f"no schedule {name!r}{hint}")
        self.name, self.hint = name, hint


class JobDead(WindlassError):
    """The awaited job is dead; `error` is the JobError of its last attempt, if it has one."""

    code = "job_dead"

    def __init__(self, job_id: str, reason: str, error: Any = None) -> None:
        cause = reason if error is None or error.message in reason else f"{error.type}: {error.message} ({reason})"
        super().__init__(f"job {job_id} is dead: {cause}")
        self.job_id, self.reason, self.error = job_id, reason, error


class JobCancelled(WindlassError):
    """The awaited job was cancelled."""

    code = "job_cancelled"

    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"job {job_id} was cancelled: {reason}")
        self.job_id, self.reason = job_id, reason


class ResultUnavailable(WindlassError):
    """The awaited job completed, but its result could not be kept: it is no JSON, or too large."""

    code = "result_unavailable"

    def __init__(self, job_id: str, problem: str) -> None:
        super().__init__(f"job {job_id} completed, but its result was not kept: {problem}")
        self.job_id, self.problem = job_id, problem


class BlobUnavailable(WindlassError):
    """A payload or result in the blob store cannot be written, is missing, or is not what was put there."""

    code = "blob_unavailable"

    def __init__(self, job_id: str, problem: str) -> None:
        super().__init__(f"job {job_id}: {problem}")
        self.job_id, self.problem = job_id, problem


class ChangedSince(WindlassError):
    """A job, queue or schedule has another version than the caller asked for; nothing was changed."""

    code = "changed_since"

    def __init__(self, what: str, version: str) -> None:
        super().__init__(f"{what} has been changed: its version is {version} now")
        self.version = version


class NotAllowedNow(WindlassError):
    """The job's status does not allow this move."""

    code = "not_allowed_now"

    def __init__(
        self, verb: str, job_id: str, status: str, *, parent: str | None = None, first: str | None = None
    ) -> None:
        advice = f"{verb} {'that one' if first == parent else first} first"
        advice = advice if first is not None else "it is not kept any more, so enqueue a new job"
        skipped = f": it was skipped, because {first} is completed" if first else ""
        why = f", and its parent {parent} has not completed: {advice}" if parent else skipped
        super().__init__(f"cannot {verb} job {job_id}: it is {status}{why}")
        self.verb, self.job_id, self.status, self.parent, self.first = verb, job_id, status, parent, first


class LeaseLost(WindlassError):
    """This runner's lease is gone: others may hold its jobs, and it may claim nothing more."""

    code = "lease_lost"

    def __init__(self, runner: str) -> None:
        super().__init__(f"the lease of runner {runner} is gone")
        self.runner = runner


class StoreUnavailable(WindlassError):
    """The store cannot be used now. `maybe_done`: the call may have taken effect; `lasting`: waiting hardly helps."""

    code = "store_unavailable"

    def __init__(self, problem: str, *, maybe_done: bool = False, lasting: bool = False) -> None:
        super().__init__(problem)
        self.maybe_done, self.lasting = maybe_done, lasting


class StoreUnusable(StoreUnavailable):
    """The store does not serve this process; waiting does not help."""

    code = "store_unusable"


class SchemaMismatch(StoreUnusable):
    """The store's schema is not one that this version can use."""

    code = "schema_mismatch"
