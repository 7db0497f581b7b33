"""Documents: small JSON records by kind and id, in one hash with an index by member."""

from collections.abc import Sequence

from windlass.core.moments import Micros
from windlass.store.documents import MAX_PRUNED_DOCUMENTS, Document
from windlass.store.redis.connection.access import Access

PORTION = 250
"""Documents that one call of a script reads or drops."""


async def add(access: Access, kind: str, id: str, data: str, keep: Micros | None = None) -> Document | None:
    """Add a document; returns None, or the existing document."""
    reply = await access.call_global("add_document", [keep or 0], _member(kind, id), data.encode())
    return _document(id, reply)


async def replace(access: Access, kind: str, id: str, data: str, version: int, keep: Micros | None = None) -> bool:
    """Replace a document if it has this version; returns whether. `keep`: how long from now; None: as before."""
    request = [version, keep or 0]
    return bool(await access.call_global("replace_document", request, _member(kind, id), data.encode()))


async def get(access: Access, kind: str, ids: Sequence[str]) -> list[Document | None]:
    """Documents by id."""
    found: list[Document | None] = []
    while len(found) < len(ids):
        asked = ids[len(found) : len(found) + PORTION]
        replies = await access.call_global("read_documents", [], *[_member(kind, id_) for id_ in asked])
        found += [_document(id_, reply) for id_, reply in zip(asked, replies, strict=False)]
    return found


async def newest(access: Access, kind: str, limit: int, before: str | None = None) -> list[Document]:
    """Documents in descending order of ids; not one consistent read."""
    found: list[Document] = []
    start = kind.encode() + b"\1" if before is None else _member(kind, before)
    while start and len(found) < limit:
        request = [min(PORTION, limit - len(found))]
        start, *rows = await access.call_global("list_documents", request, start, _member(kind, ""))
        found += [
            Document(member.partition(b"\0")[2].decode(), data.decode(), version, created)
            for member, version, created, data in rows
        ]
    return found


async def delete(access: Access, kind: str, ids: Sequence[str]) -> int:
    """Delete documents; returns how many existed."""
    members = [_member(kind, id_) for id_ in ids]
    portions = [members[at : at + PORTION] for at in range(0, len(members), PORTION)]
    return sum([await access.call_global("drop_documents", [], *portion) for portion in portions])


async def trim(access: Access, kind: str, most: int, limit: int) -> int:
    """Delete the lowest ids beyond `most`; returns how many."""
    bounds = _member(kind, ""), kind.encode() + b"\1"
    return int(await access.call_global("trim_documents", (most, min(limit, PORTION)), *bounds))


async def prune_documents(access: Access) -> None:
    """Drop up to MAX_PRUNED_DOCUMENTS expired documents."""
    for _ in range(MAX_PRUNED_DOCUMENTS // PORTION):
        if await access.call_global("prune_documents", [PORTION]) < PORTION:
            return


def _member(kind: str, id_: str) -> bytes:
    return f"{kind}\0{id_}".encode()


def _document(id_: str, reply: list[bytes]) -> Document | None:
    return Document(id_, reply[2].decode(), int(reply[0]), int(reply[1])) if reply else None
