"""flow.map(...): a job per element of a result, added by a job that then waits for them as a group does."""

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.client.graphs.members import member_ids
from windlass.client.graphs.node import MapNode
from windlass.client.groups.cancelling import cancel_members
from windlass.client.groups.members import ALIVE, LOST, first_live
from windlass.client.groups.results import Results
from windlass.client.tasks.context import Context, entered
from windlass.client.tasks.previous import PREVIOUS
from windlass.client.tasks.task import Task
from windlass.core.codec import check_json, encode
from windlass.core.control import Cancel, Dead, Snooze
from windlass.core.flow.rate import parse_rate
from windlass.core.graphs.ids import JOIN_TYPE, MAP_TYPE
from windlass.core.groups.ids import MAX_MEMBERS, member_id, member_index
from windlass.core.groups.rules import (
    MemberState,
    member_ended_reason,
    member_state,
    seconds_until_next_look,
)
from windlass.core.ids import JobId
from windlass.core.jobs.job import DEFAULT_TIMEOUT, MAX_ATTEMPTS, MAX_PRIORITY, NewJob
from windlass.core.status import Status
from windlass.errors import InvalidInput, InvalidOption, StoreUnavailable
from windlass.store.contract import OperatorStore

PORTION = 1000
"""Max members in one enqueue."""
ASKED = "its map was cancelled"
_KEPT = (
    *("queue", "priority", "delay", "run_at", "max_attempts", "timeout", "expires", "expires_at"),
    *("tenant", "tags", "meta", "concurrency_key", "key_limit", "key_strict", "key_rate", "rate_cost"),
)
"""Options of the members."""


def map_jobs(
    node: MapNode[Any], task: Task[Any, Any, Any], arguments: Mapping[str, Any], over: JobId
) -> tuple[NewJob, NewJob]:
    """The job that adds the members, whose parents are not set, and the node, which completes after it."""
    options, param = _options(node, task, arguments)
    payload = {
        "group": node.members,
        "type": task.type,
        "param": param,
        "arguments": dict(arguments),
        "options": options,
    }
    shared: dict[str, Any] = {
        "queue": options["queue"],
        "priority": MAX_PRIORITY,
        "max_attempts": MAX_ATTEMPTS,
        "timeout": DEFAULT_TIMEOUT,
        "flow": node.flow,
    }
    text = encode(payload, f"node {node.name!r}")
    takes = (("items", over),)
    adds = NewJob(id=node.members, type=MAP_TYPE, payload=text, parent=over, result_params=takes, **shared)
    ends = NewJob(id=node.id, type=JOIN_TYPE, payload="{}", parent=node.flow, parents=(node.members,), **shared)
    return adds, ends


