"""The nemesis: a seeded choice of faults on workers and producers, each written down with its victims."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.ended import all_ended
from tests.support.inside import Sqlite
from tests.support.processes import Process, children, freeze, let_pass, signal_all, until
from tests.torture.rules import MOST, QUEUES, halt, lay_down, turn_down
from tests.torture.yard import Yard
from windlass import WindlassError

PLACES = 2
LINGER = 1_000_000_000
"""Nanoseconds for which a victim may still take jobs into its hands: it does not know yet."""
FOREVER = 60.0
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
        self._yard = yard
        self._dice = random.Random(seed)
        self._seed = seed
        self._producers_started = 0
        lay_down(yard)
        self.workers = [self._start_worker() for _ in range(PLACES)]
        self.producers = [self._start_producer() for _ in range(PLACES)]
        self._faults = self._all_faults()

    def _all_faults(self) -> list[tuple[int, Callable[[int], None]]]:
        """Each with its weight."""
        return [
            (4, self._kill_runner),
            (2, self._kill_supervisor),
            (2, self._kill_all),
            (3, self._stop_and_start),
            (3, self._stall),
            (1, self._kill_producer),
            (2, self._cancel_some),
            (1, self._turn_down),
            (2, self._retry_the_doomed),
        ]

    def _start_worker(self) -> Process:
        options = ("--processes", "2", "--concurrency", "3", "--drain", "1s", "--queues", ",".join(QUEUES))
        return self._yard.worker(*options, failpoints=",".join(self._dice.sample(TROUBLES, 3)))

    def _start_producer(self) -> Process:
        self._producers_started += 1
        return self._yard.processes.start(
            "producer",
            "produce.py",
            f"{self._seed}/{self._producers_started}",
            environment={"WINDLASS_FAILPOINTS": self._dice.choice([t for t in TROUBLES if t.startswith("enqueue.")])},
        )

    def torment(self, seconds: float) -> None:
        """One fault after the other, with a little peace between them."""
        for worker in self.workers:
            self._until_claiming(worker)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            let_pass(self._dice.uniform(0.2, 1.5))
            (fault,) = self._dice.choices([f for _, f in self._faults], [weight for weight, _ in self._faults])
            fault(self._dice.randrange(PLACES))
            self.sample()

    def heal(self) -> None:
        """No more faults and no more jobs; whoever is left works in peace."""
        for producer in self.producers:
            assert not producer.ended, producer.output
        (self._yard.folder / "stop").touch()
        for producer in self.producers:
            assert producer.wait() == 0
        halt(self._yard)
        self._yard.history.write("healed", seconds=FOREVER)
        until(lambda: all_ended(self._yard.app), "every job ends", FOREVER)
        for worker in self.workers:
            # One that is still being imported would end like any program: only now it knows what a drain is.
            self._until_claiming(worker)
        # Where only time tells who is dead, leases of the dead last a little longer than their jobs.
        until(lambda: len(self._yard.leases()) <= self._runners(), "leases of the dead are cleared away", FOREVER)
        self.sample(final=True)
        for worker in self.workers:
            worker.send(signal.SIGTERM)
        assert [worker.wait() for worker in self.workers] == [0] * PLACES
        self._yard.history.write("drained", leases=self._yard.leases())

    def sample(self, *, final: bool = False) -> None:
        """What the supervisors hold: descriptors, memory, and in the end zombies."""
        for worker in self.workers:
            if not worker.ended and self._yard.runners_of(worker) >= 2:
                facts = {"files": _files(worker.pid), "memory": _memory(worker.pid)}
                self._yard.history.write(
                    "sample", of=worker.pid, zombies=_zombies(worker.pid) if final else 0, **facts
                )

    def _until_claiming(self, worker: Process) -> None:
        until(lambda: self._yard.runners_of(worker), "the worker claims")

    def _runners(self) -> int:
        return sum(len(worker.runners()) for worker in self.workers)

    @contextmanager
    def _fault(self, kind: str, pids: list[int]) -> Iterator[None]:
        at = time.monotonic_ns()
        yield
        self._yard.history.write("fault", kind=kind, pids=pids, at=at, until=time.monotonic_ns() + LINGER)

    # Faults.

    def _kill_runner(self, place: int) -> None:
        runners = self.workers[place].runners()
        if runners:
            victim = self._dice.choice(runners)
            with self._fault("kill a runner", [victim]):
                _kill(victim)

    def _kill_supervisor(self, place: int) -> None:
        worker = self.workers[place]
        with self._fault("kill a supervisor", worker.tree()):
            worker.kill()
        self.workers[place] = self._start_worker()

    def _kill_all(self, place: int) -> None:
        worker, tree = self.workers[place], self.workers[place].tree()
        self._dice.shuffle(tree)
        with self._fault("kill a worker", tree):
            for pid in tree:
                _kill(pid)
            worker.wait()
        self.workers[place] = self._start_worker()

    def _stop_and_start(self, place: int) -> None:
        worker = self.workers[place]
        self._until_claiming(worker)
        with self._fault("stop a worker", worker.tree()):
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
        self.workers[place] = self._start_worker()

    def _stall(self, place: int) -> None:
        worker = self.workers[place]
        self._until_claiming(worker)
        tree = worker.tree()
        victims = self._dice.choice([tree, tree[:1], tree[1:]])
        with self._fault("stall", tree):
            with suppress(ProcessLookupError):
                self._freeze(victims)
                let_pass(self._dice.uniform(0.1, 2.0))
            for pid in victims:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _freeze(self, victims: list[int]) -> None:
        freeze(victims, Sqlite(self._yard.database).is_held_up)

    def _kill_producer(self, place: int) -> None:
        producer = self.producers[place]
        with self._fault("kill a producer", [producer.pid]):
            producer.kill()
        self.producers[place] = self._start_producer()

    def _cancel_some(self, place: int) -> None:
        """No fault at all: what an operator does meanwhile."""
        page = self._yard.app.jobs.list(status=("pending", "running", "scheduled", "blocked"), limit=3)
        for job in page.items:
            with suppress(WindlassError):
                self._yard.app.jobs.cancel(job.id)

    def _retry_the_doomed(self, place: int) -> None:
        """Nor this: a link that died is tried again, and with it come back those that it took along."""
        with suppress(WindlassError):
            for job in self._yard.app.jobs.list(status="dead", type="doomed", limit=3).items:
                self._yard.app.jobs.retry(job.id)

    def _turn_down(self, place: int) -> None:
        """Nor is this: a queue may run fewer at once, or as many as before."""
        with suppress(WindlassError):
            turn_down(self._yard, self._dice.randint(1, MOST))


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
