"""The contract's role for documents: small JSON records beside the jobs, such as tokens and audit entries."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from windlass.core.moments import Micros

MAX_PRUNED_DOCUMENTS = 1_000
"""Expired documents that one call of `prune` drops."""


class Document(msgspec.Struct, frozen=True):
    """A document of one kind. `version` is 1, and one more after each replacement."""

    id: str
    data: str
    version: int
    created_at: Micros


class DocumentStore(Protocol):
    """Documents by kind and id. An expired one exists only for `trim`, which counts it, until `prune` drops it."""

    async def add(self, kind: str, id: str, data: str, keep: Micros | None = None) -> Document | None:
        """Add a document that expires after `keep`, or never.

        Returns None, or the existing document if the id is taken: then nothing is changed.
        """

    async def replace(self, kind: str, id: str, data: str, version: int, keep: Micros | None = None) -> bool:
        """Replace the data if the document still has this version. With `keep` it expires that long from now."""

    async def get(self, kind: str, ids: Sequence[str]) -> list[Document | None]:
        """Documents by id."""

    async def list(self, kind: str, limit: int, before: str | None = None) -> list[Document]:
        """Documents in descending order of their ids, all below `before`."""

    async def trim(self, kind: str, most: int, limit: int) -> int:
        """Delete the documents with the lowest ids beyond `most`, up to `limit`; returns how many."""

    async def delete(self, kind: str, ids: Sequence[str]) -> int:
        """Delete documents; returns how many existed."""
