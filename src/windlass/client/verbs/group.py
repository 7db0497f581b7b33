"""The base of the groups of verbs: their app, and a blocking form of each verb."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from windlass.blobs.offload import Offload
from windlass.client.handle import Handle
from windlass.client.runtime.portal import Portal
from windlass.client.runtime.store_handle import StoreHandle
from windlass.client.tasks.registry import Registry
from windlass.client.verbs.audit import Actor, record_action
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.errors import StoreUnavailable
from windlass.store.contract import OperatorStore, Store
from windlass.store.records import JobFilter, Transition


class Home(Protocol):
    """What the verbs need of their app."""

    registry: Registry
    actor: Actor

    @property
    def payload_limit(self) -> int: ...

    def offload(self) -> Offload | None: ...

    async def _ready(self) -> Store: ...

    @property
    def _store_handle(self) -> StoreHandle: ...

    def _returns(self, type_: str) -> Any: ...

    async def _enqueue_jobs(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]: ...

    def _handle(self, id_: str, existing: bool, returns: Any) -> Handle[Any]: ...

    def _portal(self) -> Portal: ...


class Verbs:
    """A group of verbs of an app."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def _portal(self) -> Portal:
        return self._home._portal()

    async def _audit(self, action: str, target: str, *, before: Any = None, after: Any = None) -> None:
        """Record an operator's action, which is done: a failure to record it is logged, not raised."""
        store = await self._home._ready()
        try:
            await record_action(store.documents, self._home.actor, action, target, before, after)
        except StoreUnavailable as error:
            _log.error("%s of %s was done, but is not in the audit: %s", action, target, error)


PAGE = 500
_log = logging.getLogger("windlass.audit")


async def each_page(
    operator: OperatorStore,
    wanted: JobFilter,
    verb: Callable[[OperatorStore, Sequence[JobId]], Awaitable[Sequence[Transition | None]]],
) -> int:
    """Apply a verb to every matching job, oldest first; returns how many it changed.

    Each page is atomic, the whole is not; no job is visited twice.
    """
    after, done = None, 0
    while ids := await operator.select(wanted, PAGE, after):
        done += sum(1 for each in await verb(operator, ids) if each is not None and each.done)
        after = ids[-1]
    return done
