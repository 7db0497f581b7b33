"""Run a soak: `make soak MINUTES=110`. Exit code 1 if something grows, is lost, or ran twice without a reason."""

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.processes import cpu_seconds
from tools.soak import report
from tools.soak.faults import faults
from tools.soak.ledger import account
from tools.soak.sampling import Samples
from tools.soak.stores import Postgres, Redis, Sqlite
from tools.soak.workers import StoreRun

SAMPLE_EVERY = 15.0
SAY_EVERY = 60.0
SETTLE = 120.0
"""Seconds for the last jobs: those of a killed worker wait for its lease."""
MIN_MINUTES = 10
"""In a shorter run nothing is steady yet: growth is shown, and does not count."""


class Every:
    """True once in each interval."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = time.monotonic() + seconds

    def __call__(self) -> bool:
        due = time.monotonic() >= self._next
        if due:
            # What a long fault made us miss is not made up for.
            self._next = max(self._next, time.monotonic() - self._seconds) + self._seconds
        return due


class Soak:
    """One run."""

    def __init__(self, minutes: float, rate: float, seed: int, folder: Path) -> None:
        self._seconds = minutes * 60
        self._folder = folder
        self._seed = seed
        self._fault_every = min(60.0, max(10.0, minutes * 6))
        self._samples = Samples(folder / "samples.csv")
        self._begun = time.monotonic()
        self._used: dict[int, float] = {}
        self._problems: list[str] = []
        self._faults: Counter[str] = Counter()
        retention = min(120.0, max(10.0, minutes * 6))
        stores = (Sqlite(self._part("sqlite")), Postgres(), Redis())
        self._runs = [StoreRun(each, self._part(each.name), rate=rate, retention=retention) for each in stores]

    def _part(self, name: str) -> Path:
        part = self._folder / name
        part.mkdir(exist_ok=True)
        return part

    def run(self) -> int:
        """The exit code."""
        for run in self._runs:
            run.start()
        self._begun = time.monotonic()
        self._work()
        for run in self._runs:
            self._attempt(f"{run.store.name}: the producer stops", run.stop_producing)
        self._settle()
        for run in self._runs:
            self._attempt(f"{run.store.name}: the workers stop", run.stop_working)
        return self._conclude()

    def end(self) -> None:
        """Nothing that was started stays."""
        for run in self._runs:
            run.end()
            run.store.stop()
        self._samples.close()

    def _work(self) -> None:
        following = faults(self._runs, self._seed)
        sample, say, fault = Every(SAMPLE_EVERY), Every(SAY_EVERY), Every(self._fault_every)
        while (passed := time.monotonic() - self._begun) < self._seconds:
            time.sleep(0.5)
            if sample():
                self._sample()
            if say():
                self._say(self._progress())
            # None at the end: the last jobs get the time they need.
            if fault() and passed < self._seconds - 30:
                name, do = next(following)
                self._faults[name] += 1
                self._attempt(name, do)

    def _attempt(self, name: str, do: Callable[[], None]) -> None:
        self._say(name)
        try:
            do()
        except Exception as error:  # the run goes on, and fails at its end
            self._problem(f"{name}: {error!r}")

    def _sample(self) -> None:
        for run in self._runs:
            self._samples.add(run.store.name, run.sample())

    def _settle(self) -> None:
        """Until every accepted job has ended."""
        end = time.monotonic() + SETTLE
        while time.monotonic() < end and any(account(run.folder, run.killed).lost for run in self._runs):
            time.sleep(2)

    def _progress(self) -> str:
        series = self._samples.series
        parts = []
        for run in self._runs:
            found = account(run.folder, run.killed)
            memory = series[f"{run.store.name}/uss_mb/runner 1"][-1:] or [(0.0, 0.0)]
            for what in run.died():
                self._problem(f"{run.store.name}: {what} did not live as long as the run")
            parts.append(f"{run.store.name} {found.accepted} accepted, {len(found.lost)} open, {memory[0][1]:.1f} MB")
        return "; ".join(parts) + f"; {self._cores():.2f} cores"

    def _cores(self) -> float:
        """Processor time since the last call, of all processes that are still there, by wall time."""
        used = {pid: cpu_seconds(pid) for run in self._runs for pid in run.pids() if _there(pid)}
        spent = sum(seconds - self._used.get(pid, 0.0) for pid, seconds in used.items())
        self._used = used
        return spent / SAY_EVERY

    def _conclude(self) -> int:
        lines, judged = report.table(self._samples.series)
        print("\n".join(lines))
        grown = [each.series for each in judged if each.verdict == "GROWS"]
        for run in self._runs:
            found = account(run.folder, run.killed)
            print(report.jobs(run.store.name, found))
            self._problems += [f"{run.store.name}: jobs were lost"] if found.lost else []
            self._problems += [f"{run.store.name}: jobs ran twice without a reason"] if found.again else []
            self._problems += [] if found.accepted else [f"{run.store.name}: nothing was accepted"]
        print(*(f"{number} × {name}" for name, number in sorted(self._faults.items())), sep="\n")
        short = self._seconds < MIN_MINUTES * 60
        print(f"{len(grown)} of {len(judged)} series grow{' (too short a run to judge)' if short else ''}: {grown}")
        print(*self._problems, sep="\n")
        return 1 if self._problems or (grown and not short) else 0

    def _problem(self, what: str) -> None:
        if what not in self._problems:
            self._problems.append(what)
            self._say(f"PROBLEM: {what}")

    def _say(self, text: str) -> None:
        passed = int(time.monotonic() - self._begun)
        print(f"{passed // 60:>4}:{passed % 60:02}  {text}", flush=True)


def _there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=float, default=15, help="jobs a second on each store")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="folder for samples and logs; must be empty")
    options = parser.parse_args(arguments)
    folder = options.out or Path(tempfile.mkdtemp(prefix="windlass-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(
        f"{options.minutes:g} minutes, {options.rate:g} jobs a second on each store; samples in {folder}", flush=True
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    soak = Soak(options.minutes, options.rate, options.seed, folder)
    try:
        return soak.run()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130
    finally:
        soak.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
