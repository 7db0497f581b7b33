"""The memory of a large group, in a process of its own: group_memory stream|merge MEMBERS."""

import json
import sys
from pathlib import Path

from bench import tasks
from windlass.client.groups.group import group
from windlass.client.groups.results import Results

FEW = 100


def peak() -> float:
    """MiB, as the kernel counts them."""
    status = Path("/proc/self/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def stream(members: int) -> None:
    """Enqueue a group from a generator."""
    group((tasks.link.job(1, tasks.FILLER) for _ in range(members)), then=tasks.ended.job()).enqueue()


def merge(members: int) -> None:
    """Read all results of the stored group."""
    (flow,) = [each for each in tasks.app.flows.list() if each.size > FEW]
    assert sum(Results[int](tasks.app, flow.id, members)) == members


if __name__ == "__main__":
    stream(FEW)
    before = peak()
    {"stream": stream, "merge": merge}[sys.argv[1]](int(sys.argv[2]))
    Path("group_memory.json").write_text(json.dumps(peak() - before))
    tasks.app.close()
