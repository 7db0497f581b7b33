"""/metrics of real workers: sums over runners and their deaths, and the coordinator's gauges."""

import os
import shutil
import signal
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.stage import SHOP, Stage, free_port
from tests.support.addresses import on_every_store
from tests.support.processes import until


class Scraper:
    """Reads one health port again and again; no counter may ever fall."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._before: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}

    def scrape(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as response:
            families = list(text_string_to_metric_families(response.read().decode()))
        found = {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}
        rising = {
            (s.name, frozenset(s.labels.items())): s.value
            for family in families
            for s in family.samples
            if family.type in ("counter", "histogram")
        }
        for key, before in self._before.items():
            assert rising.get(key, 0) >= before, f"{key} fell"
        self._before = dict(rising)
        return found

    def value(self, name: str, **labels: str) -> float:
        """The sum of the series with these labels."""
        found = self.scrape()
        return sum(
            value for (each, has), value in found.items() if each == name and labels.items() <= dict(has).items()
        )


@on_every_store
def test_counters_of_several_runners_survive_the_death_of_one(stage: Stage) -> None:
    port = free_port()
    stage.worker("--processes", "2", "--concurrency", "3", "--health", f"127.0.0.1:{port}")
    worker, scraper = stage.workers[-1], Scraper(port)
    stage.enqueue("quick", 200)
    until(lambda: scraper.value("windlass_jobs_completed_total", type="quick") == 200, "all are counted")
    assert scraper.value("windlass_slots") == 6
    blocked = stage.enqueue("block", 1, gate="gate")
    stage.until_started(blocked)
    until(lambda: scraper.value("windlass_slots_busy") == 1, "one slot is busy")
    victim = stage.history.starts(blocked[0])[0].pid
    os.kill(victim, signal.SIGKILL)
    until(lambda: scraper.value("windlass_jobs_rescued_total", type="block") == 1, "the rescue is counted")
    assert scraper.value("windlass_jobs_completed_total", type="quick") == 200
    stage.open("gate")
    stage.enqueue("quick", 50)
    stage.until_finished()
    until(lambda: scraper.value("windlass_jobs_completed_total") == 251, "every completion is counted once")
    assert scraper.value("windlass_jobs_started_total") == 252
    assert scraper.value("windlass_job_run_seconds_count") == 251
    assert scraper.value("windlass_store_call_seconds_count", verb="claim") > 0
    assert worker.runners()


def test_what_handlers_in_processes_of_their_own_enqueue_is_counted_by_their_runner(stage: Stage) -> None:
    shutil.copy(SHOP.with_name("offshoot.py"), stage.folder / "offshoot.py")
    port = free_port()
    stage.worker("--health", f"127.0.0.1:{port}", app="offshoot:app")
    scraper = Scraper(port)
    stage.enqueue("spread", 2, jobs=3)
    stage.enqueue("spread_and_die", 1, jobs=4)
    stage.until_finished()
    until(lambda: scraper.value("windlass_jobs_completed_total", type="quick") == 6 + 3 * 4, "all are counted")
    assert scraper.value("windlass_jobs_enqueued_total", type="quick") == 18
    assert scraper.value("windlass_store_call_seconds_count", verb="enqueue") == 18
    assert scraper.value("windlass_jobs_failed_total", type="spread_and_die") == 3
    assert scraper.value("windlass_jobs_dead_total", type="spread_and_die", reason="crashed") == 1


@pytest.mark.extended
@on_every_store
def test_no_counter_falls_and_no_histogram_jumps_while_runners_are_killed(stage: Stage) -> None:
    port = free_port()
    worker, scraper = stage.worker("--processes", "2", "--health", f"127.0.0.1:{port}"), Scraper(port)
    for _ in range(8):
        stage.enqueue("nap", 60)
        os.kill(until(worker.runners, "a runner lives")[-1], signal.SIGKILL)
        for _ in range(5):
            scraper.scrape()
    stage.until_finished()
    before, settled = scraper.value("windlass_jobs_completed_total"), len(stage.all_jobs(status="completed"))
    assert 0 < before <= settled == 480
    assert before <= scraper.value("windlass_job_run_seconds_count") <= settled
    stage.enqueue("nap", 60)
    stage.until_finished()
    until(
        lambda: scraper.value("windlass_jobs_completed_total") == before + 60, "what comes later is counted in full"
    )
    seconds = scraper.value("windlass_job_run_seconds_sum")
    assert seconds < 60 * 540, "no time is out of place"


def test_a_worker_shows_nothing_of_the_store_and_a_coordinator_does(stage: Stage) -> None:
    worker_port, coordinator_port = free_port(), free_port()
    stage.worker("--health", f"127.0.0.1:{worker_port}")
    stage.processes.start("coordinator", "-m", "windlass", "coordinator", "--health", f"127.0.0.1:{coordinator_port}")
    stage.enqueue("quick", 3)
    stage.until_finished()
    until(lambda: listens(coordinator_port), "the coordinator listens")
    coordinator = Scraper(coordinator_port)
    assert coordinator.value("windlass_queue_jobs", status="completed") == 3
    assert coordinator.value("windlass_workers") == 1
    assert coordinator.value("windlass_coordinator_up") == 1
    names = {name for name, _ in Scraper(worker_port).scrape()}
    assert not [name for name in names if name.startswith(("windlass_queue", "windlass_coordinator", "windlass_w"))]


def listens(port: int) -> bool:
    try:
        return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status == 200)
    except OSError:
        return False
