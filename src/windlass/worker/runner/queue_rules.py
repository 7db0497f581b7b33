"""What the queues say about retries, as a runner knows it: read again every second."""

from windlass.core.events import Emit
from windlass.core.flow.queue import QueueRules, QueueSettings, merge
from windlass.core.jobs.retry import StoredPolicy
from windlass.errors import StoreUnavailable
from windlass.store.contract import QueueStore
from windlass.worker.store_retry import FailureReports, describe_error

_NO_RULES = merge(QueueSettings(), QueueSettings())


class QueueRetryRules:
    """The rules of all queues; if they cannot be read, those from before."""

    def __init__(self, store: QueueStore, emit: Emit) -> None:
        self._store = store
        self._failures = FailureReports(emit)
        self._rules: dict[str, QueueRules] = {}

    async def refresh(self) -> None:
        """Read them again."""
        try:
            self._rules = {queue.name: queue.rules for queue in await self._store.list()}
            self._failures.succeeded("reading queues")
        except StoreUnavailable:
            pass  # claims tell of it
        except Exception as error:
            # Any error: no handler is to be interrupted because of it.
            self._failures.failed("reading queues", describe_error(error))

    def retry(self, queue: str) -> StoredPolicy:
        """How jobs of this queue are retried, if their tasks say nothing."""
        return self._rules.get(queue, _NO_RULES).retry
