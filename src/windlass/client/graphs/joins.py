"""The jobs between nodes: each decides about one condition, fenced like any attempt."""

from collections.abc import Sequence
from typing import Any

from windlass.client.graphs.skipped import is_skipped
from windlass.client.groups.results import Results
from windlass.client.tasks.context import Context, entered
from windlass.core.codec import encode, size_of
from windlass.core.control import Cancel, Dead, Snooze
from windlass.core.graphs.rules import NodeEnd, When, node_end, unmet_reason, when_dead
from windlass.core.groups.rules import Verdict, seconds_until_next_look
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.errors import BlobUnavailable, ResultUnavailable, StoreUnavailable
from windlass.store.contract import OperatorStore


async def join_nodes(
    ctx: Context,
    when: str = "completed",
    of: Sequence[str] = (),
    all_of: str = "",
    results: Any = None,
    value: Any = None,
) -> Any:
    """Return if the node behind the join may run; raise Cancel if its condition cannot be met, Snooze while that
    is undecided.

    `all_of` is the join that completes if all nodes do; the nodes may be dropped by then. With `results`, a
    reference to the results of a node's members, it returns them as a list; `value` is returned as it is.
    """
    if results is not None:
        return await _as_list(Results.restore_from_json(Results, results))
    if not of:
        return value
    try:
        operator = (await entered.get().home._ready()).operator
        if When(when) is When.ENDED:
            if all(job is None or job.finished for job in await operator.get(of)):
                return None
            raise Snooze(seconds_until_next_look(ctx.job.snoozes))
        if all_of and await _has_completed(operator, all_of):
            raise Cancel(unmet_reason(of[0], Status.COMPLETED))
        jobs = await operator.get(of)
        verdict = when_dead([await _end(operator, id_, job) for id_, job in zip(of, jobs, strict=True)])
        if verdict is Verdict.RUN:
            return None
        if verdict is Verdict.CANCEL:
            raise Cancel(unmet_reason(of[0], Status.COMPLETED if jobs[0] is None else jobs[0].status))
    except StoreUnavailable:
        pass  # the join runs again after the snooze
    raise Snooze(seconds_until_next_look(ctx.job.snoozes))


async def _has_completed(operator: OperatorStore, id_: JobId) -> bool:
    job = (await operator.get([id_]))[0]
    outcome = (await operator.outcomes([id_]))[0] if job is None else job.status
    return outcome == Status.COMPLETED


async def _as_list(results: Results[Any]) -> list[Any]:
    limit = entered.get().home.payload_limit
    try:
        found = [each async for each in results]
    except (ResultUnavailable, BlobUnavailable) as error:
        raise Dead(str(error)) from error
    if (size := size_of(encode(found, "results"))) > limit:
        raise Dead(
            f"the results together have {size:,} bytes, the limit is {limit:,}: take them one by one, as Results[T]"
        )
    return found


async def _end(operator: OperatorStore, id_: JobId, job: Job | None) -> NodeEnd:
    if job is None:
        return node_end(None, (await operator.outcomes([id_]))[0], skipped=False)
    return node_end(job.status, None, skipped=await is_skipped(operator, job))
