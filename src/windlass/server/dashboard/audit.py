"""The audit: what operators did, for administrators."""

from urllib.parse import quote

import msgspec

from windlass.client.verbs.audit import AuditEntry
from windlass.core.text import cut
from windlass.core.tokens import Scope
from windlass.server.api.audit import AuditList, AuditQuery, list_audit
from windlass.server.dashboard.page import Page, Reply, Shown, View, link

MAX_STATE = 400


async def show_audit(view: View) -> Reply:
    """A page of entries, the newest first."""
    cursor = view.asked("cursor") or None
    found: AuditList = (await view.ask(list_audit, query=AuditQuery(limit=50, cursor=cursor))).body
    context = {
        "entries": [(each, _states(each), _page_of(each)) for each in found.entries],
        "older": link("/audit", cursor=found.next_cursor) if found.next_cursor else None,
        "first": "/audit" if cursor else None,
    }
    return Shown("audit.html", "Audit", context)


def _page_of(entry: AuditEntry) -> str:
    """The page of what an entry is about; "" if it has none."""
    folder = _FOLDERS.get(entry.action.partition(".")[0])
    return f"/{folder}/{quote(entry.target, safe='')}" if folder and entry.target else ""


_FOLDERS = {"job": "jobs", "queue": "queues", "schedule": "schedules", "action": "actions"}


def _states(entry: AuditEntry) -> list[tuple[str, str]]:
    """Before and after, as JSON."""
    found = (("before", entry.before), ("after", entry.after))
    return [(name, cut(msgspec.json.encode(value).decode(), MAX_STATE)) for name, value in found if value is not None]


PAGES = (Page(path="/audit", handler=show_audit, scope=Scope.ADMIN),)
