"""The base of the groups of verbs: their app, and a blocking form of each verb."""

import logging
from typing import Any, Protocol

from windlass.blobs.offload import Offload
from windlass.client.handle import Handle
from windlass.client.runtime.portal import Portal
from windlass.client.runtime.store_handle import StoreHandle
from windlass.client.tasks.declarations import Declarations
from windlass.client.tasks.registry import Registry
from windlass.client.verbs.audit import Actor, record_action
from windlass.core.jobs.job import NewJob
from windlass.core.webhooks.addresses import Network
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store

_log = logging.getLogger("windlass.audit")


class Home(Protocol):
    """What the verbs need of their app."""

    registry: Registry
    actor: Actor
    _declared: Declarations

    @property
    def queue_names(self) -> tuple[str, ...]: ...

    @property
    def payload_limit(self) -> int: ...

    def offload(self) -> Offload | None: ...

    @property
    def webhook_networks(self) -> tuple[Network, ...]: ...

    async def _ready(self) -> Store: ...

    @property
    def _store_handle(self) -> StoreHandle: ...

    def _returns(self, type_: str) -> Any: ...

    async def _enqueue_jobs(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]: ...

    def _with_creation(self, job: NewJob) -> NewJob: ...

    def _handle(self, id_: str, existing: bool, returns: Any) -> Handle[Any]: ...

    def _portal(self) -> Portal: ...


class Verbs:
    """A group of verbs of an app."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def _portal(self) -> Portal:
        return self._home._portal()

    async def _audit(self, action: str, target: str, *, before: Any = None, after: Any = None) -> None:
        """Record an operator's completed action; a failure to record it is logged, not raised."""
        store = await self._home._ready()
        try:
            await record_action(store.documents, self._home.actor, action, target, before, after)
        except StoreUnavailable as error:
            _log.error("%s of %s was done, but is not in the audit: %s", action, target, error)
