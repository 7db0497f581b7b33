"""What the verbs of people and programs have in common: their app, and a blocking form of each."""

from typing import Protocol

from windlass.blobs.offload import Offload
from windlass.client.blocking import Portal
from windlass.client.registry import Registry
from windlass.store.contract import Store


class Home(Protocol):
    """What the verbs need of their app."""

    registry: Registry

    @property
    def payload_limit(self) -> int: ...

    def offload(self) -> Offload | None: ...

    async def _ready(self) -> Store: ...

    def _portal(self) -> Portal: ...


class Verbs:
    """A group of verbs of an app."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def _portal(self) -> Portal:
        return self._home._portal()
