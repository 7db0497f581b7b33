"""The law of groups: a callback runs after the members that it waits for, and no group waits in vain."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.checker.lives import FOREVER, Times
from tests.support.checker.order import Found, Jobs
from windlass.core.groups.ids import GROUP_TYPE, Role, callback_id, is_group_id, member_id
from windlass.core.groups.need import Need, needed
from windlass.core.groups.rules import member_in_reason
from windlass.core.status import FINISHED, Status

LOST = (Status.DEAD, Status.CANCELLED)


def too_early(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I20: `then` begins when every member has completed, or enough have, `always` when every member has ended."""
    for group, members in _groups(jobs):
        for role in (Role.THEN, Role.ALWAYS):
            life = times.life(callback_id(group, role))
            begun = min((claim.answered for claim in life.claims), default=None)
            must_complete = role is Role.THEN and _need(jobs[group]) is None
            for member in members if begun is not None else ():
                ended = _first_end(times, jobs, member, completed=must_complete)
                if begun is not None and ended > begun:
                    what = "completed" if must_complete else "ended"
                    yield life.id, f"it began before the member {member} of its group had {what}"


def in_vain(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I20: when its members have ended, a group ends, and its callbacks run or are cancelled."""
    for group, members in _groups(jobs):
        statuses = {jobs[member]["status"] for member in members if member in jobs}
        if jobs[group]["status"] not in FINISHED and not statuses - FINISHED:
            yield group, "it waits, although all of its members have ended"
        then = jobs.get(callback_id(group, Role.THEN))
        if then is not None and jobs[group]["status"] in FINISHED and then["status"] == Status.BLOCKED:
            yield then["id"], f"it waits for its group, which is {jobs[group]['status']}"


def wrongly_ended(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I20: a group completes with its members, and is lost only with one of them, or by an operator."""
    for group, members in _groups(jobs):
        job = jobs[group]
        if job["status"] == Status.COMPLETED:
            missing = [each for each in members if _first_end(times, jobs, each, completed=True) == FOREVER]
            if len(missing) > len(members) - needed(_need(job), len(members)):
                yield group, f"it completed, and its member {missing[-1]} never has"
        culprit = member_in_reason(job.get("reason")) if job["status"] == Status.CANCELLED else None
        if culprit is not None and not _was_lost(times, jobs, culprit):
            yield group, f"it was cancelled because of its member {culprit}, which was never lost"


def _groups(jobs: Jobs) -> Iterator[tuple[str, list[str]]]:
    """Groups, with the ids of their members."""
    for job in jobs.values():
        if job.get("type") == GROUP_TYPE and is_group_id(job["id"]):
            payload: Any = job["payload"]
            yield job["id"], [member_id(job["id"], index) for index in range(payload["size"])]


def _need(group: dict[str, Any]) -> Need:
    found: Need = group["payload"].get("need")
    return found


def _first_end(times: Times, jobs: Jobs, member: str, *, completed: bool) -> int:
    """When it may have ended first, by what was told to the store; FOREVER: never."""
    life = times.life(member)
    if not completed and life.acted("cancel"):
        return 0  # at that moment, which is not compared
    reported = [
        each.invoked
        for each in life.settles
        if each.answer not in ("stale", "failed")
        and (each.status == Status.COMPLETED or (not completed and each.status in FINISHED))
    ]
    if not completed and jobs.get(member, {}).get("status") in LOST:
        return min([0, *reported])
    return min(reported, default=FOREVER)


def _was_lost(times: Times, jobs: Jobs, member: str) -> bool:
    life = times.life(member)
    is_lost = jobs.get(member, {}).get("status") in LOST
    return is_lost or bool(life.acted("cancel")) or any(each.status in LOST for each in life.settles)


GROUPS: list[tuple[str, Callable[[Times, Jobs, Mapping[str, int]], Iterator[Found]]]] = [
    ("I20", too_early),
    ("I20", in_vain),
    ("I20", wrongly_ended),
]
