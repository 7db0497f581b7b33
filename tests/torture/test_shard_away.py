"""One shard of a Redis cluster is away for longer than a lease: queues on the others go on, and lose nothing.

With `make torture`, or alone: TORTURE_KINDS=shard_away.
"""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from tests.support.ended import all_ended
from tests.support.processes import Process, let_pass, signal_all, until
from tests.support.servers.redis import RedisServer
from tests.support.servers.redis_cluster import RedisCluster
from tests.torture.faults.choice import wanted
from tests.torture.faults.long_jobs import OF_EACH_KIND
from tests.torture.yard import Yard
from windlass import NewJob
from windlass.client.runtime.process_id import this_process
from windlass.core.ids import new_id
from windlass.core.moments import SECOND
from windlass.observe.history import HISTORY_FOLDER

KIND = "shard_away"
PATIENCE = 60.0
LEASE = 3.0

if KIND not in (wanted() or ({KIND} if "TORTURE_SEEDS" in os.environ else ())):
    pytest.skip("a scene of `make torture`", allow_module_level=True)


def test_a_shard_that_is_away_stops_no_other_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_cluster: RedisCluster
) -> None:
    for node in redis_cluster.nodes:
        node.config(cluster_require_full_coverage="no")
    scene = Scene(tmp_path, redis_cluster)
    # What we enqueue belongs into the history too.
    monkeypatch.setenv(HISTORY_FOLDER, str(scene.yard.histories))
    try:
        scene.play()
    finally:
        scene.yard.close()


class Scene:
    """One worker serves both queues, another only the healthy one."""

    def __init__(self, folder: Path, cluster: RedisCluster) -> None:
        self._cluster = cluster
        self.yard = Yard(folder, url=cluster.url, lease=f"{LEASE:g}s")
        global_home = _home(cluster, "*")
        queues = [f"q{number}" for number in range(50)]
        self._away = next(queue for queue in queues if _home(cluster, queue) != global_home)
        self._healthy = next(queue for queue in queues if _home(cluster, queue) != _home(cluster, self._away))

    def play(self) -> None:
        both, one = self._worker(f"{self._away},{self._healthy}"), self._worker(self._healthy)
        for worker in (both, one):
            until(lambda: self.yard.runners_of(worker) == 2, "its runners claim", PATIENCE)  # noqa: B023
        long = [self._job(type_, seconds=4 * LEASE) for type_ in OF_EACH_KIND * 2]
        self._enqueue_jobs(*long)
        until(lambda: all(self._has_started(job) for job in long), "the long jobs run", PATIENCE)
        self._enqueue_jobs(*(self._job("quick", queue=self._away, number=number) for number in range(20)))
        self._lose_the_shard(both)
        until(lambda: all_ended(self.yard.app), "what was on the shard ends too", PATIENCE)
        for worker in (both, one):
            worker.send(signal.SIGTERM)
        assert [worker.wait() for worker in (both, one)] == [0, 0]
        report = self.yard.audit()
        assert not report.violations, str(report)

    def _lose_the_shard(self, both: Process) -> None:
        nodes = _with_replicas(self._cluster, _home(self._cluster, self._away))
        self.yard.history.write("fault", kind="a shard is away", pids=[], kills=False)
        for node in nodes:
            node.kill()
        let_pass(LEASE + 1)
        self._goes_on("at once")
        self._goes_on("when due", delay=SECOND)
        self._kill_a_runner(both)
        self._goes_on("after a runner was killed")
        for node in nodes:
            node.start()
        self._cluster.settle()

    def _goes_on(self, when: str, delay: int = 0) -> None:
        """Both workers have free slots, and one of them serves the queue that is away as well."""
        jobs = [self._job("quick", delay=delay, number=number) for number in range(20)]
        self._enqueue_jobs(*jobs)
        until(lambda: all(self._is_completed(job) for job in jobs), f"jobs of the healthy queue run {when}", PATIENCE)

    def _kill_a_runner(self, worker: Process) -> None:
        """Its job in the healthy queue runs again while the shard is still away."""
        (job,) = jobs = [self._job("long_thread", seconds=LEASE)]
        self._enqueue_jobs(*jobs)
        until(lambda: self._has_started(job), "a job to be broken off runs", PATIENCE)
        tree = worker.tree()
        self.yard.history.write("fault", kind="kill runners", pids=tree, until=1 << 62)
        signal_all(tree[1:], signal.SIGKILL)
        until(lambda: self._is_completed(job), "the job of a dead runner ends", PATIENCE)

    def _worker(self, queues: str) -> Process:
        return self.yard.worker("--processes", "2", "--concurrency", "4", "--drain", "1s", "--queues", queues)

    def _job(self, type_: str, queue: str = "", delay: int = 0, **payload: float) -> NewJob:
        ((name, value),) = payload.items()
        text = f'{{"{name}":{value:g}}}'
        place = queue or self._healthy
        job = NewJob(id=new_id(), type=type_, payload=text, queue=place, delay=delay, max_attempts=1000)
        # As a task makes one: with an id of the caller's own, every queue would be asked whether it has it.
        return msgspec.structs.replace(job, fresh=this_process())

    def _enqueue_jobs(self, *jobs: NewJob) -> None:
        self.yard.app.enqueue_many(list(jobs))

    def _has_started(self, job: NewJob) -> bool:
        return (self.yard.folder / f"started-{job.id}").exists()

    def _is_completed(self, job: NewJob) -> bool:
        return self.yard.app.jobs.get(job.id).status == "completed"


def _home(cluster: RedisCluster, queue: str) -> RedisServer:
    return cluster.master_of(f"windlass:{{{queue}}}:jobs")


def _with_replicas(cluster: RedisCluster, master: RedisServer) -> list[RedisServer]:
    """All that could answer for its slots."""
    replicas = [node for node in cluster.nodes if node.info().get("master_port") == master.port]
    return [master, *replicas]
