"""The contract of a blob store: a few blocking calls, to be made in a thread.

A blob belongs to a job and is written once, under a name that no other blob uses: nothing is overwritten, so a read
returns all of it or nothing.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from windlass.core.ids import JobId


class BlobFailed(Exception):
    """A blob could not be written, read or removed; the text says why and, if known, what to do."""


class BlobKey(msgspec.Struct, frozen=True, order=True):
    """A blob of a job."""

    job: JobId
    name: str


class KeptBlob(msgspec.Struct, frozen=True):
    """A blob found by a sweep; `age` is in seconds."""

    key: BlobKey
    age: float


class BlobPage(msgspec.Struct, frozen=True):
    """Some of the blobs, and where to continue; None: the last page."""

    blobs: tuple[KeptBlob, ...]
    after: str | None


class BlobStore(Protocol):
    """Every call may raise BlobFailed."""

    @property
    def address(self) -> str:
        """The absolute address, without secrets."""

    def put(self, key: BlobKey, data: bytes) -> None:
        """Store the bytes durably."""

    def get(self, key: BlobKey, most: int) -> bytes:
        """The first `most` + 1 bytes, so that the caller notices a longer blob."""

    def remove(self, keys: Sequence[BlobKey]) -> None:
        """Remove single blobs; missing ones are ignored."""

    def holding(self, jobs: Sequence[JobId]) -> list[JobId]:
        """The jobs among these that have blobs."""

    def drop(self, jobs: Sequence[JobId]) -> None:
        """Remove all blobs of these jobs, most of which have none."""

    def page(self, after: str | None, limit: int) -> BlobPage:
        """About `limit` blobs in the store's order, including unfinished files of killed writers."""
