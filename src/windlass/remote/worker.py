"""A worker for machines without access to the database: the only import of `worker` in `remote`."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from windlass.client.app import App
from windlass.core.moments import Duration
from windlass.remote.connection import Connection


class Worker(AbstractAsyncContextManager[None]):
    """Run jobs of a REST server in this process: `async with windlass.remote.Worker(app, server=…, token=…): …`

    It runs the tasks of `app`, whatever store that names: inside the block, the app enqueues and reads through the
    server. Server and token default to WINDLASS_SERVER and WINDLASS_TOKEN; the token needs the scope
    `work`, and `enqueue` if handlers enqueue. The server decides how long the lease is. Otherwise it is an embedded
    worker (docs/guides/embedded-worker.md); `windlass worker APP --server URL` has a supervisor.
    """

    def __init__(
        self,
        app: App,
        server: str | None = None,
        *,
        token: str | None = None,
        concurrency: int = 10,
        queues: Iterable[str] | None = None,
        drain: Duration = 20,
    ) -> None:
        # Imported here, so that only a process that runs a worker loads it.
        from windlass.worker.embedded import embedded_worker

        own = getattr(app, "_connection", None)
        given = own if own is not None and server is None else Connection(server, token, None)
        self._worker = embedded_worker(app, concurrency, queues, 30, drain, server=given.server, token=given.token)

    async def __aenter__(self) -> None:
        """Begin to claim jobs; raises StoreUnavailable, TokenRefused or ConfigError."""
        await self._worker.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drain, and end the lease."""
        await self._worker.__aexit__(kind, error, trace)
