"""Requests in flight share what the server asks the store for all of them: the token, and the estimated start."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, enqueue
from tests.support.addresses import on_sqlite
from windlass import App
from windlass.core.moments import SECOND, Micros
from windlass.core.tokens import digest_of
from windlass.errors import StoreUnavailable
from windlass.server import access, shared_reads
from windlass.server.api import estimates
from windlass.server.shared_reads import SharedReads
from windlass.store.clock import since_boot

MANY = 20


class Gate:
    """A call of the store that is counted, and held until it may go on."""

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call
        self.calls = 0
        self.begun = asyncio.Event()
        self.opened = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        self.begun.set()
        await self.opened.wait()
        if self.error is not None:
            raise self.error
        return await self._call(*args, **options)

    def set(self, error: Exception | None = None) -> None:
        """Let it go on."""
        self.error = error
        self.opened.set()


class Clock:
    """The server's clock, which a test may move."""

    def __init__(self) -> None:
        self.ahead: Micros = 0

    def __call__(self) -> Micros:
        return since_boot() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (access, estimates, shared_reads):
        monkeypatch.setattr(module, "since_boot", made, raising=False)
    return made


@pytest.fixture
def token_read(app: App, monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate(app.tokens.averify_digest)
    monkeypatch.setattr(app.tokens, "averify_digest", gate)
    return gate


@pytest.fixture
def estimate_read(app: App, monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate(app.jobs.awhy)
    monkeypatch.setattr(app.jobs, "awhy", gate)
    return gate


@asynccontextmanager
async def in_flight(api: Client, count: int = MANY) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Requests that have come as far as they can."""
    tasks = [asyncio.create_task(api.get("/queues")) for _ in range(count)]
    await _settled()
    yield tasks
    await asyncio.gather(*tasks, return_exceptions=True)


async def _settled() -> None:
    """All requests wait for the store's answer by then: nothing before it leaves the event loop."""
    for _ in range(50):
        await asyncio.sleep(0)


@on_sqlite
async def test_requests_in_flight_ask_for_their_token_once(api: Client, token_read: Gate) -> None:
    async with in_flight(api) as requests:
        token_read.set()
        assert {each.status_code for each in await asyncio.gather(*requests)} == {200}
    assert token_read.calls == 1


@on_sqlite
async def test_jobs_in_flight_ask_for_their_start_once(api: Client, estimate_read: Gate) -> None:
    job = {"type": "mail.welcome", "payload": {"user_id": 1}}
    requests = [asyncio.create_task(api.post("/jobs", json=job)) for _ in range(MANY)]
    await estimate_read.begun.wait()
    estimate_read.set()
    answers = await asyncio.gather(*requests)
    assert {each.status_code for each in answers} == {201}
    assert estimate_read.calls == 1


@on_sqlite
async def test_a_failed_estimate_is_missing_in_every_answer(api: Client, estimate_read: Gate) -> None:
    estimate_read.set(StoreUnavailable("gone"))
    job = {"type": "mail.welcome", "payload": {"user_id": 1}}
    answers = await asyncio.gather(*(api.post("/jobs", json=job) for _ in range(MANY)))
    assert {(each.status_code, each.json()["estimated_start_at"]) for each in answers} == {(201, None)}


@on_sqlite
async def test_a_failed_read_fails_all_that_wait_for_it_and_the_next_asks_again(
    api: Client, token_read: Gate
) -> None:
    async with in_flight(api) as requests:
        token_read.set(StoreUnavailable("gone"))
        assert {each.status_code for each in await asyncio.gather(*requests)} == {503}
    assert token_read.calls == 1
    token_read.set()
    assert (await api.get("/queues")).status_code == 200
    assert token_read.calls == 2


@on_sqlite
async def test_a_cancelled_first_request_does_not_cancel_the_others(api: Client, token_read: Gate) -> None:
    first = asyncio.create_task(api.get("/queues"))
    await token_read.begun.wait()
    async with in_flight(api) as requests:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        token_read.set()
        assert {each.status_code for each in await asyncio.gather(*requests)} == {200}
    assert token_read.calls == 1


@on_sqlite
async def test_a_failed_read_without_waiting_requests_is_no_unhandled_error(
    api: Client, token_read: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    first = asyncio.create_task(api.get("/queues"))
    await token_read.begun.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    token_read.set(StoreUnavailable("gone"))
    await _settled()
    assert "never retrieved" not in caplog.text


@on_sqlite
async def test_a_token_revoked_before_a_request_is_not_accepted_by_a_read_that_is_too_old(
    app: App, served: Starlette, api: Client, token_read: Gate, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = asyncio.create_task(api.get("/queues"))
    await token_read.begun.wait()
    token, real = (await app.tokens.alist())[0], token_read._call
    found = await real(token.id, _digest(api))

    async def old(*args: object) -> Any:
        return found if token_read.calls == 1 else await real(*args)

    monkeypatch.setattr(token_read, "_call", old)
    await app.tokens.arevoke(token.id)
    clock.ahead = 4 * SECOND
    late = asyncio.create_task(api.get("/queues"))
    await _settled()
    assert token_read.calls == 1
    token_read.set()
    assert (await slow).status_code == 200, "its own read saw the token"
    assert (await late).status_code == 401


@on_sqlite
async def test_reads_are_repeated_after_their_time(
    api: Client, token_read: Gate, estimate_read: Gate, clock: Clock
) -> None:
    token_read.set()
    estimate_read.set()
    for ahead, expected in ((0, (1, 1)), (900_000, (1, 1)), (2 * SECOND, (1, 2)), (5 * SECOND, (2, 3))):
        clock.ahead = ahead
        await enqueue(api)
        assert (token_read.calls, estimate_read.calls) == expected


async def test_a_request_in_the_iteration_in_which_an_old_read_ends_begins_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = iter(range(100))  # a loop that never yields ends with them
    monkeypatch.setattr(shared_reads, "since_boot", lambda: next(calls))
    reads: SharedReads[str, int] = SharedReads(0)
    answer = asyncio.get_running_loop().create_future()
    values = iter((answer, 2))

    async def read() -> int:
        value = next(values)
        return value if isinstance(value, int) else await value

    first = asyncio.create_task(reads.get("key", read))
    await _settled()
    answer.set_result(1)
    second = asyncio.create_task(reads.get("key", read))
    assert (await first, await second) == (1, 2)
    await _settled()
    assert not reads._reads


def _digest(api: Client) -> str:
    return digest_of(api.headers["authorization"].partition(" ")[2])
