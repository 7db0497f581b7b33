"""GET /claims: the rules of this server for workers. GET /claims/{worker}: the attempts that one holds."""

import msgspec

from windlass.core.jobs.job import Claimed
from windlass.core.jobs.retry import DEFAULT_POLICY
from windlass.core.moments import SECOND
from windlass.core.tokens import Scope
from windlass.server.operation import Answer, Call, Operation
from windlass.server.workers.records import (
    MAX_CLAIMED,
    MAX_SETTLED,
    MAX_WAIT,
    HeldAnswer,
    HeldJob,
    WorkerRules,
)
from windlass.server.workers.service import BEATS, service_of
from windlass.store.records import Held


async def worker_rules(call: Call) -> Answer:
    """The lease and the limits of this server, and how the queues that the token may use are retried."""
    service = service_of(call)
    seconds, queues = service.workers.lease / SECOND, await service.rules()
    return Answer(
        WorkerRules(
            lease=seconds,
            beat_after=seconds / BEATS,
            max_limit=MAX_CLAIMED,
            max_wait=MAX_WAIT,
            max_settlements=MAX_SETTLED,
            retry={
                name: msgspec.to_builtins(rules.retry)
                for name, rules in queues.items()
                if rules.retry != DEFAULT_POLICY and call.caller.rights.covers_queue(name)
            },
        )
    )


async def held_jobs(call: Call) -> Answer:
    """The attempts that a worker holds, to be settled or requeued after its restart."""
    service = service_of(call)
    worker = await service.workers.get(call.caller, call.path["worker"])
    held = await (await call.app._ready()).jobs.held(worker.runner)
    claimed = await service.claimed(worker, [(each.id, each.attempt) for each in held])
    return Answer(HeldAnswer([_held(each, claimed.get((each.id, each.attempt))) for each in held]))


def _held(held: Held, job: Claimed | None) -> HeldJob:
    """`job` is None if it has ended since."""
    known = HeldJob(id=held.id, attempt=held.attempt, queue=held.queue, claim=held.claim)
    if job is None:
        return known
    return msgspec.structs.replace(
        known,
        type=job.type,
        max_attempts=job.max_attempts,
        failures=job.failures,
        crashes=job.crashes,
        timeout=job.timeout / SECOND if job.timeout else None,
    )


OPERATIONS = (
    Operation(
        method="GET",
        path="/claims",
        scope=Scope.WORK,
        handler=worker_rules,
        summary="How this server treats workers",
        answers={200: WorkerRules},
    ),
    Operation(
        method="GET",
        path="/claims/{worker}",
        scope=Scope.WORK,
        handler=held_jobs,
        summary="The jobs that a worker holds",
        answers={200: HeldAnswer},
    ),
)
