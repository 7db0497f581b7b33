"""Figures as families of metrics: names, help and labels, as in docs/guides/monitoring.md."""

from collections.abc import Iterable, Sequence

import msgspec

from windlass.observe.reading import CALL_SECONDS, RUN_SECONDS, WAIT_SECONDS, JobFigures, Reading, Timing
from windlass.version import __version__

Labels = tuple[str, ...]
JOB: Labels = ("queue", "type")
DEAD_REASONS = ("attempts", "not_retried", "raised", "crashed")


class Family(msgspec.Struct, frozen=True):
    """One metric with all its series. A counter's name has no `_total`: the text adds it."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    help: str
    labels: Labels = ()
    values: Sequence[tuple[Labels, float]] = ()
    timings: Sequence[tuple[Labels, Timing]] = ()
    bounds: tuple[float, ...] = ()


_COUNTERS = {
    "started": "Attempts whose handlers were started.",
    "completed": "Attempts that completed.",
    "failed": "Attempts that failed, also the last ones.",
    "retried": "Failed attempts after which the job is tried again.",
    "rescued": "Jobs put back because their runner ended or lost its lease.",
}
"""Emitted with zero once a handler was started: an increase from nothing would be missed."""
_RARE_COUNTERS = {
    "enqueued": "Jobs enqueued by this process.",
    "cancelled": "Attempts that ended as cancelled.",
    "snoozed": "Attempts that were snoozed.",
}
_QUEUE_COUNTERS = {
    "windlass_settlements_stale": ("stale", "Outcomes that came too late: a later attempt of the job had begun."),
    "windlass_jobs_requeued": ("requeued", "Claimed jobs that were requeued, unstarted or interrupted."),
}
_TOTALS = {
    "windlass_leases_lost": ("leases_lost", "Leases of runners that expired before they were renewed."),
    "windlass_hints_lost": ("hints_lost", "Times that wake-up hints stopped arriving."),
    "windlass_store_conflicts": (
        "conflicts",
        "Serialization failures and deadlocks after which a call was repeated.",
    ),
}


def process_families(reading: Reading) -> list[Family]:
    """The metrics of one process, or of several together."""
    jobs = sorted((pair, each) for pair, each in reading.jobs.items() if pair[1])
    return [
        gauge("windlass_build_info", "The version of Windlass.", [((__version__,), 1)], ("version",)),
        *(_counter(name, text, _active(jobs, name)) for name, text in _COUNTERS.items()),
        *(_counter(name, text, _nonzero(jobs, name)) for name, text in _RARE_COUNTERS.items()),
        _dead(jobs),
        *(_by_queue(reading, name, *about) for name, about in _QUEUE_COUNTERS.items()),
        *(
            Family(name, "counter", text, values=[((), reading.totals.get(key, 0))])
            for name, (key, text) in _TOTALS.items()
        ),
        _flows(reading),
        *_timings(jobs),
        *_calls(reading),
    ]


def gauge(name: str, text: str, values: Sequence[tuple[Labels, float]], labels: Labels = ()) -> Family:
    """A family of gauges."""
    return Family(name, "gauge", text, labels, values)


JobRows = Sequence[tuple[tuple[str, str], JobFigures]]


def _active(jobs: JobRows, name: str) -> list[tuple[Labels, float]]:
    return [(pair, each.counters[name]) for pair, each in jobs if each.counters["started"] or each.counters[name]]


def _nonzero(jobs: JobRows, name: str) -> list[tuple[Labels, float]]:
    return [(pair, each.counters[name]) for pair, each in jobs if each.counters[name]]


def _counter(name: str, text: str, values: Sequence[tuple[Labels, float]]) -> Family:
    return Family(f"windlass_jobs_{name}", "counter", text, JOB, values)


def _dead(jobs: JobRows) -> Family:
    values = [((*pair, reason), value) for reason in DEAD_REASONS for pair, value in _active(jobs, f"dead_{reason}")]
    return Family("windlass_jobs_dead", "counter", "Jobs that became dead, by reason.", (*JOB, "reason"), values)


def _by_queue(reading: Reading, name: str, column: str, text: str) -> Family:
    sums: dict[str, int] = {}
    for (queue, _), each in reading.jobs.items():
        sums[queue] = sums.get(queue, 0) + each.counters[column]
    return Family(name, "counter", text, ("queue",), [((queue,), value) for queue, value in sorted(sums.items())])


def _flows(reading: Reading) -> Family:
    values: list[tuple[Labels, float]] = [
        ((status,), reading.totals.get(f"flows_{status}", 0)) for status in ("completed", "dead", "cancelled")
    ]
    text = "Groups and graphs that ended, by status."
    return Family("windlass_flows_ended", "counter", text, ("status",), values)


def _timings(jobs: JobRows) -> Iterable[Family]:
    run = [(pair, each.run) for pair, each in jobs if each.counters["started"]]
    wait = [(pair, each.wait) for pair, each in jobs if each.counters["started"]]
    yield Family("windlass_job_run_seconds", "histogram", "Time in the handler.", JOB, (), run, RUN_SECONDS)
    text = "Time from when an attempt was due to its start."
    yield Family("windlass_job_wait_seconds", "histogram", text, JOB, (), wait, WAIT_SECONDS)


def _calls(reading: Reading) -> Iterable[Family]:
    calls = sorted((each for each in reading.calls.items() if each[1].times.count), key=lambda each: each[0])
    times = [((verb,), call.times) for verb, call in calls]
    errors = [((verb,), call.errors) for verb, call in calls]
    text = "Time of calls to the store."
    yield Family("windlass_store_call_seconds", "histogram", text, ("verb",), (), times, CALL_SECONDS)
    yield Family("windlass_store_call_errors", "counter", "Calls to the store that failed.", ("verb",), errors)
