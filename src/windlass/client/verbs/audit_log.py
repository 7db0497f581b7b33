"""app.audit: what operators did; each verb also with the prefix `a`."""

from windlass.client.runtime.portal import blocking
from windlass.client.verbs.audit import AuditEntry, read_entries
from windlass.client.verbs.filters import check_limit
from windlass.client.verbs.group import Verbs
from windlass.store.records import Page


class Audit(Verbs):
    """Read what operators did."""

    async def alist(self, limit: int = 50, cursor: str | None = None) -> Page[AuditEntry]:
        """Actions of operators, the newest first; `next_cursor` continues the list."""
        check_limit(limit)
        return await read_entries((await self._home._ready()).documents, limit, cursor)

    list = blocking(alist)
