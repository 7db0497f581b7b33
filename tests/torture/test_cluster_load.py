"""Twelve queues over the three masters of a Redis Cluster, under load: slots move, a master is lost, nothing else is.

The figures of each node are printed.
"""

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.ended import until_ended
from tests.support.processes import Process, let_pass, until
from tests.support.servers.redis_cluster import RedisCluster
from tests.support.servers.slot_move import SlotMove, home_of
from tests.torture.yard import Yard
from windlass import EnqueueFailed, EnqueueUnknown, NewJob
from windlass.client.runtime.process_id import this_process
from windlass.core.ids import new_id
from windlass.observe.history import HISTORY_FOLDER

PATIENCE = 90.0
LEASE = 5.0
QUEUES, MASTERS = 12, 3
AT_ONCE = 3
"""Jobs of one enqueue."""
FEWEST = 10
"""Jobs of each queue, at least."""


@pytest.mark.parametrize(
    "lost", ["a master", pytest.param("the master of the global keys", marks=pytest.mark.extended)]
)
def test_a_resharding_and_a_lost_master_lose_no_job_and_run_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_cluster: RedisCluster, lost: str
) -> None:
    scene = Scene(tmp_path, redis_cluster)
    monkeypatch.setenv(HISTORY_FOLDER, str(scene.yard.histories))
    try:
        scene.play(of_global_keys=lost != "a master")
    finally:
        scene.yard.close()


class Scene:
    """Two workers serve all queues, and a producer enqueues in all of them."""

    def __init__(self, folder: Path, cluster: RedisCluster) -> None:
        self._cluster = cluster
        # A failover loses nothing that a replica has.
        self.yard = Yard(folder, url=f"{cluster.url}?replicas=1", lease=f"{LEASE:g}s")
        self.queues = even_names(cluster)
        self.stored: Counter[str] = Counter()
        self._trouble: list[BaseException] = []

    def play(self, *, of_global_keys: bool) -> None:
        workers = [self._worker() for _ in range(2)]
        for worker in workers:
            until(lambda: self.yard.runners_of(worker) == 2, "its runners claim", PATIENCE)  # noqa: B023
        with self._load():
            self._until_more_in_each()
            self._reshard()
            self._until_more_in_each()
            self._lose_a_master(of_global_keys)
            self._until_more_in_each()
        until_ended(self.yard.app, PATIENCE)
        print(json.dumps(figures_per_node(self._cluster)))
        for worker in workers:
            worker.send(signal.SIGTERM)
        assert [worker.wait() for worker in workers] == [0, 0]
        report = self.yard.audit()
        assert not report.violations, str(report)
        assert self.yard.app.stats.counts().totals["completed"] == sum(self.stored.values())

    def _reshard(self) -> None:
        """A queue of each master goes to another one; while half of its keys have moved, no call to it succeeds."""
        first: dict[int, str] = {}
        for queue in self.queues:
            first.setdefault(home_of(self._cluster, queue).port, queue)
        assert len(first) == MASTERS
        for queue in first.values():
            self.yard.history.write("fault", kind=f"{queue} moves", pids=[], kills=False)
            move = SlotMove(self._cluster, queue)
            move.half()
            let_pass(0.3)
            move.finish()
            assert home_of(self._cluster, queue) is move.target
        self._cluster.settle()

    def _lose_a_master(self, of_global_keys: bool) -> None:
        global_home = home_of(self._cluster, "*")
        elsewhere = (queue for queue in self.queues if home_of(self._cluster, queue) is not global_home)
        queue = "*" if of_global_keys else next(elsewhere)
        lost = home_of(self._cluster, queue)
        self.yard.history.write("fault", kind="a master is lost", pids=[], kills=False)
        lost.kill()
        self._cluster.await_failover(f"{{{queue}}}", lost)
        lost.start()  # as a replica: else nothing counts as replicated
        self._cluster.settle()
        assert home_of(self._cluster, queue) is not lost

    @contextmanager
    def _load(self) -> Iterator[None]:
        stop = threading.Event()
        producer = threading.Thread(target=self._produce, args=(stop,))
        producer.start()
        try:
            yield
        finally:
            stop.set()
            producer.join()
        assert not self._trouble

    def _produce(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                for queue in self.queues:
                    self._enqueue(queue)
                stop.wait(0.01)
        except BaseException as error:
            self._trouble.append(error)
            raise

    def _enqueue(self, queue: str) -> None:
        """Again until it is stored: the ids stay the same."""
        jobs = [_job(queue) for _ in range(AT_ONCE)]
        while True:
            try:
                self.yard.app.enqueue_many(jobs)
            except (EnqueueFailed, EnqueueUnknown):
                continue
            self.stored[queue] += AT_ONCE
            return

    def _until_more_in_each(self) -> None:
        before = Counter(self.stored)
        until(
            lambda: min(self.stored[queue] - before[queue] for queue in self.queues) >= FEWEST,
            "each queue gets more jobs",
            PATIENCE,
        )

    def _worker(self) -> Process:
        queues = ",".join(self.queues)
        return self.yard.worker("--processes", "2", "--concurrency", "4", "--drain", "1s", "--queues", queues)


def even_names(cluster: RedisCluster) -> list[str]:
    """Twelve names of queues, of which every master has four: a queue per type, renamed where a master is full."""
    found: list[str] = []
    homes: Counter[int] = Counter()
    for number in range(QUEUES):
        names = (f"type-{number}{suffix}" for suffix in ("", *(f".{again}" for again in range(2, 100))))
        name = next(name for name in names if homes[home_of(cluster, name).port] < QUEUES // MASTERS)
        homes[home_of(cluster, name).port] += 1
        found.append(name)
    assert set(homes.values()) == {QUEUES // MASTERS}
    return found


def figures_per_node(cluster: RedisCluster) -> dict[int, dict[str, Any]]:
    """By port: its role now, keys, calls of scripts, and processor seconds."""
    found = {}
    for node in cluster.nodes:
        info, calls = node.info(), node.execute("INFO", "commandstats")
        script = calls.get("cmdstat_evalsha", {}) if isinstance(calls, dict) else {}
        found[node.port] = {
            "role": info["role"],
            "keys": info.get("db0", {}).get("keys", 0),
            "scripts": script.get("calls", 0),
            "cpu": round(info["used_cpu_user"] + info["used_cpu_sys"], 2),
        }
    return found


def _job(queue: str) -> NewJob:
    job = NewJob(id=new_id(), type="quick", payload='{"number":1}', queue=queue, max_attempts=1000)
    # As a task makes one: with an id of the caller's own, every queue would be asked whether it has it.
    return msgspec.structs.replace(job, fresh=this_process())
