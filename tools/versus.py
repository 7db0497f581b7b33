"""The plain drain of two revisions, in turn, in one run: `python tools/versus.py REV1 REV2 [--store postgres]`.

What slows the machine down for a while slows both. The figure is the ratio of the medians, REV2 by REV1. Each
revision is unpacked into a folder of its own and drained by its own code, with this interpreter.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOAL = 0.97
ONE = """
import sys
from pathlib import Path
import msgspec
from windlass.bench.drain import drain
from windlass.bench.ground import FULL, Ground
from windlass.bench.run import find_yardstick

template, jobs, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
scale = msgspec.structs.replace(FULL, drain=jobs)
print(drain(Ground(find_yardstick(template), scale, [], folder, lambda text: None))[0])
"""
"""One drain, in the words that both revisions understand."""


def main() -> int:
    """Rounds of both, and how the second does beside the first."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("revisions", nargs=2, metavar="REV")
    words.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    words.add_argument("--rounds", type=int, default=7)
    words.add_argument("--jobs", type=int, default=100_000)
    given = words.parse_args()
    # Beside the tree, since that is a disk like the one a user has; /tmp may be memory.
    with tempfile.TemporaryDirectory(prefix=".versus-", dir=ROOT, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        sources = [_unpack(revision, folder / f"{place}") for place, revision in enumerate(given.revisions, 1)]
        with _template(given.store, folder) as template:
            rates = _race(sources, template, given.jobs, given.rounds, folder)
    medians = [statistics.median(each) for each in rates]
    for revision, median in zip(given.revisions, medians, strict=True):
        print(f"{revision:12} median {median:9,.0f} jobs/s")
    ratio = medians[1] / medians[0]
    by_rounds = statistics.median(second / first for first, second in zip(*rates, strict=True))
    print(f"{given.revisions[1]} has {ratio:.1%} of {given.revisions[0]} (at least {GOAL:.0%} are wanted)")
    print(f"the median of the ratios round by round is {by_rounds:.1%}")
    return 0 if ratio >= GOAL else 1


def _unpack(revision: str, home: Path) -> Path:
    packed = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(home, filter="data")
    return home / "src"


@contextlib.contextmanager
def _template(store: str, folder: Path) -> Iterator[str]:
    if store == "sqlite":
        yield f"sqlite:///{folder}/{{run}}.db"
        return
    from windlass.bench.postgres_server import serve

    with serve(folder) as template:
        yield template


def _race(sources: list[Path], template: str, jobs: int, rounds: int, folder: Path) -> list[list[float]]:
    rates: list[list[float]] = [[] for _ in sources]
    for number in range(1, rounds + 1):
        # Who goes first changes, so that nobody always finds what the other left behind.
        order = list(enumerate(sources))[:: 1 if number % 2 else -1]
        for place, source in order:
            rates[place].append(_drain(source, template, jobs, folder))
        told = " | ".join(f"{each[-1]:9,.0f}" for each in rates)
        print(f"round {number} of {rounds}: {told} jobs/s, {rates[1][-1] / rates[0][-1]:.1%}", flush=True)
    return rates


def _drain(source: Path, template: str, jobs: int, folder: Path) -> float:
    command = [sys.executable, "-c", ONE, template, str(jobs), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    ran = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return float(ran.stdout)


if __name__ == "__main__":
    sys.exit(main())
