"""The base of the groups of verbs: their app, and a blocking form of each verb."""

from typing import Any, Protocol

from windlass.blobs.offload import Offload
from windlass.client.handle import Handle
from windlass.client.runtime.portal import Portal
from windlass.client.runtime.store_handle import StoreHandle
from windlass.client.tasks.declarations import Declarations
from windlass.client.tasks.registry import Registry
from windlass.core.jobs.job import NewJob
from windlass.store.contract import Store


class Home(Protocol):
    """What the verbs need of their app."""

    registry: Registry
    _declared: Declarations

    @property
    def queue_names(self) -> tuple[str, ...]: ...

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

    def _portal(self) -> Portal: ...


class Verbs:
    """A group of verbs of an app."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def _portal(self) -> Portal:
        return self._home._portal()
