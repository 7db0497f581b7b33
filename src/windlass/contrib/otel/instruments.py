"""Metrics of this process through OpenTelemetry, under the names that `/metrics` has."""

import time
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter

from windlass.client.app import App
from windlass.client.tasks.context import Context
from windlass.core.jobs.job import Claimed
from windlass.core.moments import SECOND
from windlass.observe.families import Family, process_families
from windlass.observe.process import read_all, want_figures
from windlass.observe.reading import MAX_ROWS, OTHER, RUN_SECONDS, WAIT_SECONDS, Timing
from windlass.version import __version__


def measure_jobs(app: App, *, meter_provider: MeterProvider | None = None) -> None:
    """Count what this process does for OpenTelemetry: jobs by outcome, run and wait times, store calls.

    Names are those of `/metrics` as an exporter for Prometheus writes them: `windlass.jobs.completed` becomes
    `windlass_jobs_completed_total`. Without `meter_provider` the global one is used. What a supervisor counts, which
    does not load the app, is on its health port alone.
    """
    meter = get_meter("windlass", __version__, meter_provider)
    for family in process_families(want_figures().read()):
        if family.kind == "counter":
            meter.create_observable_counter(_dotted(family.name), [_observer(family.name)], description=family.help)
    # OpenTelemetry has no observable histogram: count and sum of the call times are two counters.
    calls = partial(_call_observations, lambda timing: timing.count)
    meter.create_observable_counter("windlass.store.calls", [calls], description="Calls to the store.")
    times = partial(_call_observations, lambda timing: timing.sum)
    meter.create_observable_counter("windlass.store.call.time", [times], "s", "Time of calls to the store.")
    app.middleware(_Times(meter).measure_attempt)


def _dotted(name: str) -> str:
    """windlass_jobs_completed → windlass.jobs.completed."""
    return name.replace("_", ".")


def _observer(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterable[Observation]:
        figures = want_figures()
        if figures.is_absorbed:
            return []
        (family,) = (each for each in process_families(read_all()) if each.name == name)
        return _observations(family)

    return observe


def _observations(family: Family) -> list[Observation]:
    return [Observation(value, dict(zip(family.labels, labels, strict=True))) for labels, value in family.values]


def _call_observations(value: Callable[[Timing], float], _: CallbackOptions) -> list[Observation]:
    figures = want_figures()
    if figures.is_absorbed:
        return []
    calls = figures.read().calls.items()
    return [Observation(value(each.times), {"verb": verb}) for verb, each in calls if each.times.count]


class _Times:
    """Histograms of waiting and running."""

    def __init__(self, meter: Any) -> None:
        self._run = meter.create_histogram(
            "windlass.job.run", "s", "Time in the handler.", explicit_bucket_boundaries_advisory=RUN_SECONDS
        )
        self._wait = meter.create_histogram(
            "windlass.job.wait",
            "s",
            "Time from when an attempt was due to its start.",
            explicit_bucket_boundaries_advisory=WAIT_SECONDS,
        )
        self._known: set[tuple[str, str]] = set()

    def measure_attempt(self, ctx: Context) -> Generator[None, Any, None]:
        """A middleware round every attempt."""
        job = ctx._link.claimed
        labels, begin = self._labels(job), time.perf_counter()
        due = max(job.run_at, job.created_at)
        self._wait.record(max(0, job.claimed_at - due + (ctx._link.started_after or 0)) / SECOND, labels)
        try:
            yield
        finally:
            self._run.record(time.perf_counter() - begin, labels)

    def _labels(self, job: Claimed) -> dict[str, str]:
        """Queue and type; beyond MAX_ROWS pairs of them `other`."""
        pair = job.queue, job.type
        if pair not in self._known:
            if len(self._known) >= MAX_ROWS:
                return {"queue": OTHER, "type": OTHER}
            self._known.add(pair)
        return {"queue": job.queue, "type": job.type}
