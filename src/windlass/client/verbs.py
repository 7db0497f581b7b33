"""What the verbs of people and programs have in common: their app, and a blocking form of each."""

from typing import Any, Protocol

from windlass.blobs.offload import Offload
from windlass.client.berth import Berth
from windlass.client.blocking import Portal
from windlass.client.handle import Handle
from windlass.client.registry import Registry
from windlass.core.job import NewJob
from windlass.store.contract import Store


class Home(Protocol):
    """What the verbs need of their app."""

    registry: Registry

    @property
    def payload_limit(self) -> int: ...

    def offload(self) -> Offload | None: ...

    async def _ready(self) -> Store: ...

    @property
    def _berth(self) -> Berth: ...

    def _returns(self, type_: str) -> Any: ...

    async def _hand_in(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]: ...

    def _portal(self) -> Portal: ...


class Verbs:
    """A group of verbs of an app."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def _portal(self) -> Portal:
        return self._home._portal()
