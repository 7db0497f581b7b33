"""Offloading: large texts go into a blob store and leave a reference, from which the same text is fetched."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from windlass.blobs.contract import BlobFailed, BlobKey, BlobStore
from windlass.core.ids import JobId
from windlass.core.reference import Kind, Reference, parse_reference, refer
from windlass.errors import BlobUnavailable
from windlass.native import pool

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 4
"""Blobs of one call that are read or written at the same time."""


class Offload:
    """Writes and reads blobs. The calls block: see `off_loop`."""

    def __init__(self, store: BlobStore) -> None:
        self.store = store

    @property
    def address(self) -> str:
        return self.store.address

    def keep(self, job: JobId, kind: Kind, text: str) -> str:
        """Store a text and return its reference. Raises BlobUnavailable."""
        data = text.encode()
        reference = refer(kind, os.urandom(8), data)
        try:
            self.store.put(BlobKey(job, reference.name), data)
        except BlobFailed as error:
            raise BlobUnavailable(job, f"its {kind} of {len(data):,} bytes cannot be kept: {error}") from error
        return reference.text

    def fetch(self, job: JobId, reference: Reference) -> str:
        """The stored text, complete and unaltered. Raises BlobUnavailable."""
        try:
            data = self.store.get(BlobKey(job, reference.name), reference.size)
        except BlobFailed as error:
            raise unavailable(job, reference, str(error)) from error
        if (problem := reference.problem(data)) is not None:
            raise unavailable(job, reference, problem)
        return data.decode()

    def take_back(self, job: JobId, stored: str) -> None:
        """Remove an unused blob; best effort, since the sweep finds the rest."""
        reference = parse_reference(stored)
        try:
            if reference is not None:
                self.store.remove([BlobKey(job, reference.name)])
        except BlobFailed:
            return


def unavailable(job: JobId, reference: Reference, problem: str) -> BlobUnavailable:
    """The error for a blob that does not match its reference."""
    expected = f"expected {reference.size:,} bytes with sha256 {reference.sha256}"
    return BlobUnavailable(job, f"its {reference.kind} cannot be fetched: {problem}; {expected}")


async def off_loop(call: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """A blocking call for each item, a few at once, off the event loop; without a loop it blocks.

    All calls end before the first error is raised, so that written blobs can be removed. The threads are for this
    call only: handlers may use all of the loop's, and threads do not survive a fork.
    """
    if not _has_loop() and len(items) == 1:
        return [call(items[0])]
    threads = pool(min(AT_ONCE, max(1, len(items))), "windlass-blobs")
    futures = [_submit(threads, call, item) for item in items]
    threads.shutdown(wait=False)
    if _has_loop():
        results = await asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=True)
    else:
        results = [future.exception() or future.result() for future in futures]
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


def _submit(threads: ThreadPoolExecutor, call: Callable[[T], R], item: T) -> Future[R]:
    """If no thread can be started, the call runs here."""
    try:
        return threads.submit(call, item)
    except RuntimeError:
        done: Future[R] = Future()
        try:
            done.set_result(call(item))
        except BaseException as error:
            done.set_exception(error)
        return done


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
