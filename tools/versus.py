"""Two revisions in turn, on every store: `python -m tools.versus REV1 REV2 [--store redis] [--rounds 7]`.

What slows the machine down for a while slows both. A revision is unpacked into a folder of its own and driven from
outside, by its command line and public names (versus_app.py), with this interpreter: so revisions may differ in
everything else. Figures are medians; the ratio is the median of the ratios round by round, REV2 by REV1.
"""

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.support.processes import children
from tests.support.servers.postgres import PostgresServer, new_server
from tests.support.servers.redis import new_redis

ROOT = Path(__file__).parents[1]
STORES = ("sqlite", "postgres", "redis")
FIGURES = {
    "bulk": "jobs/s enqueued in batches",
    "single": "jobs/s enqueued one by one",
    "drain": "jobs/s by one worker",
    "cpu": "us of CPU per job, worker and server",
    "latency": "us from enqueue to start, median",
    "p99": "us from enqueue to start, 99 of 100",
}
TICK = os.sysconf("SC_CLK_TCK")

Figures = dict[str, float]


def main() -> int:
    """Rounds of both revisions on each store, and a table of the ratios."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("revisions", nargs=2, metavar="REV")
    options.add_argument("--store", choices=STORES, action="append", help="only this one; may be repeated")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--jobs", type=int, default=50_000)
    given = options.parse_args()
    # Beside the tree, since that is a disk like the one a user has; /tmp may be memory.
    with tempfile.TemporaryDirectory(prefix=".versus-", dir=ROOT, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        sources = [unpack(revision, folder / str(place)) for place, revision in enumerate(given.revisions, 1)]
        for store in given.store or STORES:
            rounds = [compare(sources, store, number, given.jobs, folder) for number in range(1, given.rounds + 1)]
            show(store, given.revisions, rounds)
    return 0


def unpack(revision: str, home: Path) -> Path:
    """The source of a revision."""
    packed = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(home, filter="data")
    return home / "src"


def compare(sources: list[Path], store: str, number: int, jobs: int, folder: Path) -> list[Figures]:
    """One round: the figures of each revision, on an empty store. The order alternates from round to round."""
    figures: list[Figures] = [{}, {}]
    for place in (0, 1) if number % 2 else (1, 0):
        with serve(store, folder) as (url, server):
            figures[place] = measure(sources[place], url, server, jobs, folder)
    print(f"{store} round {number}: drain {figures[1]['drain'] / figures[0]['drain']:.1%}", flush=True)
    return figures


@contextlib.contextmanager
def serve(store: str, folder: Path) -> Iterator[tuple[str, int | None]]:
    """An empty store: its address, and the process of its server."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(dir=folder) as name:
            yield f"sqlite:///{name}/jobs.db", None
        return
    server: Any = new_server() if store == "postgres" else new_redis("appendonly yes\nappendfsync everysec")
    server.start()
    try:
        yield server.dsn() if isinstance(server, PostgresServer) else server.url, server.pid
    finally:
        server.stop()
        server.remove()


def measure(source: Path, url: str, server: int | None, jobs: int, folder: Path) -> Figures:
    """All figures of one revision."""
    environment = {**os.environ, "PYTHONPATH": f"{source}:{ROOT / 'tools'}", "WINDLASS_STORE": url}
    figures = drive(environment, folder, "produce", str(jobs))
    idle, idle_cpu = drain(environment, folder, server, "empty")
    took, cpu = drain(environment, folder, server, "default")
    stored = jobs + figures.pop("singles")
    figures |= {"drain": stored / (took - idle), "cpu": (cpu - idle_cpu) * 1e6 / stored}
    worker = subprocess.Popen(
        [*python("windlass"), "worker", "versus_app:app"], env=environment, cwd=folder, stderr=subprocess.DEVNULL
    )
    try:
        return figures | drive(environment, folder, "wait")
    finally:
        worker.terminate()
        worker.wait()


def python(module: str) -> list[str]:
    return [sys.executable, "-m", module]


def drive(environment: dict[str, str], folder: Path, *what: str) -> Figures:
    """What a producer of its own process measures."""
    command = [*python("versus_app"), *what]
    ran = subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.PIPE)
    figures: Figures = json.loads(ran.stdout)
    return figures


def drain(environment: dict[str, str], folder: Path, server: int | None, queue: str) -> tuple[float, float]:
    """Seconds, and seconds of CPU, until a worker has emptied a queue and ended."""
    command = [*python("windlass"), "worker", "versus_app:app", "--until-empty", "--queues", queue]
    began, before = time.monotonic(), used(server)
    subprocess.run(command, env=environment, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began, used(server) - before


def used(server: int | None) -> float:
    """Seconds of CPU of processes that we have waited for, and of the server with all its own."""
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = waited.ru_utime + waited.ru_stime
    for pid in () if server is None else (server, *children(server)):
        with contextlib.suppress(FileNotFoundError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            # utime and stime, and of the server also those of children that it has waited for
            seconds += sum(map(int, fields[11 : 15 if pid == server else 13])) / TICK
    return seconds


def show(store: str, revisions: list[str], rounds: list[list[Figures]]) -> None:
    """The table of one store."""
    print(f"\n{store:<10}{revisions[0]:>14}{revisions[1]:>14}{'ratio':>9}")
    for name, meaning in FIGURES.items():
        first, second = ([figures[place][name] for figures in rounds] for place in (0, 1))
        ratio = statistics.median(b / a for a, b in zip(first, second, strict=True))
        medians = f"{statistics.median(first):>14,.0f}{statistics.median(second):>14,.0f}"
        print(f"{name:<10}{medians}{ratio:>9.1%}  {meaning}")
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
