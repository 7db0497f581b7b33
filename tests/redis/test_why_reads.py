"""What `why` reads of the statistics: those of the job's queue, however many other queues there are."""

import pytest

from tests.support.seed import new_job
from windlass.core.stats.meter import Meter
from windlass.store.redis.store import RedisStore
from windlass.store.redis.verbs import stats


async def test_why_reads_the_meters_of_its_queue_only(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    job = new_job(queue="mail")
    await store.jobs.enqueue([job])
    names = ["mail", *(f"other.{number}" for number in range(20))]
    await store.stats.record([Meter(queue=name, type=job.type, completed=1) for name in names])
    made, read = stats._meter, list[str]()

    def noted(place: bytes, value: bytes) -> Meter:
        meter = made(place, value)
        read.append(meter.queue)
        return meter

    monkeypatch.setattr(stats, "_meter", noted)
    facts = await store.operator.why_facts(job.id)
    assert facts is not None
    assert sum(facts.throughput.ended.values()) == 1
    assert set(read) == {"mail"}
