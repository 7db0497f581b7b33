"""Python workers that reach only a REST server: every kind of handler, and what faults do to their jobs."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.remote_stage import Remote
from tests.support.processes import let_pass, until
from tests.support.servers.ports import free_port
from windlass import App, ConfigError, Fixed
from windlass.client.app import CLIENT_DEADLINE
from windlass.remote import TokenRefused, Worker
from windlass.testing.workers.proxy import Exchange


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    made = Remote(tmp_path, f"sqlite:///{tmp_path}/jobs.db")
    yield made
    made.end()


def test_every_kind_of_handler_runs_without_the_store(remote: Remote) -> None:
    remote.app.queue("patient", retry=Fixed(base=1000))
    kinds = ["twice", "nap", "give_up", "not_needed"]
    ids = {type_: remote.enqueue(type_, {"n": 7}) for type_ in ("on_loop", "in_thread", "in_process")}
    ids |= {type_: remote.enqueue(type_) for type_ in kinds}
    ids |= {type_: remote.enqueue(type_, timeout=0.5, max_attempts=1) for type_ in ("fail", "too_long")}
    ids["die_alone"] = remote.enqueue("die_alone", max_attempts=9)
    patient = remote.enqueue("queue_decides", queue="patient")
    worker = remote.worker("--queues", "default,patient", "--concurrency", "4")
    ended = {type_: remote.ends(id_) for type_, id_ in ids.items()}
    assert [(ended[each].status, ended[each].reason or "") for each in ("not_needed", "give_up")] == [
        ("cancelled", "not needed"),
        ("dead", "no use"),
    ]
    # It is attempted once more if it ran beside the job that kills its runner.
    assert ended["twice"].result >= 2
    assert (ended["twice"].failures, ended["nap"].result) == (1, 1)
    assert ended["on_loop"].result[:2] == [7, "hello"]
    assert ended["on_loop"].progress is not None
    assert (ended["on_loop"].progress.note, [line.text for line in ended["on_loop"].logs]) == (
        "half",
        ["around", "begun"],
    )
    assert "in a process" in [line.text for line in ended["in_process"].logs]
    assert ended["in_process"].result[0] not in worker.tree()
    children = (ended["on_loop"].result[2], ended["in_thread"].result, ended["in_process"].result[1])
    for child in children:
        assert (remote.ends(child).result, remote.job(child).parent is not None) == (7, True)
    for type_, error in (("fail", "ValueError"), ("too_long", "TimeoutError")):
        found = ended[type_].error
        assert (ended[type_].status, found.type if found else "") == ("dead", error), type_
    assert (ended["die_alone"].status, ended["die_alone"].crashes) == ("dead", 3)
    until(lambda: remote.job(patient).status == "failed", "the job of the patient queue has failed")
    assert (remote.job(patient).run_at - datetime.now(UTC)).total_seconds() > 500
    assert "nowhere.invalid" not in worker.output
    assert "httpx" not in worker.output


def test_a_handler_that_blocks_its_runner_beyond_the_timeout_fails(remote: Remote) -> None:
    id_ = remote.enqueue("hang", timeout=0.5, max_attempts=1)
    worker = remote.worker()
    job = remote.ends(id_)
    assert job.error is not None
    assert (job.status, job.failures, job.crashes, job.error.type) == ("dead", 1, 0, "TimeoutError")
    after = remote.enqueue("child_task", {"n": 1})
    assert remote.ends(after).result == 1
    assert not worker.ended


def test_a_stopped_worker_finishes_its_jobs_and_signs_off(remote: Remote) -> None:
    file, port = remote.folder / "now", free_port()
    id_ = remote.enqueue("wait", {"file": str(file)})
    worker = remote.worker("--health", f"127.0.0.1:{port}")
    remote.runs(id_)
    assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    (listed,) = remote.app.workers.list()
    assert (listed.rest, listed.slots, listed.running, "wait" in listed.types) == (True, 10, 1, True)
    worker.send(signal.SIGTERM)
    until(lambda: httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 503, "it drains")
    file.touch()
    assert worker.wait() == 0
    assert (remote.job(id_).status, remote.job(id_).result) == ("completed", 1)
    assert remote.app.workers.list() == []


def test_a_sum_over_server_and_worker_counts_each_job_once(remote: Remote) -> None:
    ids, port = [remote.enqueue("child_task", {"n": n}) for n in range(3)], free_port()
    remote.worker("--health", f"127.0.0.1:{port}")
    ids += [remote.enqueue("in_thread", {"n": 1}), remote.enqueue("fail", max_attempts=1)]
    until(lambda: all(remote.job(id_).finished for id_ in ids), "all are finished")
    until(lambda: remote.app.stats.counts().totals["completed"] == 5, "also what a handler enqueued")
    key = {"Authorization": f"Bearer {remote.app.tokens.create('prometheus', ['read']).text}"}
    pages = [
        remote.served.client.get("/metrics", headers=key).text,
        httpx.get(f"http://127.0.0.1:{port}/metrics").text,
    ]
    samples = [each for page in pages for family in text_string_to_metric_families(page) for each in family.samples]
    found: Counter[str] = Counter()
    for each in samples:
        found[each.name] += int(each.value)
    counted = ("started_total", "completed_total", "failed_total", "dead_total", "enqueued_total")
    assert [found[f"windlass_jobs_{name}"] for name in counted] == [6, 5, 1, 1, 1]
    assert [found[f"windlass_job_{name}_seconds_count"] for name in ("run", "wait")] == [6, 6]
    assert found["windlass_slots"] == 10
    assert 'windlass_store_call_seconds_count{verb="settle"}' in pages[1]


@pytest.mark.extended
def test_a_second_signal_puts_running_jobs_back_uncounted(remote: Remote) -> None:
    id_ = remote.enqueue("wait", {"file": str(remote.folder / "never")})
    worker = remote.worker()
    remote.runs(id_)
    worker.send(signal.SIGTERM)
    until(lambda: "stopping:" in worker.output, "it drains")
    let_pass(0.2)  # two signals within a moment are one request
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    job = remote.job(id_)
    assert (job.status, job.failures, job.crashes, job.requeues) == ("pending", 0, 0, 1)


def test_a_cancelled_job_ends(remote: Remote) -> None:
    id_ = remote.enqueue("wait", {"file": str(remote.folder / "never")})
    remote.worker()
    remote.runs(id_)
    remote.app.jobs.cancel(id_)
    assert remote.ends(id_).status == "cancelled"


def test_a_queue_gets_no_more_slots_than_it_may_take(remote: Remote) -> None:
    file = remote.folder / "now"
    ids = [remote.enqueue("picture", {"file": str(file)}, queue="images") for _ in range(3)]
    other = remote.enqueue("wait", {"file": str(remote.folder)})
    remote.worker("--queues", "images:1,default")
    remote.ends(other)
    assert sorted(remote.job(id_).status for id_ in ids) == ["pending", "pending", "running"]
    file.touch()
    for id_ in ids:
        assert remote.ends(id_).status == "completed"


def test_the_jobs_of_a_killed_worker_run_again(remote: Remote) -> None:
    file = remote.folder / "now"
    ids = [remote.enqueue("wait", {"file": str(file)}) for _ in range(2)]
    worker = remote.worker()
    for id_ in ids:
        remote.runs(id_)
    for pid in worker.tree():
        os.kill(pid, signal.SIGKILL)
    file.touch()
    remote.worker()
    assert [remote.ends(id_).attempts[0].outcome for id_ in ids] == ["crashed among several"] * 2


def test_a_killed_runner_is_reported_by_its_supervisor_at_once(remote: Remote) -> None:
    file = remote.folder / "now"
    id_ = remote.enqueue("wait", {"file": str(file)})
    worker = remote.worker()
    remote.runs(id_)
    os.kill(worker.runner(), signal.SIGKILL)
    until(lambda: remote.job(id_).attempt == 2 or remote.job(id_).status == "pending", "it was put back")
    file.touch()
    job = remote.ends(id_)
    assert (job.crashes, job.attempts[0].outcome, job.result) == (1, "crashed", 2)
    assert not worker.ended


def test_a_worker_that_stood_still_for_longer_than_its_lease_writes_nothing_late(remote: Remote) -> None:
    file = remote.folder / "now"
    id_ = remote.enqueue("wait", {"file": str(file)})
    still = remote.worker()
    remote.runs(id_)
    tree = still.tree()
    for pid in tree:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: remote.job(id_).status == "pending", "its lease is over")
    other = remote.worker()
    until(lambda: remote.job(id_).attempt == 2, "another worker has the job")
    file.touch()
    job = remote.ends(id_)
    assert (job.result, job.crashes) == (2, 1)
    other.send(signal.SIGTERM)
    assert other.wait() == 0
    for pid in tree:
        os.kill(pid, signal.SIGCONT)
    later = remote.enqueue("wait", {"file": str(file)})
    assert remote.ends(later).result == 1
    assert (remote.job(id_).result, len(remote.job(id_).attempts)) == (2, 2)


def test_jobs_outlive_a_server_that_is_away_for_longer_than_a_lease(remote: Remote) -> None:
    file = remote.folder / "now"
    ids = [remote.enqueue("wait", {"file": str(file)}) for _ in range(3)]
    worker = remote.worker()
    for id_ in ids:
        remote.runs(id_)
    lease = remote.job(ids[0]).lease_expires_at
    assert lease is not None

    def wait() -> None:
        until(lambda: datetime.now(UTC) > lease, "the lease is over")

    remote.restart_server(after=wait)
    file.touch()
    assert [remote.ends(id_).status for id_ in ids] == ["completed"] * 3
    last = remote.enqueue("wait", {"file": str(file)})
    assert remote.ends(last).status == "completed"
    assert not worker.ended


@pytest.mark.parametrize("path", ["/claims", "/claims/settle"])
def test_a_lost_answer_neither_loses_a_job_nor_runs_it_twice(remote: Remote, path: str) -> None:
    lost: list[Exchange] = []

    def lose(exchange: Exchange) -> bool:
        if len(lost) == 3 or exchange.path != path or not (exchange.jobs or path != "/claims"):
            return False
        lost.append(exchange)
        return True

    remote.proxy.lose_reply = lose
    ids = [remote.enqueue("child_task", {"n": n}) for n in range(20)]
    remote.worker("--concurrency", "4")
    assert [(remote.ends(id_).result, remote.job(id_).attempt) for id_ in ids] == [(n, 1) for n in range(20)]
    assert lost


@pytest.mark.extended
def test_a_connection_cut_before_the_settlement_arrived_loses_nothing(remote: Remote) -> None:
    cut: list[Exchange] = []

    def lose(exchange: Exchange) -> bool:
        if len(cut) == 3 or exchange.path != "/claims/settle":
            return False
        cut.append(exchange)
        return True

    remote.proxy.lose_request = lose
    ids = [remote.enqueue("child_task", {"n": n}) for n in range(5)]
    remote.worker()
    assert [(remote.ends(id_).result, remote.job(id_).attempt) for id_ in ids] == [(n, 1) for n in range(5)]
    assert len(cut) == 3


def test_a_revoked_token_ends_the_worker_and_its_jobs_go_to_others(remote: Remote) -> None:
    file = remote.folder / "now"
    id_ = remote.enqueue("wait", {"file": str(file)})
    worker = remote.worker("--drain", "1s")
    remote.runs(id_)
    remote.app.tokens.revoke(remote.token.token.id)
    assert worker.wait() == 1
    assert "refuses the token" in worker.output
    assert "Traceback" not in worker.output
    until(lambda: remote.job(id_).status == "pending", "its job is put back")
    file.touch()
    remote.worker(token=remote.app.tokens.create("other", ["work"]).text)
    assert remote.ends(id_).status == "completed"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--lease", "5s"), "--worker-lease"),
        (("--until-empty",), "needs the store itself"),
        (("--server", "jobs.example.com"), "should be a URL"),
    ],
)
def test_what_only_a_store_offers_is_refused(remote: Remote, options: tuple[str, ...], said: str) -> None:
    worker = remote.worker(*options)
    assert worker.wait() == 2
    assert said in worker.output
    assert "Traceback" not in worker.output


def test_a_wrong_token_is_refused_at_the_start(remote: Remote) -> None:
    worker = remote.worker(token="wl_none")
    assert worker.wait() == 1
    assert "refuses the token" in worker.output


async def test_a_worker_in_a_program_runs_jobs_through_the_server(remote: Remote) -> None:
    app = App("postgresql://nowhere.invalid/jobs")

    @app.task
    async def twofold(n: int) -> int:
        return 2 * n

    @app.task
    async def chain_of(n: int) -> str:
        return (await twofold.aenqueue(n)).id

    address = f"http://127.0.0.1:{remote.served.port}"
    id_ = await asyncio.to_thread(remote.enqueue, "chain_of", {"n": 4})
    async with Worker(app, address, token=remote.token.text, concurrency=2):
        job = await asyncio.to_thread(remote.ends, id_)
        assert (await asyncio.to_thread(remote.ends, job.result)).result == 8
    assert await remote.app.workers.alist() == []
    await app.aclose()


async def test_a_worker_in_a_program_is_refused_without_a_token_or_with_a_wrong_one(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDLASS_TOKEN", raising=False)
    address = f"http://127.0.0.1:{remote.served.port}"
    with pytest.raises(ConfigError, match="no token"):
        Worker(App(), address)
    with pytest.raises(TokenRefused):
        async with Worker(App(), address, token="wl_none"):
            pass


def test_a_worker_waits_for_a_server_that_is_away_at_its_start_and_can_be_stopped_meanwhile(remote: Remote) -> None:
    id_ = remote.enqueue("child_task", {"n": 1})

    def start_workers() -> None:
        stopped, waiting = remote.worker(), remote.worker()
        for each in (stopped, waiting):
            until(lambda each=each: "asking the server" in each.output, "it has asked")  # type: ignore[misc]
        stopped.send(signal.SIGTERM)
        assert stopped.wait() == 0
        let_pass(CLIENT_DEADLINE + 1)
        assert not waiting.ended

    remote.restart_server(after=start_workers)
    assert remote.ends(id_).result == 1
