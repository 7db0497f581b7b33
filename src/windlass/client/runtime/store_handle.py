"""The app's handle on its store: the address, and the store once this process has opened it."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet, finalize

import msgspec

from windlass.client.runtime.process_id import this_process
from windlass.client.runtime.release import Opened, release_with
from windlass.client.runtime.result_waiter import ResultWaiter
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.observe.history import record_calls
from windlass.observe.process import is_counting, measure_store
from windlass.store.clock import ManualClock
from windlass.store.contract import Store
from windlass.store.drive import running_loop
from windlass.store.open import MEMORY_ADDRESS, open_memory, open_store


class StoreHandle:
    """An address and the store opened there; a sandbox gives an app another handle for its time."""

    def __init__(
        self,
        locate: Callable[[], str],
        opener: Callable[[str], Store],
        clock: ManualClock | None = None,
        *,
        server_limit: int | None = None,
    ) -> None:
        """`locate` returns the address; it may read a file, so it is called only when needed."""
        self._locate = locate
        self.server_limit = server_limit
        """With a REST server: the largest payload, in bytes, that is sent to it. The server has its own limit."""
        self.clock = clock
        """Only in tests; otherwise the machine's time is used."""
        self.written: int | None = None
        """The version of the declarations that this process has written."""
        self.opened: tuple[int, Store] | None = None
        """The process that opened it, and the store."""
        self._opener = opener
        self._newest: JobId = ""
        self._borrowed = False
        self._counting = False
        """Whether metrics were wanted when the store was last looked up."""
        self._left_behind: list[Store] = []
        self._guard, self._guard_of = threading.RLock(), os.getpid()
        self._waiters: dict[asyncio.AbstractEventLoop, ResultWaiter] = {}
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        """The event loops on which the store was used."""
        self._release: finalize[..., Any] | None = None
        """Closes the store when this object is dropped without `close()`."""

    @property
    def address(self) -> str:
        """The address of the store. Raises ConfigError."""
        return self._locate()

    def connect(self) -> Store:
        """The store, opened at the first call."""
        # A connection must never be shared over a fork: a child opens its own and does not touch its parent's.
        opened, loop = self.opened, running_loop()
        known = opened is not None and opened[0] == os.getpid() and self._counting == is_counting()
        if opened is not None and known and (loop is None or loop in self._loops):
            return opened[1]
        with self._own_guard():
            if self.opened is None or self.opened[0] != os.getpid():
                if self.opened is not None:
                    # Kept, so that it is not closed: it belongs to the parent.
                    self._left_behind.append(self.opened[1])
                self._borrowed = False
                self.opened = self._open()
            if loop is not None:
                self._loops.add(loop)
            self._counting = is_counting()
            if not self._borrowed:
                self.opened = (self.opened[0], measure_store(self.opened[1]))
            return self.opened[1]

    def _open(self) -> tuple[int, Store]:
        store, pid = record_calls(self._opener(self.address), "client"), os.getpid()
        self.written, self._loops = None, WeakSet()
        self._release = release_with(self, Opened(pid, store, self._waiters, self._loops))
        return pid, store

    def result_waiter(self, store: Store) -> ResultWaiter:
        """The result waiter of this event loop."""
        with self._own_guard():
            for loop in [each for each, there in self._waiters.items() if there.over]:
                del self._waiters[loop]
            loop = asyncio.get_running_loop()
            found = self._waiters.get(loop)
            if found is None or found.store is not store:
                found = self._waiters[loop] = ResultWaiter(store)
            return found

    def _own_guard(self) -> threading.RLock:
        # A lock that another thread held at a fork stays locked in the child: the child needs a new one.
        if self._guard_of != os.getpid():
            self._guard, self._guard_of = threading.RLock(), os.getpid()
        return self._guard

    def adopt(self, store: Store) -> None:
        """Use a store that is open already, and that its owner closes."""
        self._borrowed = True
        self.opened = (os.getpid(), store)
        self.written = None

    def mark_repeated(self, jobs: list[NewJob]) -> list[NewJob]:
        """The jobs, without `fresh` on those that may have been enqueued before.

        Ids grow within a process, so an id of this process that is larger than all enqueued ones is new. Ids that
        callers give are never `fresh`.
        """
        here = this_process()
        with self._own_guard():  # another thread must not put an older id back
            before = self._newest
            if len(jobs) == 1 and jobs[0].fresh == here and jobs[0].id > before:
                self._newest = jobs[0].id
                return jobs
            made = [job.id for job in jobs if job.fresh == here]
            self._newest = max([before, *made])
        if len(set(made)) == len(jobs) and min(made, default="") > before:
            return jobs
        return [msgspec.structs.replace(job, fresh="") if job.fresh else job for job in jobs]

    async def close(self) -> None:
        """Close the store if this process opened it; the next call opens it again."""
        if self.opened is not None and self.opened[0] == os.getpid():
            store, self.opened, self.written = self.opened[1], None, None
            if self._release is not None:
                self._release.detach()
            for waiter in [each for each in self._waiters.values() if not each.over]:
                await waiter.close()
            if not self._borrowed:
                await store.close()


def production_handle(locate: Callable[[], str], deadline: float | None) -> StoreHandle:
    """A store handle for production."""
    return StoreHandle(locate, lambda address: open_store(address, deadline=deadline))


def memory_handle(clock: ManualClock | None = None) -> StoreHandle:
    """A store handle for tests: a store in the memory of this process, with a clock that the test moves."""
    turned = clock or ManualClock()
    return StoreHandle(lambda: MEMORY_ADDRESS, lambda _: open_memory(clock=turned), turned)
