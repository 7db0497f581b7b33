"""The state that the parts of a supervisor share: the worker's id, its runners, its store."""

from collections.abc import Set

from windlass.blobs.offload import Offload
from windlass.blobs.open import open_blobs
from windlass.core.events import Emit
from windlass.core.jobs.retry import DEFAULT_POLICY, StoredPolicy
from windlass.core.webhooks.delivery import WEBHOOK_QUEUE
from windlass.store.contract import Store
from windlass.worker.channel import Hello
from windlass.worker.config import WorkerConfig
from windlass.worker.supervisor.runner_process import Runner


class SupervisorState:
    """The state of one worker. Its store is opened when the first runner reports its address."""

    def __init__(self, id_: str, config: WorkerConfig, emit: Emit, runners: Set[Runner]) -> None:
        self.id = id_
        self.config = config
        self.emit = emit
        self.runners = runners
        """The live runners; the supervisor adds and removes them."""
        self._opened: tuple[Store, Hello] | None = None
        self.has_webhooks = False
        """Whether the store has had a webhook; then runners serve their queue too."""

    def set_store(self, store: Store, hello: Hello) -> None:
        """Open the store that the first runner reported."""
        self._opened = (store, hello)

    @property
    def has_store(self) -> bool:
        """Whether any runner has said hello."""
        return self._opened is not None

    @property
    def store(self) -> Store:
        """The store; only after the first hello."""
        assert self._opened is not None
        return self._opened[0]

    @property
    def types(self) -> tuple[str, ...]:
        """The types that the app knows."""
        assert self._opened is not None
        return self._opened[1].types

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The parameters of each type."""
        assert self._opened is not None
        return self._opened[1].parameters

    @property
    def blobs(self) -> Offload | None:
        """The blob store for large payloads and results, if any."""
        assert self._opened is not None
        address = self._opened[1].blobs
        return None if address is None else open_blobs(address)

    def retry(self, type_: str) -> StoredPolicy:
        """The retry policy of a type, as far as it needs no code of the app."""
        assert self._opened is not None
        return self._opened[1].retries.get(type_, DEFAULT_POLICY)

    @property
    def queues(self) -> tuple[str, ...]:
        """The served queues: those given, else all that the app names, and the one of webhooks."""
        if self.config.queues:
            return tuple(self.config.queues)
        return (*self.app_queues, WEBHOOK_QUEUE) if self.has_webhooks else self.app_queues

    @property
    def app_queues(self) -> tuple[str, ...]:
        """The queues that the app names."""
        assert self._opened is not None
        return self._opened[1].queues

    @property
    def serving(self) -> dict[str, Runner]:
        """The runners that have a lease, by id."""
        return {child.runner: child for child in self.runners if child.runner is not None}
