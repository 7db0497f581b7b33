"""What the context of an attempt needs: the app, and the connection to the runner."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from windlass.blobs.offload import Offload
from windlass.client.handle import Handle, JobVerbs
from windlass.client.runtime.portal import Portal
from windlass.client.runtime.store_handle import StoreHandle
from windlass.client.tasks.hooks import State
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, Job, NewJob, Progress
from windlass.core.moments import Micros
from windlass.core.webhooks.addresses import Network
from windlass.store.contract import Store


class Home(Protocol):
    """The app, as a handler needs it."""

    @property
    def state(self) -> State: ...

    @property
    def payload_limit(self) -> int: ...

    @property
    def result_limit(self) -> int: ...

    def offload(self) -> Offload | None: ...

    @property
    def webhook_networks(self) -> tuple[Network, ...]: ...

    @property
    def jobs(self) -> JobVerbs: ...

    async def _ready(self) -> Store: ...

    async def _stored(self, ids: Sequence[JobId], connection: object = None) -> list[Job | None]: ...

    @property
    def _store_handle(self) -> StoreHandle: ...

    def _portal(self) -> Portal: ...

    def _returns(self, type_: str) -> Any: ...

    async def _enqueue_jobs(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]: ...


class Link(Protocol):
    """The handler's connection to its runner."""

    @property
    def claimed(self) -> Claimed: ...

    @property
    def started_after(self) -> Micros | None: ...

    @property
    def is_async(self) -> bool: ...

    @property
    def home(self) -> Home: ...

    @property
    def dead_on(self) -> tuple[type[BaseException], ...]: ...

    @property
    def cancelled(self) -> bool: ...

    unawaited: str | None
    """The verb that the handler called and never awaited."""
    trace: tuple[str, str] | None
    """The ids of the attempt's trace and span."""

    @property
    def added(self) -> Counter[str]:
        """Jobs that the attempt added to its group, with the next number for equal ones."""

    def job(self) -> Job: ...

    def progress(self, progress: Progress) -> None: ...

    def log(self, text: str) -> None: ...
