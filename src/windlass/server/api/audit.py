"""The audit, for administrators."""

import msgspec

from windlass.client.verbs.audit import AuditEntry
from windlass.core.hidden import HiddenFields, conceal
from windlass.core.tokens import Scope
from windlass.server.decode import make_cursor, read_cursor
from windlass.server.operation import Answer, Call, reads


class AuditQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page."""

    limit: int = 50
    cursor: str | None = None


class AuditList(msgspec.Struct):
    """The newest entries first."""

    entries: list[AuditEntry]
    next_cursor: str | None


async def list_audit(call: Call) -> Answer:
    """What operators did; empty for a token that is limited to queues or types."""
    if call.caller.rights.is_limited:
        return Answer(AuditList([], None))
    page = await call.app.audit.alist(call.query.limit, read_cursor(call.query.cursor, "audit"))
    entries = [_concealed(each, call.caller.policy.hidden) for each in page.items]
    return Answer(AuditList(entries, make_cursor(page.next_cursor, "audit")))


def _concealed(entry: AuditEntry, hidden: HiddenFields) -> AuditEntry:
    before, after = conceal(entry.before, hidden), conceal(entry.after, hidden)
    return msgspec.structs.replace(entry, before=before, after=after)


OPERATIONS = (reads("/audit", list_audit, "What operators did", AuditList, AuditQuery, scope=Scope.ADMIN),)
