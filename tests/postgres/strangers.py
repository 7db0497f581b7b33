"""A stranger who locks tables, and what the server tells of our backends meanwhile."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.support.processes import until
from tests.support.servers.address import Address, execute

OURS = "FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, 'windlass')"


@contextmanager
def unread_results(url: str) -> Iterator[None]:
    """A stranger holds the table of jobs, as ALTER TABLE, VACUUM FULL or pg_repack do."""
    with psycopg.connect(url, application_name="a stranger") as other:
        other.execute("LOCK TABLE windlass.jobs IN ACCESS EXCLUSIVE MODE")
        yield


class Census:
    """The most backends that each process had at once, as the server saw them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._count)
        self.most: Counter[str] = Counter()

    def __enter__(self) -> "Census":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _count(self) -> None:
        with psycopg.connect(self._url, autocommit=True, application_name="the test") as watcher:
            while not self._over.wait(0.01):
                self.most |= Counter(name for (name,) in execute(watcher, f"SELECT application_name {OURS}"))


def until_waiting(server: Address, by: int = 1) -> None:
    waiting = f"SELECT count(*) {OURS} AND wait_event_type = 'Lock'"
    until(lambda: server.execute(waiting)[0][0] >= by, "a session waits for the lock")


def until_no_session_waits(server: Address) -> None:
    until(lambda: not server.execute(f"SELECT 1 {OURS} AND state <> 'idle'"), "no backend is busy any more")
