"""The verb of `app.audit`, through the server."""

from typing import Any

from windlass.client.verbs.audit import AuditEntry
from windlass.client.verbs.audit_log import Audit
from windlass.client.verbs.filters import check_limit
from windlass.remote.connection import Connection
from windlass.server.api.audit import AuditList
from windlass.store.records import Page


class RemoteAudit(Audit):
    """The audit behind a server; the token needs the scope `admin`."""

    def __init__(self, home: Any, connection: Connection) -> None:
        super().__init__(home)
        self._connection = connection

    async def alist(self, limit: int = 50, cursor: str | None = None) -> Page[AuditEntry]:
        check_limit(limit)
        page = await self._connection.get("/audit", AuditList, limit=limit, cursor=cursor)
        return Page(tuple(page.entries), page.next_cursor)
