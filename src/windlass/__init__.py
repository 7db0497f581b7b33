"""Windlass: a job queue for Python. An accepted job is never lost."""

from windlass.client.app import App
from windlass.client.graphs.graph import Graph
from windlass.client.graphs.handle import FlowHandle
from windlass.client.graphs.node import MapNode, Node
from windlass.client.groups.group import Group, GroupOptions, group
from windlass.client.groups.handle import GroupHandle
from windlass.client.groups.open_group import OpenGroup
from windlass.client.groups.results import MemberFailure, Results
from windlass.client.handle import Handle
from windlass.client.tasks.chain import Chain, ChainHandle, chain
from windlass.client.tasks.context import Context, current_context, current_job
from windlass.client.tasks.hooks import State
from windlass.client.tasks.options import JobOptions, TaskOptions
from windlass.client.tasks.own_group import OwnGroup
from windlass.client.tasks.previous import PREVIOUS
from windlass.client.tasks.task import ContextTask, Task, TaskJob
from windlass.client.tasks.taskset import TaskSet
from windlass.client.verbs.actions import Action, ActionNotFound
from windlass.client.verbs.audit import Actor, AuditEntry
from windlass.client.verbs.filters import JobFilters
from windlass.client.verbs.flows import FlowNotFound
from windlass.client.verbs.links import Links
from windlass.client.verbs.payloads import EarlierPayload
from windlass.client.verbs.tokens import NewToken, TokenNotFound
from windlass.client.verbs.webhooks import NewSecret, WebhookNotFound
from windlass.core.control import Cancel, Dead, Retry, Snooze
from windlass.core.flow.queue import Queue, QueueOptions, QueueRules, QueueSettings
from windlass.core.flow.rate import Rate
from windlass.core.graphs.tree import FlowEdge, FlowNode, FlowTree
from windlass.core.groups.flow import Flow, FlowCallback
from windlass.core.ids import JobRef
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Attempt, Job, JobError, LogLine, NewJob, Progress
from windlass.core.jobs.retry import Backoff, ByError, Exponential, Fixed, Linear, Steps
from windlass.core.moments import Duration
from windlass.core.schedules.cron import Cron
from windlass.core.schedules.schedule import Schedule, ScheduleOptions, ScheduleRules, ScheduleSettings
from windlass.core.schedules.ticks import CatchUp
from windlass.core.stats.meter import Histogram, Meter, Recent
from windlass.core.stats.recent_stats import Quantiles
from windlass.core.stats.timeline import Point, Series, Timeline
from windlass.core.status import Status
from windlass.core.tokens import Scope, Token
from windlass.core.webhooks.webhook import Webhook, WebhookOptions
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
    QueueNotFound,
    ResultUnavailable,
    ScheduleNotFound,
    SchemaMismatch,
    StoreUnavailable,
    UnknownTask,
    UseAsync,
    WindlassError,
)
from windlass.store.records import Counts, Page, WorkerInfo
from windlass.version import __version__

__all__ = [
    "PREVIOUS",
    "Action",
    "ActionNotFound",
    "Actor",
    "App",
    "Attempt",
    "AuditEntry",
    "Backoff",
    "BlobUnavailable",
    "ByError",
    "Cancel",
    "CatchUp",
    "Chain",
    "ChainHandle",
    "ConfigError",
    "Context",
    "ContextTask",
    "Counts",
    "Cron",
    "Dead",
    "Duration",
    "EarlierPayload",
    "EnqueueFailed",
    "EnqueueUnknown",
    "Exponential",
    "Fixed",
    "Flow",
    "FlowCallback",
    "FlowEdge",
    "FlowHandle",
    "FlowNode",
    "FlowNotFound",
    "FlowTree",
    "Graph",
    "Group",
    "GroupHandle",
    "GroupOptions",
    "Handle",
    "Histogram",
    "InvalidInput",
    "InvalidName",
    "InvalidOption",
    "InvalidPayload",
    "InvalidTime",
    "Job",
    "JobCancelled",
    "JobDead",
    "JobError",
    "JobFilters",
    "JobNotFound",
    "JobOptions",
    "JobRef",
    "KeyConflict",
    "LeaseLost",
    "Linear",
    "Links",
    "LogLine",
    "MapNode",
    "MemberFailure",
    "Meter",
    "NewJob",
    "NewSecret",
    "NewToken",
    "Node",
    "NotAllowedNow",
    "NotInJob",
    "OnConflict",
    "OpenGroup",
    "OwnGroup",
    "Page",
    "PayloadTooLarge",
    "Point",
    "Progress",
    "Quantiles",
    "Queue",
    "QueueClosed",
    "QueueNotFound",
    "QueueOptions",
    "QueueRules",
    "QueueSettings",
    "Rate",
    "Reason",
    "Recent",
    "ResultUnavailable",
    "Results",
    "Retry",
    "Schedule",
    "ScheduleNotFound",
    "ScheduleOptions",
    "ScheduleRules",
    "ScheduleSettings",
    "SchemaMismatch",
    "Scope",
    "Series",
    "Snooze",
    "State",
    "Status",
    "Steps",
    "StoreUnavailable",
    "Task",
    "TaskJob",
    "TaskOptions",
    "TaskSet",
    "Timeline",
    "Token",
    "TokenNotFound",
    "UnknownTask",
    "UseAsync",
    "Webhook",
    "WebhookNotFound",
    "WebhookOptions",
    "Why",
    "WindlassError",
    "WorkerInfo",
    "__version__",
    "chain",
    "current_context",
    "current_job",
    "group",
]
