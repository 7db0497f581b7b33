"""app.stats.recent and oldest, app.jobs.failures: how it goes, in seconds."""

from datetime import timedelta
from typing import Any

import pytest

from tests.client.labour import Labour
from windlass import App, Dead, InvalidOption, WindlassError
from windlass.core.meter import Meter, histogram
from windlass.core.moments import SECOND
from windlass.core.rates import by_queue, by_type, rates


async def test_what_was_recorded_is_read_as_rates_of_queues_and_types(app: App) -> None:
    store = await app._ready()
    slow, fast = histogram([4 * SECOND]), histogram([SECOND // 100])
    await store.stats.record(
        [
            Meter(queue="mail", type="a", completed=20, wait=fast, run=slow),
            Meter(
                queue="mail", type="b", completed=10, failed=1, dead=1, crashed=1, cancelled=5, wait=slow, run=fast
            ),
            Meter(queue="other", type="a", completed=1),
        ]
    )
    recent = await app.stats.arecent(timedelta(minutes=5))
    queues, types = by_queue(recent), by_type(recent)
    assert {name: (each.completed, each.failures) for name, each in queues.items()} == {
        "mail": (30, 3),
        "other": (1, 0),
    }
    assert {name: each.completed for name, each in types.items()} == {"a": 21, "b": 10}
    assert types["a"].run.p50 == pytest.approx(4, rel=1 / 16)
    assert types["b"].wait.p99 == pytest.approx(4, rel=1 / 16)
    assert queues["other"].run.p50 is None
    assert rates(recent).completed == 31
    assert 31 / 31 <= rates(recent).per_second <= 31 / 20


@pytest.mark.parametrize("length", [0, 3601, -1, float("nan"), "5m"])
def test_a_length_that_nobody_keeps_is_refused(app: App, length: Any) -> None:
    with pytest.raises(WindlassError, match="length"):
        app.stats.recent(length)


def test_the_oldest_is_told_in_seconds_for_queues_that_have_any(app: App) -> None:
    @app.task
    def waits() -> None: ...

    assert app.stats.oldest() == {}
    waits.using(queue="mail").enqueue()
    waits.using(queue="later", delay=60).enqueue()
    oldest = app.stats.oldest()
    assert oldest.keys() == {"mail"}
    assert 0 <= oldest["mail"] < 60


def test_failures_are_what_failed_last_first(app: App, labour: Labour) -> None:
    @app.task(type="t", max_attempts=5)
    def fails() -> None: ...

    first, second = fails.enqueue(), fails.enqueue()
    labour.fail(Dead("hopeless"))
    labour.fail(ValueError("not yet"))
    assert [(job.id, job.status) for job in app.jobs.failures()] == [(second.id, "failed"), (first.id, "dead")]
    assert [job.id for job in app.jobs.failures(1)] == [second.id]


@pytest.mark.parametrize("limit", [0, 1001, True, "1"])
def test_a_number_of_failures_that_cannot_be_is_refused(app: App, limit: Any) -> None:
    with pytest.raises(InvalidOption, match="limit: must be a whole number from 1 to 1000"):
        app.jobs.failures(limit)
