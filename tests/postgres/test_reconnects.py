"""Real workers and producers while the server goes away: they wait, go on by themselves, and run nothing twice."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ended import all_ended
from tests.support.processes import Process, let_pass, until
from tests.support.proxy import Proxy
from tests.support.servers.address import Address
from tests.support.servers.postgres import Mode, PostgresServer, new_standby
from tests.support.stores import postgres_url
from tests.torture.rules import QUEUES
from tests.torture.yard import Yard
from windlass import App, Job, NewJob
from windlass.core.ids import new_id
from windlass.observe.history import HISTORY_FOLDER


class Mill:
    """A yard with a worker and, if wanted, a producer at work."""

    def __init__(self, folder: Path, url: str, lease: str = "1s") -> None:
        self.yard = Yard(folder, url=url, lease=lease)
        self.app: App = self.yard.app
        self.app.stats.counts()
        self.workers: list[Process] = []

    def worker(self) -> Process:
        worker = self.yard.worker("--concurrency", "4", "--drain", "1s", "--queues", ",".join(QUEUES))
        self.workers.append(worker)
        until(lambda: self.yard.runners_of(worker), "the worker claims")
        return worker

    def produce(self) -> Process:
        producer = self.yard.processes.start("producer", "produce.py", "1")
        until(lambda: self.done() > 5, "jobs are enqueued and done")
        return producer

    def nap(self, seconds: float, times: int) -> None:
        """Jobs that run for a while: they do."""
        payload = json.dumps({"seconds": seconds})
        self.app.enqueue_many([NewJob(id=new_id(), type="anap", payload=payload) for _ in range(times)])
        until(lambda: self.app.stats.counts().totals["running"] == times, "all of them run")

    def done(self) -> int:
        return int(self.app.stats.counts().totals["completed"])

    def goes_on(self) -> None:
        """More is done than now."""
        done = self.done()
        until(lambda: self.done() > done + 5, "work goes on")

    def end(self, producer: Process | None = None) -> list[Job]:
        """Everything is done, no process has died, and no law was broken; the jobs."""
        (self.yard.folder / "stop").touch()
        if producer is not None:
            assert producer.wait() == 0
        until(lambda: all_ended(self.app), "every job ends", 60)
        for worker in self.workers:
            worker.send(signal.SIGTERM)
        assert [worker.wait() for worker in self.workers] == [0] * len(self.workers)
        assert not any("Traceback" in process.output for process in self.yard.processes.started)
        report = self.yard.audit()
        assert not report.violations, str(report)
        return list(self.app.jobs.list(limit=500).items)


@pytest.fixture(autouse=True)
def remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own enqueues belong into the history of the yard too."""
    monkeypatch.setenv(HISTORY_FOLDER, str(tmp_path / "history"))


@pytest.fixture
def mill(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Mill]:
    made = Mill(tmp_path, postgres_server.dsn())
    yield made
    made.yard.close()


@pytest.mark.extended
def test_a_server_that_stops_at_once_and_comes_back_under_load_loses_nothing(
    mill: Mill, postgres_server: PostgresServer
) -> None:
    worker = mill.worker()
    producer = mill.produce()
    for mode in (Mode.IMMEDIATE, Mode.FAST):
        postgres_server.stop(mode)
        let_pass(0.3)
        postgres_server.start()
        mill.goes_on()
    mill.end(producer)
    assert "works again" in worker.output


def test_an_outage_longer_than_the_leases_makes_nothing_run_twice(
    mill: Mill, postgres_server: PostgresServer
) -> None:
    workers = [mill.worker(), mill.worker()]
    mill.nap(5, 8)
    runners = [worker.runner() for worker in workers]
    postgres_server.stop(Mode.IMMEDIATE)
    let_pass(3)
    postgres_server.start()
    jobs = mill.end()
    assert [(job.status, job.attempt) for job in jobs] == [("completed", 1)] * 8
    for worker, runner in zip(workers, runners, strict=True):
        assert f"(pid {runner}) ended: exit code 0" in worker.output, "the runner was replaced"


def test_a_standby_that_becomes_the_primary_is_found_by_the_address(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    standby = new_standby(postgres_server)
    standby.start()
    # What is acknowledged is there on both.
    postgres_server.address.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    postgres_server.address.execute("SELECT pg_reload_conf()")
    hosts = f"127.0.0.1:{postgres_server.port},127.0.0.1:{standby.port}"
    mill = Mill(tmp_path, f"postgresql://windlass@{hosts}/postgres?target_session_attrs=read-write", lease="3s")
    try:
        mill.worker()
        producer = mill.produce()
        postgres_server.kill()
        let_pass(0.5)
        standby.address.execute("SELECT pg_promote()")
        mill.goes_on()
        mill.end(producer)
    finally:
        mill.yard.close()
        standby.remove()


def test_a_worker_goes_on_when_a_silent_connection_answers_again(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    host, _, port = url.rpartition("/")[0].rpartition("@")[2].partition(":")
    with Proxy(host, int(port)) as proxy:
        mill = Mill(tmp_path, url.replace(f":{port}/", f":{proxy.port}/"))
        try:
            mill.worker()
            mill.nap(4, 4)
            proxy.fall_silent()
            let_pass(2)
            proxy.speak()
            jobs = mill.end()
            assert [(job.status, job.attempt) for job in jobs] == [("completed", 1)] * 4
        finally:
            mill.yard.close()


def test_a_worker_without_a_connection_to_be_had_waits_for_one(mill: Mill, postgres_server: PostgresServer) -> None:
    worker = mill.worker()
    mill.nap(2, 2)
    with Address(postgres_server.dsn("template1")).connect() as watcher:
        watcher.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS false")
        watcher.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, 'windlass')"
        )
        until(lambda: "failed, trying again" in worker.output, "the worker is in trouble")
        let_pass(2)
        watcher.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS true")
    jobs = mill.end()
    assert [(job.status, job.attempt) for job in jobs] == [("completed", 1)] * 2
