"""The live workers, and the types of tasks that they or the server know."""

from typing import Any

import msgspec

from windlass.client.tasks.task import Definition
from windlass.core.jobs.job import DEFAULT_QUEUE
from windlass.core.tokens import Rights
from windlass.server.operation import Answer, Call, reads
from windlass.store.records import WorkerInfo


class WorkerList(msgspec.Struct):
    """The live workers."""

    workers: list[WorkerInfo]


class TypeRecord(msgspec.Struct, kw_only=True):
    """A task type: how many live workers know it, and the schema of its payload where the server knows the task."""

    type: str
    workers: int
    schema: dict[str, Any] | None = None


class TypeList(msgspec.Struct):
    """All types that a live worker or this server knows."""

    types: list[TypeRecord]


async def list_workers(call: Call) -> Answer:
    """The live workers."""
    found = await call.app.workers.alist()
    return Answer(WorkerList([_within(call.caller.rights, each) for each in found if _is_seen(call, each)]))


async def list_types(call: Call) -> Answer:
    """Types, by name."""
    rights = call.caller.rights
    workers = [worker for worker in await call.app.workers.alist() if _is_seen(call, worker)]
    known = {each.type: each for each in call.app.registry if sees_task(rights, each)}
    names = {type_ for worker in workers for type_ in worker.types} | set(known)
    return Answer(
        TypeList(
            [
                TypeRecord(
                    type=type_,
                    workers=sum(1 for worker in workers if type_ in worker.types),
                    schema=known[type_].signature.json_schema() if type_ in known else None,
                )
                for type_ in sorted(names)
                if rights.covers_type(type_)
            ]
        )
    )


def sees_task(rights: Rights, task: Definition) -> bool:
    """Whether a token covers the type of a task and its usual queue, and so may see its arguments."""
    return rights.covers(str(task.defaults.get("queue", DEFAULT_QUEUE)), task.type)


def _is_seen(call: Call, worker: WorkerInfo) -> bool:
    rights = call.caller.rights
    in_queues = not rights.queues or any(map(rights.covers_queue, worker.queues))
    return in_queues and (not rights.types or any(map(rights.covers_type, worker.types)))


def _within(rights: Rights, worker: WorkerInfo) -> WorkerInfo:
    """A worker without what it does for queues and types that the token does not cover."""
    if not rights.is_limited:
        return worker
    queues = tuple(filter(rights.covers_queue, worker.queues))
    types = tuple(filter(rights.covers_type, worker.types))
    return msgspec.structs.replace(worker, queues=queues, types=types, running=0, per_minute=0.0)


OPERATIONS = (
    reads("/workers", list_workers, "List live workers", WorkerList),
    reads("/types", list_types, "List task types", TypeList),
)
