"""One number for scalers: how many slots could be busy now."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from windlass.core.flow.queue import Queue


class QueueLoad(msgspec.Struct, omit_defaults=True):
    """The parts of a queue's load."""

    pending: int
    running: int
    paused: bool
    max_concurrency: int | None = None

    @property
    def value(self) -> int:
        """The part of this queue in the sum."""
        wanted = self.running + (0 if self.paused else self.pending)
        most = self.max_concurrency
        return wanted if most is None else max(self.running, min(wanted, most))


class Scale(msgspec.Struct):
    """`value` is how many slots could be busy now, and `queues` has its parts.

    Running jobs, and pending ones of queues that are not paused; of a queue with `max_concurrency` no more than that.
    """

    value: int
    queues: dict[str, QueueLoad]


def scale(counts: Mapping[str, Mapping[str, int]], queues: Iterable[Queue], chosen: Collection[str] = ()) -> Scale:
    """The load of the chosen queues; of all, if none is chosen."""
    known = {queue.name: queue for queue in queues}
    loads = {
        name: _load(jobs.get("pending", 0), jobs.get("running", 0), known.get(name))
        for name, jobs in counts.items()
        if not chosen or name in chosen
    }
    return Scale(sum(load.value for load in loads.values()), loads)


def _load(pending: int, running: int, queue: Queue | None) -> QueueLoad:
    if queue is None:
        return QueueLoad(pending, running, False)
    return QueueLoad(pending, running, queue.paused, queue.rules.max_concurrency)
