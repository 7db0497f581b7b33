"""Webhooks while workers are killed: each end is delivered, and is one delivery."""

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import until
from tests.support.servers.ports import free_port
from windlass.client.runtime.location import NETWORKS_VARIABLE
from windlass.core.webhooks.delivery import WEBHOOK_TYPE

JOBS = 120
NETWORKS = {NETWORKS_VARIABLE: "127.0.0.0/8"}


class Receiver(ThreadingHTTPServer):
    """Keeps the id of each delivery."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Post)
        self.accepted: Counter[str] = Counter()
        self.lock = threading.Lock()


class Post(BaseHTTPRequestHandler):
    """One request."""

    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            self.server.accepted[self.headers["webhook-id"]] += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def _has_more(receiver: Receiver, than: int) -> bool:
    return len(receiver.accepted) > than


@on_every_store
def test_workers_that_are_killed_one_after_the_other_lose_no_delivery_and_double_none(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NETWORKS_VARIABLE, "127.0.0.0/8")
    stage.app.webhooks.add("ops", f"http://127.0.0.1:{receiver.server_port}/", types=["quick"])
    for _ in range(2):
        before = len(receiver.accepted)
        stage.enqueue("quick", JOBS // 3)
        worker = stage.worker(environment=NETWORKS)
        until(partial(_has_more, receiver, before), "deliveries have begun")
        worker.kill()
    stage.enqueue("quick", JOBS // 3)
    stage.worker(environment=NETWORKS)
    until(lambda: len(receiver.accepted) == JOBS, "every end is delivered")
    stage.until_finished()
    deliveries = stage.all_jobs(type=WEBHOOK_TYPE)
    assert {job.id for job in deliveries} == receiver.accepted.keys()
    reported = Counter(job.payload["event"]["data"]["job"] for job in deliveries)
    assert reported == dict.fromkeys(stage.ids, 1)


def test_a_worker_until_empty_does_not_wait_for_a_receiver_that_is_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NETWORKS_VARIABLE, "127.0.0.0/8")
    stage.app.webhooks.add("away", f"http://127.0.0.1:{free_port()}/")
    stage.enqueue("quick", 1)
    worker = stage.worker(environment=NETWORKS)
    until(lambda: stage.all_jobs("failed", WEBHOOK_TYPE), "the delivery has failed, and will be tried again")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert stage.start_worker("--until-empty", environment=NETWORKS).wait() == 0
    assert len(stage.all_jobs("failed", WEBHOOK_TYPE)) == 1
