"""Windlass: a job queue for Python. An accepted job is never lost."""

from windlass.client.app import App
from windlass.client.handle import Handle
from windlass.client.tasks.chain import Chain, ChainHandle, chain
from windlass.client.tasks.context import Context, current_context, current_job
from windlass.client.tasks.hooks import State
from windlass.client.tasks.previous import PREVIOUS
from windlass.client.tasks.task import ContextTask, Task
from windlass.client.tasks.taskset import TaskSet
from windlass.client.verbs.links import Links
from windlass.core.control import Cancel, Dead, Retry, Snooze
from windlass.core.flow.queue import Queue
from windlass.core.jobs.job import Attempt, Job, JobError, LogLine, NewJob, Progress
from windlass.core.jobs.retry import ByError, Exponential, Fixed, Linear
from windlass.core.schedules.schedule import Schedule
from windlass.core.status import Status
from windlass.core.why.explain import Why
from windlass.core.why.reason import Reason
from windlass.errors import (
    BlobUnavailable,
    ConfigError,
    EnqueueFailed,
    EnqueueUnknown,
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    JobCancelled,
    JobDead,
    JobNotFound,
    KeyConflict,
    LeaseLost,
    NotAllowedNow,
    NotInJob,
    PayloadTooLarge,
    QueueClosed,
    ResultUnavailable,
    ScheduleNotFound,
    SchemaMismatch,
    StoreUnavailable,
    UnknownTask,
    UseAsync,
    WindlassError,
)
from windlass.version import __version__

__all__ = [
    "PREVIOUS",
    "App",
    "Attempt",
    "BlobUnavailable",
    "ByError",
    "Cancel",
    "Chain",
    "ChainHandle",
    "ConfigError",
    "Context",
    "ContextTask",
    "Dead",
    "EnqueueFailed",
    "EnqueueUnknown",
    "Exponential",
    "Fixed",
    "Handle",
    "InvalidInput",
    "InvalidName",
    "InvalidOption",
    "InvalidPayload",
    "InvalidTime",
    "Job",
    "JobCancelled",
    "JobDead",
    "JobError",
    "JobNotFound",
    "KeyConflict",
    "LeaseLost",
    "Linear",
    "Links",
    "LogLine",
    "NewJob",
    "NotAllowedNow",
    "NotInJob",
    "PayloadTooLarge",
    "Progress",
    "Queue",
    "QueueClosed",
    "Reason",
    "ResultUnavailable",
    "Retry",
    "Schedule",
    "ScheduleNotFound",
    "SchemaMismatch",
    "Snooze",
    "State",
    "Status",
    "StoreUnavailable",
    "Task",
    "TaskSet",
    "UnknownTask",
    "UseAsync",
    "Why",
    "WindlassError",
    "__version__",
    "chain",
    "current_context",
    "current_job",
]
