"""windlass.remote: the face of App, and the CLI, through a server; the same errors."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_serve import Served
from tests.support.processes import until
from windlass import App, FlowNotFound, NewJob, chain, group
from windlass.errors import (
    ConfigError,
    EnqueueFailed,
    InvalidOption,
    InvalidPayload,
    JobCancelled,
    JobNotFound,
    KeyConflict,
    NotAllowedNow,
    QueueClosed,
    QueueNotFound,
    ScheduleNotFound,
    WindlassError,
)
from windlass.remote import RemoteApp, RemoteRefused
from windlass.server.api.enqueue import make_job
from windlass.testing import run_all


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path, f"sqlite:///{tmp_path}/jobs.db")
    made.start()
    yield made
    made.end()


@pytest.fixture
def remote(served: Served) -> Iterator[RemoteApp]:
    """An app with a task, behind the server."""
    token = served.app.tokens.create("remote", ["admin"]).text
    made = RemoteApp(str(served.client.base_url), token=token, deadline="5s")

    @made.task(type="mail.welcome")
    def welcome(user_id: int) -> str:
        return str(user_id)

    yield made
    made.close()


def test_jobs_are_enqueued_read_and_changed_as_by_an_app(remote: RemoteApp, served: Served) -> None:
    welcome = remote.registry.get("mail.welcome")
    assert welcome.type == "mail.welcome"
    handles = remote.enqueue_many([_job(remote, number) for number in range(3)])
    ids = [handle.id for handle in handles]
    assert [job.id for job in remote.jobs.list().items] == ids[::-1]
    job = remote.jobs.get(ids[0])
    assert job == served.app.jobs.get(ids[0])
    assert remote.jobs.why(ids[0]).first.code == "no_worker"
    assert remote.jobs.change(ids[0], priority=3).priority == 3
    assert remote.jobs.cancel(ids[0]).status == "cancelled"
    assert remote.jobs.retry(ids[0]).status == "pending"
    assert remote.jobs.cancel_all(type="mail.welcome") == 3
    assert remote.jobs.delete_all(status="cancelled") == 3
    assert remote.stats.counts() == served.app.stats.counts()


def test_flows_are_read_cancelled_and_retried_as_by_an_app(remote: RemoteApp, served: Served) -> None:
    @served.app.task
    def task(user_id: int) -> int:
        return user_id

    with served.app.flow("order") as flow:
        first = flow.add(task.job(1), name="first")
        flow.add(task.job(2), name="second", after=[first], when="dead")
    assert remote.flows.get("order") == served.app.flows.get("order")
    assert remote.flows.tree(flow.id) == served.app.flows.tree(flow.id)
    assert [each.name for each in remote.flows.list()] == ["order"]
    assert {remote.flows.find(part) for part in ("order", flow.id, flow.id[:13], flow.id[-9:])} == {flow.id}
    with pytest.raises(FlowNotFound):
        remote.flows.find(flow.id[:13][::-1])
    assert remote.flows.cancel("order", "no").reason == "no"
    assert remote.flows.retry("order").live == 2
    with pytest.raises(FlowNotFound, match="no flow 'none'"):
        remote.flows.get("none")
    with pytest.raises(InvalidOption, match="flow: cannot be enqueued through a server"), remote.flow() as refused:
        refused.add(remote.tasks["mail.welcome"].job(1))


@pytest.mark.parametrize("name", ["a/b", "a/cancel", ".", "..", "a?b#c %2F", "0190a5c0-7b3e-7c11-9d2a-2f6f0c1e8a55"])
def test_a_flow_with_any_name_is_found_through_a_server(remote: RemoteApp, served: Served, name: str) -> None:
    @served.app.task
    def task(user_id: int) -> int:
        return user_id

    with served.app.flow(name) as flow:
        flow.add(task.job(1))
    assert remote.flows.get(name).id == flow.id
    assert remote.flows.cancel(name).cancelled == 1


def test_chains_and_groups_are_refused(remote: RemoteApp) -> None:
    first, second = (remote.tasks["mail.welcome"].job(number) for number in range(2))
    for field, made in (("chain", chain(first, second)), ("group", group([first, second]))):
        with pytest.raises(InvalidOption, match=f"{field}: cannot be enqueued through a server"):
            made.enqueue()
    assert remote.stats.counts().queues == {}


def test_queues_and_schedules_are_the_records_of_an_app(remote: RemoteApp, served: Served) -> None:
    remote.enqueue_many([_job(remote, 1)])
    remote.queues.set("default", rate_limit="10/s", retention={"completed": "7d"})
    assert remote.queues.list() == served.app.queues.list()
    assert remote.queues.pause("default", 60) == served.app.queues.get("default")
    remote.schedules.add("daily", _job(remote, 1), cron="0 9 * * *", tz="Europe/Berlin")
    (seen,), (stored,) = remote.schedules.list(), served.app.schedules.list()
    assert (seen.name, seen.rules.cron, seen.next_at) == (stored.name, stored.rules.cron, stored.next_at)
    assert remote.schedules.pause("daily").paused
    remote.schedules.remove("daily")
    assert remote.workers.list() == []


def test_the_same_errors_are_raised(remote: RemoteApp, served: Served) -> None:
    unknown = "01a1e88a-0725-743b-b420-c7b4decadc37"
    with pytest.raises(JobNotFound, match=unknown):
        remote.jobs.get(unknown)
    with pytest.raises(ScheduleNotFound, match="daily"):
        remote.schedules.get("daily")
    remote.schedules.add("nightly", _job(remote, 1), every="5m")
    with pytest.raises(ScheduleNotFound, match="did you mean 'nightly'") as no_schedule:
        remote.schedules.get("nightl")
    assert no_schedule.value.name == "nightl"
    with pytest.raises(QueueNotFound, match="did you mean 'default'") as no_queue:
        remote.queues.get("defalt")
    assert no_queue.value.name == "defalt"
    (handle,) = remote.enqueue_many([_job(remote, 1, idempotency_key='it\'s "k"')])
    with pytest.raises(NotAllowedNow):
        remote.jobs.delete(handle.id)
    with pytest.raises(KeyConflict) as conflict:
        remote.enqueue_many([_job(remote, 1, idempotency_key='it\'s "k"', on_conflict="raise")])
    assert (conflict.value.job_id, conflict.value.key) == (handle.id, 'it\'s "k"')
    remote.queues.close("default")
    with pytest.raises(QueueClosed):
        remote.enqueue_many([_job(remote, 2)])
    remote.jobs.cancel(handle.id, "enough")
    with pytest.raises(JobCancelled, match="enough"):
        handle.result(timeout=10)
    with pytest.raises(InvalidPayload, match="user_id"):
        remote.registry.get("mail.welcome").signature.check({"user_id": "x"})
    with pytest.raises(InvalidOption, match="at most 1,000"):
        remote.enqueue_many([_job(remote, number) for number in range(1_001)])


def welcome(user_id: int) -> str:
    return str(user_id)


def test_a_token_that_may_not_see_a_result_gets_an_error_and_not_none(served: Served) -> None:
    token = served.app.tokens.create("producer", ["enqueue", "read"]).text
    remote = RemoteApp(str(served.client.base_url), token=token)
    handle = remote.enqueue("welcome", {"user_id": 1})
    with pytest.raises(TimeoutError, match=f"job {handle.id} is still pending after 0 s"):
        handle.result(timeout=0)
    served.app.task(welcome)
    run_all(served.app)
    with pytest.raises(RemoteRefused, match="this token may not see its result: that needs the scope payloads"):
        handle.result(timeout=1)
    remote.close()


def test_what_only_the_app_of_a_worker_declares_is_refused(remote: RemoteApp) -> None:
    with pytest.raises(InvalidOption, match="queue: is declared by the app of a worker"):
        remote.queue("mail", max_concurrency=1)
    with pytest.raises(InvalidOption, match="schedule: is declared by the app of a worker"):
        remote.schedule("daily", _job(remote, 1), cron="0 9 * * *")


def test_without_httpx_the_import_names_the_extra() -> None:
    code = "import sys; sys.modules['httpx'] = None; import windlass.remote"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: windlass.remote needs httpx: pip install 'windlass[remote]'" in done.stderr


def test_a_server_that_is_not_there_stored_nothing(remote: RemoteApp, served: Served) -> None:
    served.processes.started[0].kill()
    with pytest.raises(EnqueueFailed, match="nothing was stored"):
        remote.enqueue_many([_job(remote, 1)])


def test_a_wrong_token_is_said(served: Served) -> None:
    remote = RemoteApp(str(served.client.base_url), token="wl_wrong")
    with pytest.raises(WindlassError, match="not valid"):
        remote.jobs.list()
    remote.close()


def test_server_and_token_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WINDLASS_SERVER", "WINDLASS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="should be a URL"):
        RemoteApp()
    with pytest.raises(ConfigError, match="WINDLASS_TOKEN"):
        RemoteApp("http://127.0.0.1:1")


async def test_the_asynchronous_verbs_work_on_a_loop(served: Served) -> None:
    token = served.app.tokens
    text = (await token.acreate("loop", ["admin"])).text
    remote = RemoteApp(str(served.client.base_url), token=text)
    (handle,) = await remote.aenqueue_many([_job(remote, 1)])
    assert (await remote.jobs.aget(handle.id)).payload == {"user_id": 1}
    await remote.aclose()


def test_commands_go_through_the_server_without_the_store(served: Served, tmp_path: Path) -> None:
    token = served.app.tokens.create("cli", ["operate", "enqueue"]).text
    environment = {"WINDLASS_TOKEN": token, "WINDLASS_SERVER": str(served.client.base_url)}

    def run(*words: str) -> tuple[int, str]:
        process = served.processes.start("cli", "-m", "windlass", *words, environment=environment)
        return process.wait(), process.output

    code, output = run("enqueue", "mail.welcome", '{"user_id": 7}')
    assert (code, "not checked" in output) == (0, False), "the server checks, if it has the app"
    code, output = run("jobs", "list", "--json")
    assert code == 0
    (job,) = json.loads(output)
    assert (job["type"], job["payload"]) == ("mail.welcome", None), "this token may not read payloads"
    for words in (
        ("jobs", "change", job["id"], "--payload", '{"user_id": 8}'),
        ("schedules", "add", "hourly", "mail.welcome", '{"user_id": 7}', "--every", "1h"),
    ):
        code, output = run(*words)
        assert (code, "not checked" in output) == (0, False), words
    assert run("jobs", "cancel", job["id"])[0] == 0
    assert run("queues", "pause", "default")[0] == 0
    assert served.app.queues.get("default").paused
    entries = served.app.audit.list().items
    assert [(each.actor.name, each.action) for each in entries[:2]] == [("cli", "queue.pause"), ("cli", "job.cancel")]


def test_commands_on_webhooks_go_through_the_server(served: Served) -> None:
    token = served.app.tokens.create("cli", ["admin"]).text
    environment = {"WINDLASS_TOKEN": token, "WINDLASS_SERVER": str(served.client.base_url)}

    def run(*words: str) -> str:
        words = ("-m", "windlass", "webhooks", *words)
        process = served.processes.start("cli", *words, environment=environment | {"WINDLASS_STORE": "sqlite:///no"})
        assert process.wait() == 0, process.output
        return process.output

    assert "whsec_" in run("add", "ops", "https://example.com/hook", "--event", "job.dead", "--timeout", "3s")
    (found,) = json.loads(run("list", "--json"))
    assert (found["name"], found["events"], found["timeout"]) == ("ops", ["job.dead"], 3.0)
    assert "whsec_" in run("rotate", "ops", "--overlap", "0s")
    assert "ops is paused" in run("pause", "ops")
    assert "ops: paused" in run("show", "ops")
    assert "ops is active" in run("resume", "ops")
    assert "ops is removed" in run("remove", "ops", "--yes")
    assert served.app.webhooks.list() == []


def test_a_server_that_stops_ends_within_its_time(served: Served) -> None:
    process = served.processes.started[0]
    process.send(signal.SIGTERM)
    until(lambda: process.ended, "it ends")
    assert process.wait() == 0


def _job(app: App, user_id: int, **options: Any) -> NewJob:
    return make_job(app, "mail.welcome", {"user_id": user_id}, options)
