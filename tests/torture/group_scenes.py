"""Scenes of groups: a group is stored as a whole, and its end releases its callback in the same step."""

from typing import Any

from tests.support.seed import new_job, open_lease, request
from tests.torture.scene import Scene
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE, Role, callback_id, link_id, member_id, named_group_id
from windlass.core.jobs.job import NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.status import Status
from windlass.store.contract import Store

_GROUP = named_group_id("scene")
_BEHIND = link_id(f"{_GROUP}/1", 0)
_JOBS = [
    NewJob(id=_GROUP, type=GROUP_TYPE, payload="{}", flow=_GROUP),
    new_job(id=callback_id(_GROUP, Role.THEN), parent=_GROUP, parents=(_GROUP,), flow=_GROUP),
    new_job(id=member_id(_GROUP, 0), parent=_GROUP, flow=_GROUP, delay=1),
    new_job(id=_BEHIND, flow=_GROUP, idempotency_key="k", delay=1),
    NewJob(
        id=member_id(_GROUP, 1),
        type=MEMBER_TYPE,
        payload="{}",
        parent=_GROUP,
        parents=(_BEHIND,),
        result_params=(("value", _BEHIND),),
        flow=_GROUP,
    ),
]
_OF_GROUP: dict[str, Any] = {"id": _GROUP, "queue": "default", "attempt": 1}
_DONE = Settlement(**_OF_GROUP, status=Status.COMPLETED, outcome="completed", result="1")
_LOST = Settlement(**_OF_GROUP, status=Status.CANCELLED, outcome="cancelled", reason="a member is lost")


async def _looking(store: Store) -> None:
    await store.jobs.enqueue(_JOBS)
    await open_lease(store)
    await store.jobs.claim(request(claim=1, types=(GROUP_TYPE,)))


GROUPS = [
    Scene(
        verb="enqueue",
        name="enqueue, a group",
        act=lambda store: store.jobs.enqueue(_JOBS),
        again=lambda first, second: all(each.existing for each in second),
    ),
    Scene(
        verb="settle",
        name="settle, a group that completed",
        before=_looking,
        act=lambda store: store.jobs.settle([_DONE]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(
        verb="settle",
        name="settle, a group that is lost",
        tells=True,
        before=_looking,
        act=lambda store: store.jobs.settle([_LOST]),
        again=lambda first, second: second == ["already"],
    ),
]
