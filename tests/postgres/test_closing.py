"""Nothing of a store outlives its event loop: no task, no connection, no warning of the driver."""

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.postgres.strangers import OURS, unread_results, until_waiting
from tests.support.processes import until
from tests.support.proxy import Proxy
from tests.support.servers.address import Address
from tests.support.servers.places import postgres_place
from tests.support.stores import postgres_url, yugabyte_url
from windlass import App
from windlass.store.open import open_store
from windlass.store.postgres.connection import connect, pool, session

Leftovers = Callable[[], list[str]]
SLEEP = "SELECT pg_sleep(600)"


@pytest.fixture(params=["postgres", "yugabyte"])
def profile_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store with each profile."""
    return {"postgres": postgres_url, "yugabyte": yugabyte_url}[request.param](tmp_path)


@pytest.fixture
def server(profile_url: str, tmp_path: Path) -> Address:
    """The test's own connection to the same database."""
    return Address(postgres_place(tmp_path))


@pytest.fixture
def stage(profile_url: str, server: Address, tmp_path: Path) -> "Stage":
    return Stage(App(profile_url), server, postgres_place(tmp_path))


class Stage:
    """An app whose calls wait for a lock, on demand."""

    def __init__(self, app: App, server: Address, url: str) -> None:
        @app.task
        def work() -> None: ...

        self.app = app
        self.enqueue = work.aenqueue
        self.server = server
        self._url = url

    def locked(self) -> contextlib.AbstractContextManager[None]:
        return unread_results(self._url)

    async def enqueue_and_wait(self) -> "asyncio.Task[Any]":
        """An enqueue that waits for the lock, on a connection that was open before."""
        call = asyncio.create_task(self.enqueue())
        await asyncio.to_thread(until_waiting, self.server)
        return call

    async def enqueue_until_timeout(self) -> None:
        """An enqueue that a timeout ends while it waits for the lock."""
        waiting = asyncio.create_task(asyncio.to_thread(until_waiting, self.server))
        async with asyncio.timeout(None) as limit:
            waiting.add_done_callback(lambda _: limit.reschedule(0))
            await self.enqueue()


@pytest.fixture
def leftovers(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Leftovers:
    """What Python and asyncio report about tasks and sockets that were dropped, up to now."""
    gc.collect()  # what other tests dropped
    dropped: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: dropped.append(repr(report.exc_value)))

    def found() -> list[str]:
        gc.collect()
        return dropped + [record.getMessage() for record in caplog.records if record.name == "asyncio"]

    return found


@pytest.mark.usefixtures("unchecked")
def test_a_call_cancelled_just_before_the_store_is_closed_has_ended_then(stage: Stage, leftovers: Leftovers) -> None:
    """Nothing but close() awaits the call, whose task has not run since."""

    async def main() -> None:
        await stage.enqueue()
        with stage.locked():
            call = await stage.enqueue_and_wait()
            call.cancel()
            await stage.app.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert not stage.server.execute(f"SELECT 1 {OURS} AND wait_event_type = 'Lock'")

    asyncio.run(main())
    assert leftovers() == []


@pytest.mark.usefixtures("unchecked")
def test_a_call_that_a_timeout_ended_leaves_nothing_to_a_closed_app(stage: Stage, leftovers: Leftovers) -> None:
    async def main() -> None:
        await stage.enqueue()
        with stage.locked():
            with pytest.raises(TimeoutError):
                await stage.enqueue_until_timeout()
            await stage.app.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert leftovers() == []


def test_a_call_that_outlasts_close_ends_with_its_loop(
    stage: Stage, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a claim that its runner no longer awaits, or a server's note that a token was used."""
    monkeypatch.setattr(pool, "CLOSE_SECONDS", 0.01)

    async def main() -> None:
        await stage.enqueue()
        locks.enter_context(stage.locked())
        call = await stage.enqueue_and_wait()
        await stage.app.aclose()
        assert not call.done()

    with contextlib.ExitStack() as locks:
        asyncio.run(main())
    assert leftovers() == []


def test_closing_waits_for_a_call_in_flight(
    stage: Stage, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "CLOSE_SECONDS", 60)

    async def main() -> None:
        await stage.enqueue()
        with stage.locked():
            call = await stage.enqueue_and_wait()
            closing = asyncio.create_task(stage.app.aclose())
            await asyncio.sleep(0)
        await closing
        assert call.done()
        await call

    asyncio.run(main())
    assert leftovers() == []


def test_closing_does_not_wait_for_a_cancelled_call_that_had_just_got_a_session(
    profile_url: str, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "CLOSE_SECONDS", 60)
    store: Any = open_store(f"{profile_url}{'&' if '?' in profile_url else '?'}connections=1")

    async def main() -> None:
        await store.migrate()
        sessions = store._server.pool()
        only = await sessions.take()
        waiting = asyncio.create_task(sessions.take())
        await asyncio.sleep(0)
        sessions.give(only)
        waiting.cancel()
        async with asyncio.timeout(10):
            await store.close()
        assert only.connection.is_closed()

    asyncio.run(main())
    assert leftovers() == []


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("step", ["detection", "preparation"])
def test_a_connection_that_is_being_opened_is_closed_with_its_loop(
    profile_url: str,
    server: Address,
    leftovers: Leftovers,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    apart: bool,
) -> None:
    """Before the pool knows it, and outside of the pool."""
    store: Any = open_store(profile_url)

    async def detect(connection: "asyncpg.Connection[Any]") -> bool:
        await connection.execute(SLEEP)
        return False

    async def prepare(opened: session.Session) -> None:
        await opened.connection.execute(SLEEP)

    if step == "detection":
        monkeypatch.setattr(connect, "_is_pooled", detect)
    else:
        store._server.on_open = prepare

    async def main() -> asyncio.Task[Any]:
        opening = asyncio.create_task(store._server.open_apart() if apart else store.migrate())
        busy = f"SELECT 1 {OURS} AND wait_event = 'PgSleep'"
        await asyncio.to_thread(until, lambda: server.execute(busy), "a connection is being opened")
        return opening

    opening = asyncio.run(main())
    assert opening.cancelled()
    del opening
    assert leftovers() == []


def test_closing_while_the_server_is_silent_takes_a_bounded_time_and_leaves_nothing(
    profile_url: str, tmp_path: Path, server: Address, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the statement nor the request to cancel it is answered."""
    monkeypatch.setattr(session, "CANCEL_SECONDS", 0.2)
    parts = urlsplit(profile_url)
    with Proxy(parts.hostname or "", parts.port or 5432) as line:
        user = f"{parts.username}@" if parts.username else ""
        app = App(urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{line.port}")))
        stage = Stage(app, server, postgres_place(tmp_path))

        async def main() -> None:
            await stage.enqueue()
            with stage.locked():
                call = await stage.enqueue_and_wait()
                line.fall_silent()
                call.cancel()
                async with asyncio.timeout(10):
                    await app.aclose()
                assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(main())
        assert leftovers() == []
