"""A folder with the mill in it, processes that keep a history, and the audit of it all."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec
import redis

from tests.support.checker import Report, audit, read
from tests.support.inside import Postgres
from tests.support.processes import Process, Processes
from windlass import App
from windlass.observe.history import HISTORY_FOLDER, History
from windlass.store.open import open_store
from windlass.store.records import Rescued
from windlass.store.redis.connection.address import parse_address
from windlass.store.redis.records.keys import KeyMap

HERE = Path(__file__).parent


class Yard:
    """Where jobs are enqueued, worked on, interfered with, and recounted."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        url: str | None = None,
        lease: str = "1s",
        tables: str | None = None,
    ) -> None:
        """On a file in the folder, or at `url`; `tables` is the address for a look into its tables, if not `url`."""
        self.folder = folder
        self._tables = tables
        self._lease = lease
        self.lease = float(lease.removesuffix("s"))
        """Seconds."""
        self.database = folder / "jobs.db"
        self.histories = folder / "history"
        self.histories.mkdir()
        for name in ("mill.py", "enqueue_all.py", "produce.py"):
            shutil.copy(HERE / name, folder)
        url = url or f"sqlite:///{self.database}"
        self.app = App(url, deadline=30)
        self.history = History(self.histories, "nemesis")
        self.processes = Processes(
            folder, {"WINDLASS_STORE": url, HISTORY_FOLDER: str(self.histories), **(environment or {})}
        )

    def worker(self, *options: str, failpoints: str = "") -> Process:
        command = ("-m", "windlass", "worker", "mill:app", "--lease", self._lease, *options)
        return self.processes.start("worker", *command, environment={"WINDLASS_FAILPOINTS": failpoints})

    def runners_of(self, worker: Process) -> int:
        """How many runners this worker has set to work so far, by its own history."""
        files = self.histories.glob(f"supervisor-{worker.pid}-*.jsonl")
        return sum(path.read_text().count('"kind":"RunnerStarted"') for path in files)

    def dump(self) -> list[dict[str, Any]]:
        """Every job, as the store shows it."""
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = self.app.jobs.list(limit=500, cursor=cursor)
            found += [msgspec.to_builtins(job) for job in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return found

    def leases(self) -> list[str]:
        """The runners that have a lease; the contract has no word for that, so we look into the tables."""
        if self.app.store.startswith(("postgresql:", "yugabyte:")):
            return Postgres(self._tables or self.app.store).leases()
        if self.app.store.startswith("redis:"):
            address = parse_address(self.app.store, "")
            (key,) = KeyMap(address.prefix).global_keys(("leases",))
            with redis.Redis.from_url(address.dsn) as server:
                # The empty field is the pulse of all of them.
                return [runner.decode() for runner in server.hkeys(key) if runner]
        database = apsw.Connection(str(self.database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return [row[0] for row in database.execute("SELECT runner FROM windlass_leases")]
        finally:
            database.close()

    async def rescue(self) -> list[Rescued]:
        """What a coordinator would still find to put back."""
        store = open_store(self.app.store)
        try:
            return await store.leases.rescue(100)
        finally:
            await store.close()

    def audit(self) -> Report:
        counts = self.app.stats.counts().totals
        return audit(read(self.histories), self.dump(), {str(status): count for status, count in counts.items()})

    def close(self) -> None:
        self.processes.end()
        self.app.close()
