"""The verbs of `app.flows`, through the server."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from windlass.client.handle import CANCELLED
from windlass.client.verbs.filters import check_limit
from windlass.client.verbs.flows import Flows
from windlass.core.graphs.tree import FlowTree
from windlass.core.groups.flow import Flow
from windlass.core.groups.ids import named_group_id
from windlass.core.ids import JobRef, check_id
from windlass.core.names import check_key
from windlass.remote.connection import ThroughServer
from windlass.server.api.flows import FlowDetail, FlowList, FlowRecord
from windlass.store.records import Page


class RemoteFlows(ThroughServer, Flows):
    """Flows behind a server."""

    async def aget(self, id: JobRef) -> Flow:
        return _flow(await self._connection.get(_path(id), FlowDetail, limit=1))

    async def atree(self, id: JobRef, *, limit: int = 1000) -> FlowTree:
        found = await self._connection.get(_path(id), FlowDetail, limit=limit)
        return FlowTree(id=found.id, name=found.name, status=found.status, nodes=found.nodes, left_out=found.left_out)

    async def alist(self, *, limit: int = 50, cursor: str | None = None, queues: Sequence[str] = ()) -> Page[Flow]:
        check_limit(limit)
        page = await self._connection.get("/flows", FlowList, limit=limit, cursor=cursor)
        return Page(tuple(map(_flow, page.flows)), page.next_cursor)

    async def acancel(self, id: JobRef, reason: str = CANCELLED) -> Flow:
        body = {"reason": reason}
        return _flow(await self._connection.call("POST", f"{_path(id)}/cancel", FlowRecord, body=body))

    async def aretry(self, id: JobRef) -> Flow:
        return _flow(await self._connection.call("POST", f"{_path(id)}/retry", FlowRecord))


def _path(id: JobRef) -> str:
    text = check_key(id, "id") if isinstance(id, str) else check_id(id)
    if "/" in text or text in (".", ".."):  # would be parts of the path, also when quoted
        text = named_group_id(text)
    return f"/flows/{quote(text, safe='')}"


def _flow(record: FlowRecord) -> Flow:
    """The flow of a record; numbers that a limited token does not see are 0."""
    given: dict[str, Any] = {name: getattr(record, name) for name in Flow.__struct_fields__ if hasattr(record, name)}
    return Flow(**{**given, **{name: given[name] or 0 for name in _NUMBERS}})


_NUMBERS = ("size", "completed", "dead", "cancelled", "skipped")
