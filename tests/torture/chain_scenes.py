"""Scenes of chains: a link and those that wait for it are written together, or not at all."""

from typing import Any

import msgspec

from tests.support.chains import follow_on
from tests.support.seed import new_job, open_lease, request
from tests.torture.scene import JOBS, Scene
from windlass.core.jobs.outcome import Settlement
from windlass.core.status import Status
from windlass.store.contract import Store

_LINKS = follow_on([new_job(id=id_, idempotency_key=id_[-1]) for id_ in JOBS[:3]])
_FIRST: dict[str, Any] = {"id": JOBS[0], "queue": "default", "attempt": 1, "keyed": True}
_DONE = Settlement(**_FIRST, status=Status.COMPLETED, outcome="completed", result="1")
_OVER = Settlement(**_FIRST, status=Status.DEAD, outcome="dead", failures=1)


async def _waiting(store: Store) -> None:
    await store.jobs.enqueue(_LINKS)


async def _running(store: Store) -> None:
    await _waiting(store)
    await open_lease(store)
    await store.jobs.claim(request(claim=1))


async def _fallen(store: Store) -> None:
    await _running(store)
    await store.jobs.settle([_OVER])


_EITHER = msgspec.structs.replace(new_job(id=JOBS[3]), parents=(JOBS[0],), when_ended=True)


async def _with_one_that_waits_for_the_end(store: Store) -> None:
    await store.jobs.enqueue([*_LINKS, _EITHER])
    await open_lease(store)
    await store.jobs.claim(request(claim=1))


async def _waiting_for_the_end(store: Store) -> None:
    await store.jobs.enqueue([*_LINKS, _EITHER])


CHAINS = [
    Scene(
        verb="settle",
        name="settle, a link that died, of which one waits for the end",
        tells=True,
        before=_with_one_that_waits_for_the_end,
        act=lambda store: store.jobs.settle([_OVER]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(
        verb="cancel",
        name="cancel, a link of which one waits for the end",
        before=_waiting_for_the_end,
        act=lambda s: s.operator.cancel(JOBS[:1], "no"),
    ),
    Scene(
        verb="enqueue",
        name="enqueue, a chain",
        act=lambda store: store.jobs.enqueue(_LINKS),
        again=lambda first, second: [each.id for each in second] == JOBS[:3] and all(e.existing for e in second),
    ),
    Scene(
        verb="enqueue",
        name="enqueue, a child of one that ended",
        before=_fallen,
        act=lambda store: store.jobs.enqueue([new_job(id=JOBS[3], parents=(JOBS[0],))]),
        again=lambda first, second: [(each.id, each.existing) for each in second] == [(JOBS[3], True)],
    ),
    Scene(
        verb="settle",
        name="settle, a link that completed",
        before=_running,
        act=lambda store: store.jobs.settle([_DONE]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(
        verb="settle",
        name="settle, a link that died",
        tells=True,
        before=_running,
        act=lambda store: store.jobs.settle([_OVER]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(verb="cancel", name="cancel, a link", before=_waiting, act=lambda s: s.operator.cancel(JOBS[:1], "no")),
    Scene(
        verb="retry",
        name="retry, a link that died",
        tells=True,
        before=_fallen,
        act=lambda store: store.operator.retry(JOBS[:1]),
    ),
]
