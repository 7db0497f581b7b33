"""Metrics of this process, for programs that expose them by prometheus-client: `pip install 'windlass[metrics]'`.

    from prometheus_client import make_asgi_app
    from windlass.metrics import registry

    metrics = make_asgi_app(registry)

Importing this module starts the counting: of enqueued jobs, store calls, and what an embedded worker does. Worker,
server and coordinator have a `/metrics` of their own, and need no library for it.
"""

from collections.abc import Iterable

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from windlass.observe.families import Family, process_families
from windlass.observe.process import want_figures

__all__ = ["WindlassCollector", "registry"]

LibraryFamily = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class WindlassCollector(Collector):
    """Reads the figures of this process at each scrape; may be registered with another registry."""

    def collect(self) -> Iterable[LibraryFamily]:
        """The families of this process."""
        return [_to_library(family) for family in process_families(want_figures().read())]

    def describe(self) -> Iterable[LibraryFamily]:
        """Nothing: names are known at the scrape."""
        return []


def _to_library(family: Family) -> LibraryFamily:
    if family.kind == "histogram":
        return _histogram(family)
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    made = kind(family.name, family.help, labels=family.labels)
    for labels, value in family.values:
        made.add_metric(labels, value)
    return made


def _histogram(family: Family) -> HistogramMetricFamily:
    made = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    bounds = [*(repr(float(each)) for each in family.bounds), "+Inf"]
    for labels, timing in family.timings:
        counts = [sum(timing.bins[: i + 1]) for i in range(len(bounds))]
        made.add_metric(labels, list(zip(bounds, counts, strict=True)), timing.sum)
    return made


want_figures()
registry = CollectorRegistry(auto_describe=False)
"""The figures of this process; register more collectors here, or `WindlassCollector()` in your registry."""
registry.register(WindlassCollector())
