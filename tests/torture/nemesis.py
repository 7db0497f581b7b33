"""The nemesis: a seeded choice of faults on workers and producers, each written down with its victims."""

import os
import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.ended import until_ended
from tests.support.inside import Sqlite
from tests.support.processes import Process, children, freeze, let_pass, signal_all, until
from tests.torture.faults.choice import Kind, Weighted, choose, in_order
from tests.torture.rules import MAX_RUNNING, QUEUES, halt, lay_down, turn_down
from tests.torture.yard import Yard
from windlass import WindlassError

PLACES = 2
LINGER = 1_000_000_000
"""Nanoseconds for which a victim may still take jobs into its hands: it does not know yet."""
FOREVER = 120.0
"""Seconds without any progress: on a busy machine all of it may take much longer."""
VERBS = ("enqueue", "claim", "settle", "note", "admit", "open", "renew", "end", "rescue", "beat", "campaign", "fire")
TROUBLES = [
    f"{verb}.{trouble}"
    for verb in VERBS
    for trouble in ("before_commit=raise", "before_commit=cut", "after_commit=cut")
]
"""Once in its life, every process finds a write failed or its reply lost. That is no reason to run anything again."""


class Nemesis:
    """Two workers of two runners each, two producers, and what befalls them."""

    def __init__(self, yard: Yard, seed: int) -> None:
        self.yard = yard
        self.dice = random.Random(seed)
        self._seed = seed
        self._producers_started = 0
        lay_down(yard)
        self.workers = [self.start_worker() for _ in range(PLACES)]
        self.producers = [self._start_producer() for _ in range(PLACES)]

    def _short_faults(self) -> Weighted:
        """Each with its weight."""
        return {
            "kill_runner": (4, self._kill_runner),
            "kill_supervisor": (2, self._kill_supervisor),
            "kill_all": (2, self._kill_all),
            "stop_and_start": (3, self._stop_and_start),
            "stall": (3, self._stall),
            "kill_producer": (1, self._kill_producer),
            "cancel_some": (2, self._cancel_some),
            "turn_down": (1, self._turn_down),
            "retry_the_doomed": (2, self._retry_the_doomed),
        }

    def start_worker(self) -> Process:
        options = ("--processes", "2", "--concurrency", "8", "--drain", "1s", "--queues", ",".join(QUEUES))
        return self.yard.worker(*options, failpoints=",".join(self.dice.sample(TROUBLES, 3)))

    def _start_producer(self) -> Process:
        self._producers_started += 1
        return self.yard.processes.start(
            "producer",
            "produce.py",
            f"{self._seed}/{self._producers_started}",
            environment={"WINDLASS_FAILPOINTS": self.dice.choice([t for t in TROUBLES if t.startswith("enqueue.")])},
        )

    def torment(self, seconds: float, long: Mapping[str, Kind]) -> bool:
        """One fault after the other, with a little peace between them; False if there is none of those asked for."""
        short, some = choose(self._seed, self._short_faults(), long)
        if not short and not some:
            return False
        for worker in self.workers:
            self.until_claiming(worker)
        following = in_order(self.dice, short, some)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            let_pass(self.dice.uniform(0.2, 1.5))
            next(following)(self.dice.randrange(PLACES))
            self.sample()
        return True

    def heal(self) -> None:
        """No more faults and no more jobs; the processes that are left work in peace."""
        for producer in self.producers:
            assert not producer.ended, producer.output
        (self.yard.folder / "stop").touch()
        for producer in self.producers:
            assert producer.wait() == 0
        halt(self.yard)
        self.yard.history.write("healed", seconds=FOREVER)
        until_ended(self.yard.app, FOREVER)
        for worker in self.workers:
            # One that is still being imported would end like any program: only now it knows what a drain is.
            self.until_claiming(worker)
        # Where only time tells who is dead, leases of the dead last a little longer than their jobs.
        until(lambda: len(self.yard.leases()) <= self._runners(), "leases of the dead are cleared away", FOREVER)
        self.sample(final=True)
        for worker in self.workers:
            worker.send(signal.SIGTERM)
        assert [worker.wait() for worker in self.workers] == [0] * PLACES
        self.yard.history.write("drained", leases=self.yard.leases())

    def sample(self, *, final: bool = False) -> None:
        """What the supervisors hold: descriptors, memory, and in the end zombies."""
        for worker in self.workers:
            if not worker.ended and self.yard.runners_of(worker) >= 2:
                facts = {"files": _files(worker.pid), "memory": _memory(worker.pid)}
                self.yard.history.write(
                    "sample", of=worker.pid, zombies=_zombies(worker.pid) if final else 0, **facts
                )

    def until_claiming(self, worker: Process) -> None:
        until(lambda: self.yard.runners_of(worker), "the worker claims", FOREVER)

    def _runners(self) -> int:
        return sum(len(worker.runners()) for worker in self.workers)

    @contextmanager
    def fault(self, kind: str, pids: list[int], *, kills: bool = False, hides: bool = False) -> Iterator[None]:
        """Written down with its victims; only where it `kills` may their jobs be charged with a crash.

        `hides`: claims pass over jobs meanwhile.
        """
        at = time.monotonic_ns()
        yield
        until = time.monotonic_ns() + LINGER
        self.yard.history.write("fault", kind=kind, pids=pids, kills=kills, hides=hides, at=at, until=until)

    # Faults.

    def _kill_runner(self, place: int) -> None:
        runners = self.workers[place].runners()
        if runners:
            victim = self.dice.choice(runners)
            with self.fault("kill a runner", [victim], kills=True):
                _kill(victim)

    def _kill_supervisor(self, place: int) -> None:
        worker = self.workers[place]
        with self.fault("kill a supervisor", worker.tree(), kills=True):
            worker.kill()
        self.workers[place] = self.start_worker()

    def _kill_all(self, place: int) -> None:
        worker, tree = self.workers[place], self.workers[place].tree()
        self.dice.shuffle(tree)
        with self.fault("kill a worker", tree, kills=True):
            for pid in tree:
                _kill(pid)
            worker.wait()
        self.workers[place] = self.start_worker()

    def _stop_and_start(self, place: int) -> None:
        worker = self.workers[place]
        self.until_claiming(worker)
        with self.fault("stop a worker", worker.tree()):
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
        self.workers[place] = self.start_worker()

    def _stall(self, place: int) -> None:
        worker = self.workers[place]
        self.until_claiming(worker)
        tree = worker.tree()
        victims = self.dice.choice([tree, tree[:1], tree[1:]])
        with self.fault("stall", tree):
            with suppress(ProcessLookupError):
                self._freeze(victims)
                let_pass(self.dice.uniform(0.1, 2.0))
            for pid in victims:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _freeze(self, victims: list[int]) -> None:
        freeze(victims, Sqlite(self.yard.database).is_held_up)

    def _kill_producer(self, place: int) -> None:
        producer = self.producers[place]
        with self.fault("kill a producer", [producer.pid]):
            producer.kill()
        self.producers[place] = self._start_producer()

    def _cancel_some(self, place: int) -> None:
        """No fault at all: what an operator does meanwhile."""
        page = self.yard.app.jobs.list(status=("pending", "running", "scheduled", "blocked"), limit=3)
        for job in page.items:
            with suppress(WindlassError):
                self.yard.app.jobs.cancel(job.id)

    def _retry_the_doomed(self, place: int) -> None:
        """Nor this: a link that died is tried again, and with it come back those that it took along."""
        with suppress(WindlassError):
            for job in self.yard.app.jobs.list(status="dead", type="doomed", limit=3).items:
                self.yard.app.jobs.retry(job.id)

    def _turn_down(self, place: int) -> None:
        """Nor is this: a queue may run fewer at once, or as many as before."""
        with suppress(WindlassError):
            turn_down(self.yard, self.dice.randint(1, MAX_RUNNING))


class RemoteNemesis(Nemesis):
    """The same where the store is on a server that is not touched."""

    def _freeze(self, victims: list[int]) -> None:
        signal_all(victims, signal.SIGSTOP)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        signal_all([pid], signal.SIGKILL)


def _files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _zombies(parent: int) -> int:
    living = set(children(parent))
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return len({int(pid) for pid in text.split()} - living)
