"""The session that the loop lends: one at a time, in no transaction, and never at the cost of a stored job."""

import asyncio
import socket
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.processes import until
from tests.support.seed import new_job
from tests.support.servers.address import Address
from windlass import App
from windlass.core.moments import SECOND
from windlass.errors import EnqueueFailed
from windlass.store.postgres.connection import blocking_session
from windlass.store.postgres.connection.blocking_session import BlockingSession, Reply
from windlass.store.postgres.connection.hints import Hints
from windlass.store.postgres.store import PostgresStore
from windlass.store.postgres.verbs import enqueue_batch, enqueue_direct

SESSIONS = "FROM pg_stat_activity WHERE application_name LIKE 'windlass client%' AND datname = current_database()"


@pytest.fixture
def app(url: str) -> Iterator[App]:
    """A session is lent."""
    app = App(url, deadline=20)
    app.enqueue("note")
    app.enqueue("note")
    yield app
    app.close()


def _lent(app: App) -> BlockingSession:
    opened = app._store_handle.opened
    assert opened is not None
    store: Any = opened[1]
    session: BlockingSession = store._enqueuer.direct._session
    return session


def test_it_is_in_no_transaction(app: App, server: Address) -> None:
    assert _lent(app).usable
    until(lambda: server.execute(f"SELECT state, xact_start {SESSIONS}") == [("idle", None)], "it is idle")


def test_it_is_closed_after_its_loop(app: App) -> None:
    session = _lent(app)
    app._portal().close()
    app._opened_portal = None
    app.close()
    assert session._line.fileno() == -1


async def _two_sessions(store: PostgresStore) -> Any:
    """The pool, which has two free sessions."""
    pool = store._server.pool()
    for session in [await pool.take(), await pool.take()]:
        pool.give(session)
    return pool


async def test_only_one_is_lent_at_a_time(store: PostgresStore) -> None:
    pool = await _two_sessions(store)
    direct = store._enqueuer.direct
    await asyncio.gather(direct.lend(store._server), direct.lend(store._server))
    assert len(pool._free) == 1


async def test_none_is_lent_by_a_store_that_was_closed(store: PostgresStore) -> None:
    await store.jobs.enqueue([new_job()])
    await store.close()
    await store._enqueuer.direct.lend(store._server)  # an error would say that nothing was stored
    assert store._enqueuer.direct._session is None


async def test_a_caller_does_not_wait_long_for_it(
    store: PostgresStore, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enqueue_direct, "LEND_SECONDS", 0.05, raising=False)
    await _two_sessions(store)
    await other.does("LOCK TABLE windlass.jobs IN ACCESS EXCLUSIVE MODE")
    async with asyncio.timeout(20):
        await store._enqueuer.direct.lend(store._server)
    assert store._enqueuer.direct._session is None


class Line:
    """A socket, and its poll, whose peer sends parts of these bytes, each after a second of its clock."""

    def __init__(self, line: socket.socket, replies: Iterator[int], part: int) -> None:
        self.close = line.close
        self._replies = replies
        self._part = part
        self.now = 0.0
        self.sent = b""

    def monotonic(self) -> float:
        return self.now

    def send(self, message: bytes) -> int:
        if self.sent:
            raise BlockingIOError
        self.sent = message[:3]
        return len(self.sent)

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def setblocking(self, flag: bool) -> None:
        assert not flag

    def sendall(self, message: bytes) -> None:
        self.sent += message

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        self.now += min(1.0, milliseconds / 1000)
        return [(0, 0)] if milliseconds >= 1000 else []

    def recv(self, size: int) -> bytes:
        return bytes(islice(self._replies, self._part))


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def _notice(kind: bytes, severity: bytes, text: bytes = b"told") -> bytes:
    return _message(kind, b"SX\0V" + severity + b"\0C57P01\0M" + text + b"\0\0")


def _ask(
    app: App, monkeypatch: pytest.MonkeyPatch, replies: Iterator[int], seconds: float, part: int = 1
) -> Reply | None:
    session = _lent(app)
    line = Line(session._line, replies, part)
    monkeypatch.setattr(session, "_line", line)
    monkeypatch.setattr(session, "_input", line)
    monkeypatch.setattr(blocking_session, "time", line, raising=False)
    try:
        return session.ask((), seconds)
    finally:
        # In two parts, since the first did not take all of it.
        assert line.sent == session._message(())


def test_a_reply_may_come_byte_by_byte(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    done = _message(b"2", b"") + _notice(b"N", b"NOTICE") + _message(b"C", b"INSERT 0 1\0") + _message(b"Z", b"I")
    assert _ask(app, monkeypatch, iter(done), 1000) == Reply(rows=1)


def test_a_session_of_which_more_than_the_reply_was_read_is_not_used_again(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _lent(app)
    more = blocking_session._ONE_ROW + _notice(b"N", b"NOTICE")[:3]
    assert _ask(app, monkeypatch, iter(more), 1000, part=len(more)) == Reply(rows=1)
    assert not session.usable
    until(session._session.connection.is_closed, "the driver does not read the rest", seconds=5)


def test_a_reply_that_never_ends_has_one_deadline(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = iter(_notice(b"N", b"NOTICE", b"x" * 1000))
    with pytest.raises(TimeoutError):
        _ask(app, monkeypatch, endless, 10)
    assert len(list(endless)) > 900


def test_a_session_that_the_server_ends_is_not_used_again(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Reply(error="57P01", certain=False)
    assert _ask(app, monkeypatch, iter(_notice(b"E", b"FATAL")), 1000) == ended
    assert not _lent(app).usable


def test_what_the_server_refused_late_has_no_second_deadline(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0, 21 * SECOND])
    monkeypatch.setattr(enqueue_batch, "since_boot", lambda: next(moments), raising=False)
    monkeypatch.setattr(BlockingSession, "ask", lambda *_: Reply(error="57014"))
    with pytest.raises(EnqueueFailed, match="no answer within"):
        app.enqueue("note")


def test_a_failed_enqueue_sends_the_hints_that_it_was_to_cover(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    later = list[str]()
    monkeypatch.setattr(Hints, "later_on", lambda *given: later.extend(given[2]))
    monkeypatch.setattr(BlockingSession, "ask", lambda *_: Reply(error="57014", cancelled=True))
    with pytest.raises(EnqueueFailed):
        app.enqueue("note", queue="mail")
    assert later == ["mail"]


async def test_a_hint_is_kept_that_comes_while_others_are_sent(store: PostgresStore) -> None:
    hints, loop = store._hints, asyncio.get_running_loop()

    class Sent(set[str]):
        """Sent by the loop before the thread has added to it; meanwhile the loop has others to send."""

        def update(self, *queues: Any) -> None:
            hints._delayed[loop] = {"other"}
            super().update(*queues)

    hints._delayed[loop] = Sent()
    hints._timed.add(loop)
    hints.later_on(loop, ("mail",))
    await asyncio.sleep(0)
    assert hints._delayed[loop] == {"other", "mail"}
