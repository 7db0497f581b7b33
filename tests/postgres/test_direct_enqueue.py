"""A blocking enqueue is sent and answered in the caller's thread, on a session that the loop has lent."""

import os
import threading
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.support.processes import until
from tests.support.servers.address import Address
from tests.support.servers.postgres import PostgresServer
from windlass import App
from windlass.client.tasks.task import Task
from windlass.errors import EnqueueFailed, EnqueueUnknown, QueueClosed
from windlass.store.postgres.connection import blocking_session

CLIENTS = "FROM pg_stat_activity WHERE application_name LIKE 'windlass client%' AND datname = current_database()"
STORED = "SELECT count(*) FROM windlass.jobs"
WAITING = (
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'windlass client%'"
)


def _task(app: App) -> "Task[[int], None, None]":
    @app.task
    def note(n: int) -> None: ...

    return note


@pytest.fixture
def app(url: str) -> Iterator[App]:
    """A session is lent."""
    app = App(url, deadline=20)
    _lend(_task(app))
    yield app
    app.close()


def _lend(task: "Task[[int], None, None]") -> None:
    """The first call opens the store, the second lends a session."""
    task.enqueue(0)
    task.enqueue(0)


def _sends(app: App, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which statements are sent directly."""
    sent, ask = list[int](), blocking_session.BlockingSession._ask

    def noted(session: blocking_session.BlockingSession, message: bytes, seconds: float) -> blocking_session.Reply:
        sent.append(threading.get_ident())
        return ask(session, message, seconds)

    monkeypatch.setattr(blocking_session.BlockingSession, "_ask", noted)
    return sent


def test_it_stays_in_its_thread(app: App, server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = _sends(app, monkeypatch)
    handles = [app.tasks["note"].using(priority=3, tags=("a",), delay=60).enqueue(n) for n in range(3)]
    assert sent == [threading.get_ident()] * 3
    job = handles[2].job()
    assert (job.payload, job.priority, job.tags, job.status) == ({"n": 2}, 3, ("a",), "scheduled")
    assert server.execute(STORED) == [(5,)]


def test_a_deadline_may_be_longer_than_a_poll(url: str, server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(url, deadline="25d")
    _lend(_task(app))
    sent = _sends(app, monkeypatch)
    app.tasks["note"].enqueue(1)
    assert len(sent) == 1
    assert server.execute(STORED) == [(3,)]
    app.close()


def test_several_threads_share_what_the_pool_has(app: App, server: Address) -> None:
    threads = [threading.Thread(target=lambda: [app.tasks["note"].enqueue(n) for n in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.execute(STORED) == [(82,)]
    assert server.execute(f"SELECT count(*) <= 2 {CLIENTS}") == [(True,)]


def test_what_needs_more_than_one_statement_goes_through_the_loop(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = _sends(app, monkeypatch)
    app.tasks["note"].using(idempotency_key="k").enqueue(1)
    app.tasks["note"].using(concurrency_key="k").enqueue(1)
    assert not sent


def test_an_id_that_is_known_already_is_found(app: App) -> None:
    job = app.tasks["note"].job(1)
    assert [job.enqueue().existing, job.enqueue().existing] == [False, True]


def test_a_session_that_the_server_has_ended_is_replaced(app: App, server: Address) -> None:
    server.execute(f"SELECT pg_terminate_backend(pid) {CLIENTS}")
    until(lambda: server.execute(f"SELECT pid {CLIENTS}") == [], "the sessions are gone")
    for n in range(3):
        app.tasks["note"].enqueue(n)
    assert server.execute(STORED) == [(5,)]


def test_a_closed_queue_refuses_it(app: App) -> None:
    app.queues.close("default")
    with pytest.raises(QueueClosed):
        app.tasks["note"].enqueue(1)


def _in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    raised = list[BaseException]()

    def run() -> None:
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def test_a_call_that_takes_too_long_is_cancelled(url: str, server: Address) -> None:
    app = App(url, deadline=0.5)
    note = _task(app)
    _lend(note)
    with server.connect() as other:
        other.execute("BEGIN; LOCK TABLE windlass.jobs IN SHARE MODE")
        with pytest.raises(EnqueueFailed, match="no answer within"):
            note.enqueue(1)
        other.execute("ROLLBACK")
    note.enqueue(2)
    assert server.execute(STORED) == [(3,)]
    app.close()


def test_a_connection_that_is_lost_leaves_the_outcome_unknown(app: App, server: Address) -> None:
    with server.connect() as other:
        other.execute("BEGIN; LOCK TABLE windlass.jobs IN SHARE MODE")
        thread, raised = _in_thread(lambda: app.tasks["note"].enqueue(1))
        until(lambda: bool(server.execute(WAITING)), "the enqueue waits")
        server.execute(f"SELECT pg_terminate_backend(pid) FROM ({WAITING}) AS waiting")
        thread.join()
        other.execute("ROLLBACK")
    assert [type(error) for error in raised] == [EnqueueUnknown]
    app.tasks["note"].enqueue(2)


@pytest.mark.parametrize("ended", [False, True])
def test_an_app_that_is_closed_during_a_call_does_not_hide_its_outcome(
    app: App, server: Address, ended: bool
) -> None:
    with server.connect() as other:
        other.execute("BEGIN; LOCK TABLE windlass.jobs IN SHARE MODE")
        thread, raised = _in_thread(lambda: app.tasks["note"].enqueue(1))
        until(lambda: bool(server.execute(WAITING)), "the enqueue waits")
        app.close()
        if ended:
            server.execute(f"SELECT pg_terminate_backend(pid) FROM ({WAITING}) AS waiting")
            thread.join()
        other.execute("ROLLBACK")
        thread.join()
    assert [type(error) for error in raised] == [EnqueueUnknown] * ended
    assert server.execute(STORED) == [(2 if ended else 3,)]


def test_a_forked_child_does_not_use_it(app: App, server: Address) -> None:
    if (child := os.fork()) == 0:
        app.tasks["note"].enqueue(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    app.tasks["note"].enqueue(2)
    assert server.execute(STORED) == [(4,)]


def test_closing_ends_it(app: App, server: Address) -> None:
    app.close()
    until(lambda: server.execute(f"SELECT pid {CLIENTS}") == [], "no connection is left")
    app.tasks["note"].enqueue(1)


def test_a_commit_that_did_not_wait_for_its_standby_is_unknown(postgres_server: PostgresServer) -> None:
    app = App(postgres_server.dsn(), deadline=30)
    note = _task(app)
    _lend(note)
    postgres_server.address.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    postgres_server.address.execute("SELECT pg_reload_conf()")
    cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    # Again and again: the server takes up the setting a moment later.
    thread, raised = _in_thread(lambda: [note.enqueue(n) for n in count()])
    until(lambda: any(postgres_server.address.execute(cancel)), "the commit is cancelled")
    thread.join()
    assert [type(error) for error in raised] == [EnqueueUnknown]
    app.close()
