"""`App.worker`: the only module of the client that uses the worker."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from windlass.core.moments import Duration

if TYPE_CHECKING:
    from windlass.client.app import App


def worker(
    self: "App",
    *,
    concurrency: int = 10,
    queues: Iterable[str] | None = None,
    lease: Duration = 30,
    drain: Duration = 20,
) -> AbstractAsyncContextManager[None]:
    """Run jobs in this process, on this event loop: `async with app.worker(concurrency=10): …`

    For the lifespan of a web application and for notebooks; its promises are weaker than those of `windlass worker`
    (docs/guides/embedded-worker.md). The block begins when it claims jobs, or raises StoreUnavailable if
    the store does not answer within the `deadline` of the app (5 s; None waits). At its end running jobs get the
    `drain` time, and the rest is requeued. `queues` are names, `"images:4"` for at most 4 slots; by default all
    that the app names. It installs no signal handlers.
    """
    # Here, so that only a process that runs one loads the worker.
    from windlass.worker.embedded import embedded_worker

    return embedded_worker(self, concurrency, queues, lease, drain)
