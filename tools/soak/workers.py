"""The processes on one store: a worker and a producer that get no faults, and a worker that gets the faults."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.support.processes import Process, Processes, descendants, until
from tools.soak.sampling import of_process
from tools.soak.stores import Soaked, Values

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0
OPTIONS = ("--processes", "2", "--concurrency", "8")


class StoreRun:
    """All that runs on one store."""

    def __init__(self, store: Soaked, folder: Path, *, rate: float, retention: float) -> None:
        self.store = store
        self.folder = folder
        self.killed: set[int] = set()
        """Processes whose jobs may run again."""
        self._rate = rate
        self._processes = Processes(
            folder,
            {
                "PYTHONPATH": str(ROOT),
                "WINDLASS_STORE": store.url,
                "SOAK_BLOBS": str(folder / "blobs"),
                "SOAK_LEDGER": str(folder / "ledger"),
                "SOAK_ACCEPTED": str(folder / "accepted"),
                "SOAK_RETENTION": str(retention),
            },
        )
        (folder / "blobs").mkdir()
        for name in ("ledger", "accepted"):
            (folder / name).touch()

    def start(self) -> None:
        self._steady = self._worker()
        until(lambda: len(self._steady.runners()) == 2, f"the worker on {self.store.name} starts", PATIENCE)
        self._steady_runners = self._steady.runners()
        self._other = self._worker()
        self._producer = self._processes.start(
            "producer", "-m", "tools.soak.producer", self.store.name, str(self._rate)
        )

    def _worker(self) -> Process:
        return self._processes.start("worker", "-m", "windlass", "worker", "tools.soak.jobs:app", *OPTIONS)

    # Samples.

    def sample(self) -> Values:
        """Of the processes that live as long as the run, and of the store."""
        values = dict(self.store.sample())
        values["rows/blobs"] = sum(1 for _ in (self.folder / "blobs").glob("*/*"))
        roles = {"supervisor": self._steady.pid, "producer": self._producer.pid}
        roles |= {f"runner {number}": pid for number, pid in enumerate(self._steady_runners, 1)}
        for role, pid in roles.items():
            values |= {f"{kind}/{role}": value for kind, value in of_process(pid).items()}
        return values

    def died(self) -> list[str]:
        """What should have lived as long as the run, and does not."""
        gone = [] if self._steady.runners() == self._steady_runners else ["a runner"]
        gone += ["the supervisor"] if self._steady.ended else []
        return gone + (["the producer"] if self._producer.ended else [])

    def pids(self) -> list[int]:
        return [*self._processes.ours(), *self.store.server_pids()]

    # Faults, all on the other worker.

    def stop_and_start(self) -> None:
        """SIGTERM, as at a deploy."""
        self._claims()
        self._other.send(signal.SIGTERM)
        code = self._other.wait(PATIENCE)
        assert code == 0, f"a worker on {self.store.name} ended with {code}"
        self._other = self._worker()

    def kill_runner(self) -> None:
        self._claims()
        self._kill([self._other.runners()[0]])

    def kill_worker(self) -> None:
        """Supervisor, runners and their subprocesses."""
        self._kill([self._other.pid])
        self._other.wait(PATIENCE)
        self._other = self._worker()

    def _claims(self) -> None:
        """A worker that still starts does not know what a signal means."""
        until(lambda: len(self._other.runners()) == 2, f"a worker on {self.store.name} has its runners", PATIENCE)

    def _kill(self, pids: list[int]) -> None:
        victims = [*pids, *(pid for each in pids for pid in descendants(each))]
        self.killed.update(victims)
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # The end.

    def stop_producing(self) -> None:
        self._producer.send(signal.SIGTERM)
        code = self._producer.wait(PATIENCE)
        assert code == 0, f"the producer on {self.store.name} ended with {code}"

    def stop_working(self) -> None:
        for worker in (self._steady, self._other):
            worker.send(signal.SIGTERM)
        for worker in (self._steady, self._other):
            code = worker.wait(PATIENCE)
            assert code == 0, f"a worker on {self.store.name} ended with {code}"

    def end(self) -> None:
        """Kill whatever is left, orphans too. Twice: one may just be starting another."""
        for _ in range(2):
            for pid in self._processes.ours():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in self._processes.started:
            process.kill()
