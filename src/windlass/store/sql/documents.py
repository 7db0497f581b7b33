"""Documents: small JSON records by kind and id."""

from collections.abc import Sequence

from windlass.core.moments import Micros
from windlass.store.documents import Document
from windlass.store.sql.session import Session, SharedRole, reading, writing

PRUNE_DOCUMENTS = "prune_documents"
"""The name of the statement that deletes expired documents."""


async def add(db: Session, kind: str, id: str, data: str, keep: Micros | None = None) -> Document | None:
    """Add a document; returns None, or the existing one."""
    while True:
        if await db.run("add_document", {"kind": kind, "id": id, "data": data, "keep": keep}):
            return None
        if (existing := (await get(db, kind, [id]))[0]) is not None:
            return existing  # otherwise it was deleted between the two statements: try again


async def replace(db: Session, kind: str, id: str, data: str, version: int, keep: Micros | None = None) -> bool:
    """Replace the data; returns whether the document had this version."""
    fields = {"kind": kind, "id": id, "data": data, "version": version, "keep": keep}
    return bool(await db.run("replace_document", fields))


async def get(db: Session, kind: str, ids: Sequence[str]) -> list[Document | None]:
    """Documents by id."""
    found = {row[0]: Document(*row) for row in await db.rows("documents", {"kind": kind, "ids": list(ids)})}
    return [found.get(id_) for id_ in ids]


async def newest(db: Session, kind: str, limit: int, before: str | None = None) -> list[Document]:
    """Documents with an id below `before`, in descending order of their ids."""
    rows = await db.rows("newest_documents", {"kind": kind, "limit": limit, "before": before})
    return [Document(*row) for row in rows]


async def delete(db: Session, kind: str, ids: Sequence[str]) -> int:
    """Delete documents; returns how many existed."""
    return await db.run("delete_documents", {"kind": kind, "ids": list(ids)})


async def trim(db: Session, kind: str, most: int, limit: int) -> int:
    """Delete the documents with the lowest ids if there are more than `most`, `limit` at a time; returns how many."""
    return await db.run("trim_documents", {"kind": kind, "most": most, "limit": limit})


class DocumentVerbs(SharedRole):
    """Small JSON records."""

    add = writing(add)
    replace = writing(replace)
    delete = writing(delete)
    trim = writing(trim)
    get = reading(get)
    list = reading(newest)
