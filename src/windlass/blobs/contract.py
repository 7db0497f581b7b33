"""The contract of a blob store: a few blocking calls, which whoever has an event loop makes in a thread.

A blob belongs to a job and is written once, under a name that no other put uses: nothing is ever overwritten, so a
reader finds the whole of it or nothing.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from windlass.core.ids import JobId


class BlobFailed(Exception):
    """A blob could not be written, read or removed; the text says why and, if it can be told, what to do."""


class BlobKey(msgspec.Struct, frozen=True, order=True):
    """Which blob of which job."""

    job: JobId
    name: str


class KeptBlob(msgspec.Struct, frozen=True):
    """A blob as it is found by looking for those that nobody needs; `age` is in seconds."""

    key: BlobKey
    age: float


class BlobPage(msgspec.Struct, frozen=True):
    """Some of the blobs, and where to go on; None: that was the last."""

    blobs: tuple[KeptBlob, ...]
    after: str | None


class BlobStore(Protocol):
    """A place for blobs. Every call raises BlobFailed; it says nothing about the others."""

    @property
    def address(self) -> str:
        """Where it is, absolute and without secrets."""

    def put(self, key: BlobKey, data: bytes) -> None:
        """Keep the bytes: when this returns they survive a power cut."""

    def get(self, key: BlobKey, most: int) -> bytes:
        """The bytes, but no more than one beyond `most`."""

    def remove(self, keys: Sequence[BlobKey]) -> None:
        """Remove single blobs; those that are not there are no trouble."""

    def holding(self, jobs: Sequence[JobId]) -> list[JobId]:
        """Those of these jobs for which anything is kept."""

    def drop(self, jobs: Sequence[JobId]) -> None:
        """Remove all that is kept for these jobs; most of them have nothing here."""

    def page(self, after: str | None, limit: int) -> BlobPage:
        """About `limit` blobs in an order of the store's own, also what a killed writer left behind."""
