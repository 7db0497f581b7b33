"""Makes an app use a server instead of the store that its code names: in the processes of a worker."""

from typing import Any

from windlass.client.app import App
from windlass.client.handle import Handle
from windlass.client.runtime.store_handle import StoreHandle
from windlass.remote.app import RemoteHandle
from windlass.remote.audit import RemoteAudit
from windlass.remote.connection import Connection
from windlass.remote.flows import RemoteFlows
from windlass.remote.schedules import RemoteSchedules
from windlass.remote.verbs import RemoteJobs, RemoteQueues, RemoteStats, RemoteWorkers
from windlass.remote.webhooks import RemoteWebhooks
from windlass.remote.work.store import RestStore
from windlass.server.api.enqueue import MAX_BULK_BODY
from windlass.store.contract import Store


def redirect(app: App, server: str, token: str | None = None) -> None:
    """From now on the app enqueues and reads through the server, as far as the token allows."""
    connection = Connection(server, token or None, app._deadline)

    def opened(address: str) -> Store:
        return RestStore(connection)

    def handle(id_: str, existing: bool, returns: Any) -> Handle[Any]:
        return RemoteHandle(app, id_, existing, returns)

    app._store_handle = StoreHandle(lambda: connection.server, opened, server_limit=MAX_BULK_BODY)
    app._handle = handle  # type: ignore[method-assign]
    app.jobs = RemoteJobs(app, connection)
    app.flows = RemoteFlows(app, connection)
    app.queues = RemoteQueues(app, connection)
    app.schedules = RemoteSchedules(app, connection)
    app.workers = RemoteWorkers(app, connection)
    app.stats = RemoteStats(app, connection)
    app.webhooks = RemoteWebhooks(app, connection)
    app.audit = RemoteAudit(app, connection)
