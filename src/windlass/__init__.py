"""Windlass: a job queue for Python. An accepted job is never lost."""

from windlass.client.app import App
from windlass.client.chain import Chain, ChainHandle, chain
from windlass.client.context import Context
from windlass.client.current import current_context, current_job
from windlass.client.handle import ChildHandle, Handle
from windlass.client.links import Links
from windlass.client.previous import PREVIOUS
from windlass.client.state import State
from windlass.client.task import Task
from windlass.client.taskset import TaskSet
from windlass.core.control import Cancel, Dead, Retry, Snooze
from windlass.core.job import Attempt, Job, JobError, LogLine, NewJob, Progress
from windlass.core.queue import Queue
from windlass.core.reason import Reason
from windlass.core.retry import ByError, Exponential, Fixed, Linear
from windlass.core.schedule import Schedule
from windlass.core.status import Status
from windlass.core.why import Why
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
    "ChildHandle",
    "ConfigError",
    "Context",
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
