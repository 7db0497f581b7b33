"""Many processes on one file: no process starves, none is refused, and what was acknowledged is there."""

import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.parts import extended

EACH = 60

PRODUCER = f"""
import sys
import shop

for i in range({EACH} // 3):
    # One by one, as web requests do; and some together.
    print(shop.quick.enqueue().id, flush=True)
    for handle in shop.app.enqueue_many([shop.aquick.job(), shop.quick.job()]):
        print(handle.id, flush=True)
"""

ONE_JOB = """
import sys
import shop

print(shop.quick.using(id=sys.argv[1]).enqueue().existing)
"""


@on_every_store
@pytest.mark.parametrize("producers", [4, *extended([2, 8])])
def test_what_several_producers_enqueue_for_two_workers_runs_once_each(stage: Stage, producers: int) -> None:
    (stage.folder / "producer.py").write_text(PRODUCER)
    workers = [stage.start_worker() for _ in range(2)]
    started = [stage.processes.start("producer", "producer.py") for _ in range(producers)]
    assert [producer.wait(60) for producer in started] == [0] * producers
    acknowledged = [producer.output.split() for producer in started]
    assert [len(ids) for ids in acknowledged] == [EACH] * producers
    stage.ids += [id_ for ids in acknowledged for id_ in ids]
    stage.until_finished()

    assert len(set(stage.ids)) == EACH * producers
    assert stage.app.stats.counts().totals["completed"] == EACH * producers
    assert {effect.pid for effect in stage.history.starts()} <= {worker.runner() for worker in workers}
    stage.check()
    stage.close_down()


@on_every_store
def test_an_id_enqueued_twice_at_the_same_time_and_after_the_job_ended_runs_once(stage: Stage) -> None:
    (stage.folder / "enqueue_jobs.py").write_text(ONE_JOB)
    id_ = stage.make("quick").id
    stage.ids.append(id_)
    both = [stage.processes.start("enqueue_jobs", "enqueue_jobs.py", id_) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert sorted(process.output.strip() for process in both) == ["False", "True"]
    stage.worker()
    stage.until_status(id_, "completed")
    late = stage.processes.start("enqueue_jobs", "enqueue_jobs.py", id_)
    assert (late.wait(), late.output.strip()) == (0, "True")
    stage.enqueue_one("quick")
    stage.until_finished()
    assert stage.job(id_).attempt == 1
    stage.check()
    stage.close_down()
