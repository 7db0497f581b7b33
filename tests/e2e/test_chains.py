"""Chains in real workers: in order, each link with the result before it, whatever is killed meanwhile."""

import os
import signal
from itertools import pairwise

import msgspec

from tests.e2e.stage import Stage
from tests.support.processes import until
from windlass import NewJob

LINKS = 1000
KILLS = 4


def sums(count: int) -> list[NewJob]:
    """A chain of additions: each link adds one to what the link before it came to."""
    jobs = [Stage.make("add", a=0, b=1)]
    for _ in range(1, count):
        before = jobs[-1].id
        link = msgspec.structs.replace(
            Stage.make("add", b=1), parent=before, parents=(before,), takes=(("a", before),)
        )
        jobs.append(link)
    return jobs


def test_a_chain_of_a_thousand_links_holds_while_its_runners_are_killed(stage: Stage) -> None:
    ids = stage.hand_in_all(sums(LINKS))
    worker = stage.worker("--processes", "2")
    for kill in range(1, KILLS + 1):
        until(lambda: stage.app.stats.counts().totals["completed"] >= LINKS * kill // (KILLS + 1), "it goes on")  # noqa: B023
        for runner in worker.runners():
            os.kill(runner, signal.SIGKILL)
        until(lambda: len(worker.runners()) == 2, "new runners are there")
    stage.until_finished()

    assert stage.job(ids[-1]).result == LINKS, "each link counted once in what came after it"
    ends = {id_: stage.history.ends(id_)[-1].at for id_ in ids}
    starts = {id_: stage.history.starts(id_)[0].at for id_ in ids}
    late = [(a, b) for a, b in pairwise(ids) if ends[a] > starts[b]]
    assert late == [], "a link began before the one before it was over"
    again = {id_ for id_ in ids if stage.job(id_).attempt > 1}
    assert len(again) <= 2 * KILLS, "only what ran when a runner was killed may run again"
    stage.check(again=again)
    stage.close_down()
