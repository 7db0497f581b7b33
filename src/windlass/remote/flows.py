"""The verbs of `app.flows`, through the server."""

from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

from windlass.client.handle import CANCELLED
from windlass.client.verbs.filters import check_limit
from windlass.client.verbs.flows import FlowNotFound, Flows
from windlass.core.graphs.tree import FlowTree
from windlass.core.groups.flow import Flow
from windlass.core.groups.ids import named_group_id
from windlass.core.ids import JobRef, check_id, is_part
from windlass.core.names import check_key
from windlass.errors import InvalidName
from windlass.remote.connection import ThroughServer
from windlass.server.api.flows import FlowDetail, FlowList, FlowRecord
from windlass.store.records import Page

PAGE, MAX_PAGES = 500, 20
"""Flows that are searched for a part of an id."""


class RemoteFlows(ThroughServer, Flows):
    """Flows behind a server."""

    async def aget(self, id: JobRef) -> Flow:
        return _flow(await self._connection.get(_path(id), FlowDetail, limit=1))

    async def afind(self, part: str) -> str:
        try:
            return (await self.aget(part)).id
        except FlowNotFound:
            if not is_part(text := part.lower().strip("…")):
                raise
        ids = [id_ async for id_ in self._ids()]
        found = [id_ for id_ in ids if id_.startswith(text)] or [id_ for id_ in ids if id_.endswith(text)]
        if len(found) > 1:
            raise InvalidName("id", f"{len(found)} flows have an id with {text!r}; give more of it")
        if not found:
            raise FlowNotFound(part)
        return found[0]

    async def _ids(self) -> AsyncIterator[str]:
        """The ids of the newest flows."""
        cursor = None
        for _ in range(MAX_PAGES):
            page = await self.alist(limit=PAGE, cursor=cursor)
            for flow in page.items:
                yield flow.id
            if (cursor := page.next_cursor) is None:
                return

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
