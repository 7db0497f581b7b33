"""The job that a group is: it looks at the members, and ends when its callback may run, or never will.

A group is a scheduled job of the type `windlass.group`, which every worker knows. Its members are its children. Ends
of members wake it (`worker/runner/group_ends.py`); without that it looks by itself, at growing intervals. Its
callback depends on it as a link of a chain depends on the link before.
"""

from typing import Any

import msgspec

from windlass.client.groups.members import LOST, Walk, first_live
from windlass.client.groups.results import PAGE, Results
from windlass.client.runtime.offloaded import value_of
from windlass.client.tasks.context import Context, Home, entered
from windlass.core.codec import encode, size_of, unstorable_problem
from windlass.core.control import Cancel, Dead, Snooze
from windlass.core.groups.ids import Role, member_id, member_index
from windlass.core.groups.rules import Verdict, seconds_until_next_look, verdict
from windlass.core.ids import JobId
from windlass.core.moments import Micros, to_micros
from windlass.core.reference import Reference
from windlass.core.status import Status
from windlass.errors import BlobUnavailable, StoreUnavailable
from windlass.store.contract import OperatorStore


async def watch_group(
    ctx: Context, group: str, size: int, role: int = 0, as_list: bool = False, name: str = ""
) -> Any:
    """Return if the callback may run; raise Cancel if it never will, Snooze if that is open."""
    home = entered.get().home
    try:
        operator = (await home._ready()).operator
        wanted, reason = await _judge(operator, ctx, group, size, Role(role))
        if wanted is Verdict.RUN:
            return await _all_results(home, group, size) if as_list else Results(home, group, size).reference()
        if wanted is Verdict.CANCEL:
            raise Cancel(reason)
    except StoreUnavailable:
        pass  # it looks again, as if nothing were known
    raise Snooze(seconds_until_next_look(ctx.job.snoozes))


async def _judge(operator: OperatorStore, ctx: Context, group: JobId, size: int, role: Role) -> tuple[Verdict, str]:
    if role is Role.ON_DEAD:
        completed, lost = await _ends_of(operator, group)
        return verdict(role, ended=completed, lost=lost), "its group completed"
    walk = Walk(operator, group, size, past_lost=role is Role.ALWAYS, age=_age(ctx))
    done = await walk.run(await _known(operator, ctx.job.id))
    if done >= size and (live := await first_live(operator, group)) is not None:
        done = member_index(group, live) or 0  # it was counted, and retried since
    await ctx.progress(done, size)
    return verdict(role, ended=done >= size, lost=walk.lost is not None), walk.lost or ""


async def _ends_of(operator: OperatorStore, group: JobId) -> tuple[bool, bool]:
    """Whether the group has completed, and whether it ended otherwise."""
    job = (await operator.get([group]))[0]
    if job is not None:
        return job.status is Status.COMPLETED, job.status in LOST
    outcome = (await operator.outcomes([group]))[0]
    return outcome == Status.COMPLETED, outcome is not None and outcome != Status.COMPLETED


def _age(ctx: Context) -> Micros:
    """At this claim, by the store's clock."""
    job = ctx.job
    return to_micros(job.claimed_at or job.created_at) - to_micros(job.created_at)


async def _known(operator: OperatorStore, id_: JobId) -> int:
    """How many members earlier looks have counted: kept as the job's progress."""
    job = (await operator.get([id_]))[0]
    return int(job.progress.done) if job is not None and job.progress is not None else 0


async def _all_results(home: Home, group: JobId, size: int) -> list[Any]:
    """Every result, for a callback that takes a list."""
    operator = (await home._ready()).operator
    found: list[Any] = []
    for start in range(0, size, PAGE):
        for job in await operator.get([member_id(group, i) for i in range(start, min(start + PAGE, size))]):
            if job is None:
                raise Dead("the result of a member is not kept any more")
            if isinstance(job.result, Reference):
                try:
                    job = msgspec.structs.replace(job, result=await value_of(home.offload(), job.id, job.result))
                except BlobUnavailable as error:
                    raise Dead(str(error)) from error
            if (problem := unstorable_problem(job.result)) is not None:
                raise Dead(f"the result of member {job.id} was not kept: {problem}")
            found.append(job.result)
    if (bytes_ := size_of(encode(found, "results"))) > home.payload_limit:
        limit = f"{bytes_:,} bytes, the limit is {home.payload_limit:,}"
        raise Dead(f"the results together have {limit}: let the callback take Results[T] instead of a list")
    return found
