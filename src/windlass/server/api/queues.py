"""Queues: read, change, pause, resume, close, open, purge."""

from datetime import datetime
from typing import Any

import msgspec

from windlass.core.flow.queue import (
    NO_AGEING,
    NO_LIMIT,
    NO_RATE,
    NONE,
    Queue,
    QueueOptions,
    QueueRules,
    QueueSettings,
)
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.moments import SECOND
from windlass.core.names import check_name
from windlass.core.tokens import Scope
from windlass.errors import InvalidOption, QueueNotFound
from windlass.server.operation import Answer, Call, Operation, etag, reads


class SettingsRecord(msgspec.Struct, kw_only=True):
    """Settings of a queue: lengths in seconds, rates as text; null: not set, "none": no limit."""

    max_attempts: int | None
    retry: StoredPolicy | None
    timeout: float | str | None
    retention: dict[str, float]
    max_concurrency: int | str | None
    rate_limit: str | None
    fair: bool | None
    weights: dict[str, float]
    ageing: float | str | None


class QueueRecord(msgspec.Struct, kw_only=True):
    """A queue: its jobs by status, the effective settings, what the code declares, and what an operator changed.

    A token that is limited to types sees no numbers of jobs.
    """

    name: str
    version: str
    """Its ETag, without the quotes."""
    paused: bool
    paused_until: datetime | None
    closed: bool
    jobs: dict[str, int]
    settings: SettingsRecord
    declared: SettingsRecord
    changed: SettingsRecord


class QueueList(msgspec.Struct):
    """All queues."""

    queues: list[QueueRecord]


class QueuePatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Settings to change, as `app.queues.set` takes them; `reset` undoes changes by name."""

    max_attempts: int | None = None
    retry: StoredPolicy | None = None
    timeout: float | str | None = None
    retention: dict[str, float | str] | None = None
    max_concurrency: int | str | None = None
    rate_limit: str | None = None
    fair: bool | None = None
    weights: dict[str, float] | None = None
    ageing: float | str | None = None
    reset: list[str] = []


class PauseRequest(msgspec.Struct, forbid_unknown_fields=True):
    """How long to pause, in seconds; null: until resumed."""

    seconds: float | None = None


class NewQueue(msgspec.Struct, forbid_unknown_fields=True):
    """A queue to make known before its first job."""

    name: str


class Purged(msgspec.Struct):
    """How many jobs were cancelled."""

    cancelled: int


async def list_queues(call: Call) -> Answer:
    """All queues, with their jobs by status."""
    counts = await _counts(call)
    queues = [queue for queue in await call.app.queues.alist() if call.caller.rights.covers_queue(queue.name)]
    return Answer(QueueList([queue_record(queue, counts.get(queue.name, {})) for queue in queues]))


async def add_queue(call: Call) -> Answer:
    """Make a queue known before its first job; an existing one is left as it is."""
    name = check_name(call.body.name, "name")
    if not call.caller.rights.covers_queue(name):
        raise QueueNotFound(name)
    return await _answer(call, await call.app.queues.aadd(name))


async def get_queue(call: Call) -> Answer:
    """One queue."""
    return await _answer(call, await _queue(call))


async def change_queue(call: Call) -> Answer:
    """Change settings; they override what the code declares."""
    queue, version = await _matching_queue(call)
    given = {name: value for name, value in msgspec.structs.asdict(call.body).items() if value is not None}
    names = given.pop("reset")
    if not given and not names:
        raise InvalidOption("body", f"nothing to change; there are {', '.join(QueueOptions.__annotations__)}, reset")
    return await _answer(call, await call.app.queues.aset(queue.name, reset=names, version=version, **given))


async def pause_queue(call: Call) -> Answer:
    """Stop claims from the queue, for a time or until it is resumed."""
    queue, version = await _matching_queue(call)
    return await _answer(call, await call.app.queues.apause(queue.name, call.body.seconds, version=version))


async def resume_queue(call: Call) -> Answer:
    """Resume claims from the queue."""
    queue, version = await _matching_queue(call)
    return await _answer(call, await call.app.queues.aresume(queue.name, version=version))


async def close_queue(call: Call) -> Answer:
    """Refuse new jobs."""
    queue, version = await _matching_queue(call)
    return await _answer(call, await call.app.queues.aclose(queue.name, version=version))


async def open_queue(call: Call) -> Answer:
    """Accept new jobs again."""
    queue, version = await _matching_queue(call)
    return await _answer(call, await call.app.queues.aopen(queue.name, version=version))


async def purge_queue(call: Call) -> Answer:
    """Cancel every waiting job in it."""
    queue, _ = await _matching_queue(call)
    return Answer(Purged(await call.app.queues.apurge(queue.name)))


async def _queue(call: Call) -> Queue:
    """The queue of the path, if the token covers it."""
    name = check_name(call.path["name"], "queue")
    if not call.caller.rights.covers_queue(name):
        raise QueueNotFound(name)
    return await call.app.queues.aget(name)


async def _matching_queue(call: Call) -> tuple[Queue, str | None]:
    """The queue of the path, and the version that a change requires (If-Match)."""
    queue = await _queue(call)
    call.caller.need_whole_queue(queue.name)
    return queue, call.expected(queue.version, f"queue {queue.name!r}")


async def _answer(call: Call, queue: Queue) -> Answer:
    counts = await _counts(call)
    return Answer(queue_record(queue, counts.get(queue.name, {})), headers={"etag": etag(queue.version)})


async def _counts(call: Call) -> dict[str, dict[str, int]]:
    """Jobs by queue and status; none for a token that is limited to types."""
    return {} if call.caller.rights.types else (await call.app.stats.acounts()).queues


def queue_record(queue: Queue, jobs: dict[str, int]) -> QueueRecord:
    """A queue as the API returns it."""
    return QueueRecord(
        name=queue.name,
        version=queue.version,
        paused=queue.paused,
        paused_until=queue.paused_until,
        closed=queue.closed,
        jobs=jobs,
        settings=settings_record(queue.rules),
        declared=settings_record(queue.declared),
        changed=settings_record(queue.changed),
    )


def settings_record(settings: QueueSettings | QueueRules) -> SettingsRecord:
    """Settings as the API returns them."""
    rate, limit, ageing, timeout = settings.rate_limit, settings.max_concurrency, settings.ageing, settings.timeout
    none = None if isinstance(settings, QueueRules) else NONE
    return SettingsRecord(
        max_attempts=settings.max_attempts,
        retry=settings.retry,
        timeout=(timeout / SECOND or none) if timeout is not None else None,
        retention={str(status): micros / SECOND for status, micros in settings.retention.items()},
        max_concurrency=NONE if limit == NO_LIMIT else limit,
        rate_limit=NONE if rate == NO_RATE else None if rate is None else str(rate),
        fair=settings.fair,
        weights=settings.weights,
        ageing=NONE if ageing == NO_AGEING else None if ageing is None else ageing / SECOND,
    )


def _action(verb: str, handler: Any, summary: str, *, body: Any = None, answer: Any = QueueRecord) -> Operation:
    return Operation(
        method="POST",
        path=f"/queues/{{name}}/{verb}",
        scope=Scope.OPERATE,
        handler=handler,
        summary=summary,
        body=body,
        optional_body=True,
        answers={200: answer},
        headers=() if answer is Purged else ("If-Match",),
    )


OPERATIONS = (
    reads("/queues", list_queues, "List queues", QueueList),
    Operation(
        method="POST",
        path="/queues",
        scope=Scope.OPERATE,
        handler=add_queue,
        summary="Add a queue before its first job",
        body=NewQueue,
        answers={200: QueueRecord},
    ),
    reads("/queues/{name}", get_queue, "Read a queue", QueueRecord),
    Operation(
        method="PATCH",
        path="/queues/{name}",
        scope=Scope.OPERATE,
        handler=change_queue,
        summary="Change a queue's settings",
        body=QueuePatch,
        answers={200: QueueRecord},
        headers=("If-Match",),
    ),
    _action("pause", pause_queue, "Pause a queue", body=PauseRequest),
    _action("resume", resume_queue, "Resume a queue"),
    _action("close", close_queue, "Close a queue to new jobs"),
    _action("open", open_queue, "Open a queue to new jobs"),
    _action("purge", purge_queue, "Cancel every waiting job of a queue", answer=Purged),
)
