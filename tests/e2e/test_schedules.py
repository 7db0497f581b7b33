"""Schedules with real workers: each tick runs once, whichever process is killed or stopped."""

import signal

from tests.e2e.stage import Stage
from tests.support.addresses import on_sql
from tests.support.processes import freeze, signal_all, until
from windlass import Schedule


def _ticks(stage: Stage, name: str) -> list[int]:
    """The ticks that have a job, in seconds since the schedule was made."""
    schedule = stage.app.schedules.get(name)
    jobs = [job for job in stage.all_jobs() if job.schedule == name and job.tick is not None]
    return sorted(round((job.tick - schedule.created_at).total_seconds()) for job in jobs if job.tick is not None)


def _every_second(stage: Stage, name: str) -> Schedule:
    return stage.app.schedules.add(name, stage.make("aquick"), every=1, catch_up="all")


@on_sql
def test_scheduled_jobs_are_run_by_a_worker_and_none_before_its_tick(stage: Stage) -> None:
    stage.worker()
    _every_second(stage, "s")
    until(lambda: len(stage.all_jobs("completed")) >= 3, "three runs have ended")
    late = [
        (job.started_at - job.tick).total_seconds()
        for job in stage.all_jobs("completed")
        if job.started_at is not None and job.tick is not None
    ]
    assert len(late) >= 3
    assert min(late) >= 0
    ticks = _ticks(stage, "s")
    assert ticks == list(range(1, len(ticks) + 1))


@on_sql
def test_workers_that_are_killed_and_stopped_in_turn_run_each_tick_once(stage: Stage) -> None:
    first, second = stage.worker(), stage.worker()
    _every_second(stage, "s")
    until(lambda: len(_ticks(stage, "s")) >= 2, "a coordinator fires")
    freeze([first.pid], stage.inside.is_held_up)
    seen = len(_ticks(stage, "s"))
    until(lambda: len(_ticks(stage, "s")) > seen + 1, "the other fires, when there is no leader", 40)
    signal_all([first.pid], signal.SIGCONT)
    second.kill()
    seen = len(_ticks(stage, "s"))
    until(lambda: len(_ticks(stage, "s")) > seen + 1, "the first fires again", 40)
    ticks = _ticks(stage, "s")
    assert ticks == list(range(1, len(ticks) + 1)), "each once, none left out"