def _options(
    node: MapNode[Any], task: Task[Any, Any, Any], arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """The options of the members, and the parameter that gets the element."""
    field, param = f"node {node.name!r}", task.definition.signature.first
    if param is None:
        raise InvalidOption(field, f"{task.type} has no parameter for the element")
    if param in arguments:
        raise InvalidOption(f"{field}.{param}", "cannot be given: the first parameter gets the element")
    for name, value in arguments.items():
        check_json(value, f"{field}.{name}")
    probe = task._made(task.definition.signature.bind((), {param: PREVIOUS, **arguments}))
    if probe.idempotency_key is not None or not probe.fresh:
        raise InvalidOption(field, "cannot map a task with an id or an idempotency_key: it is the same for all")
    kept = {name: getattr(probe, name) for name in _KEPT}
    kept["key_rate"] = None if probe.key_rate is None else str(probe.key_rate)
    return {name: value for name, value in kept.items() if value is not None}, param


async def map_items(
    ctx: Context, group: str, type: str, param: str, items: Any, arguments: dict[str, Any], options: dict[str, Any]
) -> Any:
    """Return when all members have completed; raise Cancel if one is lost, Snooze until then."""
    if not isinstance(items, list):
        raise Dead(f"the result to map is not a list, but {_kind(items)}")
    if len(items) > MAX_MEMBERS:
        raise Dead(f"the result to map has {len(items):,} elements, the limit is {MAX_MEMBERS:,}")
    home: Any = entered.get().home
    try:
        operator = (await home._ready()).operator
        known = (await operator.get([ctx.job.id]))[0]
        seen = None if known is None else known.progress
        if seen is None or seen.total != len(items):
            await _add(home, ctx, group, type, items, lambda item: {param: item, **arguments}, options)
        done, lost = await _ended(operator, group, len(items))
        await ctx.progress(done, len(items))
        if lost is not None:
            raise Cancel(lost)
        if done >= len(items):
            return Results(home, group, len(items)).reference()
    except StoreUnavailable:
        pass  # the watching job runs again; ids are derived, so members are not added twice
    raise Snooze(seconds_until_next_look(ctx.job.snoozes))


async def _ended(operator: OperatorStore, group: JobId, size: int) -> tuple[int, str | None]:
    """How many members have completed, and, if one is lost, the reason."""
    async for ids in member_ids(operator, group, LOST):
        for job in await operator.get(ids[:1]):
            if job is not None and job.status in LOST:
                return 0, member_ended_reason(job.id, member_index(group, job.id) or 0, job.status)
    kept = {id_ async for ids in member_ids(operator, group, (Status.COMPLETED,)) for id_ in ids}
    if len(kept) == size or await first_live(operator, group) is not None:
        return len(kept), None
    # All have ended: since the first read, or they are dropped.
    missing = [index for index in range(size) if member_id(group, index) not in kept]
    for start in range(0, len(missing), PORTION):
        page = missing[start : start + PORTION]
        states = await _ends_of(operator, [member_id(group, index) for index in page])
        for index, state in zip(page, states, strict=True):
            if state is not MemberState.COMPLETED:
                is_lost = state is MemberState.LOST
                reason = member_ended_reason(member_id(group, index), index, None) if is_lost else None
                return len(kept), reason
    return size, None


async def _ends_of(operator: OperatorStore, ids: list[JobId]) -> list[MemberState]:
    """What members count as that were not found among the completed ones: an unknown one was dropped."""
    jobs, outcomes = await operator.get(ids), await operator.outcomes(ids)
    return [
        member_state(None if job is None else job.status, outcome, stored=True)
        for job, outcome in zip(jobs, outcomes, strict=True)
    ]


async def _add(
    home: Any, ctx: Context, group: JobId, type_: str, items: Sequence[Any], payload_of: Any, options: dict[str, Any]
) -> None:
    """Add a member for each element. All jobs are made before the first is stored, so a bad element adds nothing.

    A process without the task, such as a server of REST workers, cannot check elements; there the worker refuses
    them.
    """
    task = home.tasks.get(type_)
    fields = {**options, **({"tags": tuple(options["tags"])} if "tags" in options else {})}
    fields |= {"key_rate": parse_rate(options["key_rate"], "key_rate")} if "key_rate" in options else {}
    jobs = []
    for index, item in enumerate(items):
        own = {**fields, "id": member_id(group, index), "parent": group, "flow": ctx.job.flow, "fresh": ""}
        try:
            if task is None:
                jobs.append(NewJob(type=type_, payload=encode(payload_of(item), "payload"), **own))
            else:
                jobs.append(task._job_of(payload_of(item)).plain(**own))
        except InvalidInput as error:
            raise Dead(f"element {index} of the result to map does not fit: {error}") from error
    for start in range(0, len(jobs), PORTION):
        part = jobs[start : start + PORTION]
        await home._enqueue_jobs(part, [Any] * len(part))
        await _check_wanted((await home._ready()).operator, ctx, group)


async def _check_wanted(operator: OperatorStore, ctx: Context, group: JobId) -> None:
    """Cancel the members that were added after the flow was cancelled."""
    own = (await operator.get([ctx.job.id]))[0]
    if own is None or own.finished or own.cancel_requested:
        await cancel_members(operator, group, ALIVE, ASKED)
        raise Cancel(ASKED)


def _kind(value: Any) -> str:
    return {dict: "an object", str: "text", bool: "a boolean"}.get(
        type(value), "null" if value is None else "a number"
    )
