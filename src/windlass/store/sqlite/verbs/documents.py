"""Documents: small JSON records by kind and id."""

from collections.abc import Sequence

from windlass.core.moments import Micros
from windlass.store.documents import Document
from windlass.store.sqlite.db import Db, array


def add(db: Db, kind: str, id: str, data: str, keep: Micros | None = None) -> Document | None:
    """None if it was added, else the existing document."""
    values = {"kind": kind, "id": id, "data": data, "keep": keep, "now": db.now}
    return None if db.run("add_document", values) else get(db, kind, [id])[0]


def replace(db: Db, kind: str, id: str, data: str, version: int) -> bool:
    """Whether the document had this version."""
    values = {"kind": kind, "id": id, "data": data, "version": version, "now": db.now}
    return bool(db.run("replace_document", values))


def get(db: Db, kind: str, ids: Sequence[str]) -> list[Document | None]:
    """Documents by id."""
    rows = db.rows("documents", {"kind": kind, "ids": array(ids), "now": db.now})
    found = {row[0]: Document(*row) for row in rows}
    return [found.get(id_) for id_ in ids]


def newest(db: Db, kind: str, limit: int, before: str | None = None) -> list[Document]:
    """In descending order of their ids."""
    rows = db.rows("newest_documents", {"kind": kind, "limit": limit, "before": before, "now": db.now})
    return [Document(*row) for row in rows]


def delete(db: Db, kind: str, ids: Sequence[str]) -> int:
    """How many there were."""
    return db.run("delete_documents", {"kind": kind, "ids": array(ids), "now": db.now})


def trim(db: Db, kind: str, most: int, limit: int) -> int:
    """How many of the lowest ids were deleted."""
    return db.run("trim_documents", {"kind": kind, "most": most, "limit": limit})
