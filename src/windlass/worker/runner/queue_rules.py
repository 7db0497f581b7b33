"""The rules of queues in the store, which a runner reads every second."""

from collections.abc import Iterable

from windlass.core.events import Emit
from windlass.core.flow.queue import QueueRules, QueueSettings, merge
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.webhooks.delivery import WEBHOOK_QUEUE
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.worker.config import WorkerConfig
from windlass.worker.store_retry import FailureReports, describe_error

_NO_RULES = merge(QueueSettings(), QueueSettings())


class QueueRetryRules:
    """The rules of all queues and the queues that the runner serves; the last read ones while reading fails."""

    def __init__(self, store: Store, config: WorkerConfig, named: Iterable[str], emit: Emit) -> None:
        self._store = store
        self._failures = FailureReports(emit)
        self._rules: dict[str, QueueRules] = {}
        self._webhook_slots = 0 if config.queues else max(1, config.concurrency // 2)
        """Slots for deliveries, which may wait long for their receivers: the app's own jobs keep half."""
        self.served: dict[str, int | None] = dict(config.queues) or dict.fromkeys(named)
        """Queue → max slots. The queue of webhooks is added when there is one, unless `--queues`
        names the queues to serve.
        """

    async def refresh(self) -> None:
        """Read them again."""
        try:
            self._rules = {queue.name: queue.rules for queue in await self._store.queues.list()}
            self._failures.succeeded("reading queues")
        except StoreUnavailable:
            pass  # claims report it
        except Exception as error:
            # Any error: it must not interrupt handlers.
            self._failures.failed("reading queues", describe_error(error))
        if self._webhook_slots and WEBHOOK_QUEUE in self._rules and WEBHOOK_QUEUE not in self.served:
            self.served[WEBHOOK_QUEUE] = self._webhook_slots
            self._store.signals.subscribe(tuple(self.served))

    def retry(self, queue: str) -> StoredPolicy:
        """The retry policy of this queue, for tasks without one."""
        return self._rules.get(queue, _NO_RULES).retry
