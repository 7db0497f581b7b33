"""The metrics of a worker: the sums over its runners, also over those that have ended."""

from collections.abc import Iterable
from itertools import permutations
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from windlass.observe import process
from windlass.observe.figures import Figures
from windlass.observe.reading import MAX_ROWS
from windlass.worker.config import WorkerConfig
from windlass.worker.supervisor.metrics import WorkerMetrics

Counted = dict[tuple[str, str], float]


class Counting:
    """A runner that has started each of these types once."""

    def __init__(self, types: Iterable[int]) -> None:
        self.figures = Figures()
        self.table = SimpleNamespace(held=lambda: ())
        for number in types:
            self.figures.count("started", "q", f"t{number}")


async def started(metrics: WorkerMetrics) -> Counted:
    """How many attempts a scrape says were started, by queue and type."""
    _, text = await metrics.expose("")
    families = text_string_to_metric_families(text.decode())
    (found,) = [each.samples for each in families if each.name == "windlass_jobs_started"]
    return {(each.labels["queue"], each.labels["type"]): each.value for each in found}


@pytest.mark.parametrize("order", [*permutations(range(3))])
async def test_no_counter_goes_down_when_runners_with_many_types_end(
    order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_wanted", False)
    monkeypatch.setattr(process, "_figures", {})
    half = MAX_ROWS // 2
    runners = [Counting(range(number * half, number * half + MAX_ROWS)) for number in range(3)]
    alive: dict[Any, None] = dict.fromkeys(runners)
    metrics = WorkerMetrics(cast(WorkerConfig, SimpleNamespace(processes=3, concurrency=1)), alive.keys())
    before = await started(metrics)
    for number in order:
        del alive[runners[number]]
        metrics.retire(runners[number].figures)
        now = await started(metrics)
        assert {pair: value for pair, value in before.items() if now.get(pair, 0) < value} == {}
        assert sum(now.values()) == 3 * MAX_ROWS
        before = now
