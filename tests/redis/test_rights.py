"""A user who may not do everything: refused before anything is written, and what was left half-done is put right."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.redis.places import misplaced
from tests.support.chains import follow_on, statuses
from tests.support.seed import claim_one, completed, dead, enqueue, enqueue_one, new_job, open_lease, request, settle
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.servers.redis_programs import Program, programs
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.doctor import Level
from windlass.store.open import examine, open_store
from windlass.store.records import Settled
from windlass.store.redis.connection import server_watch as watch
from windlass.store.redis.connection.inspection import acl_rules
from windlass.store.redis.duties import tidy

SECRET = "hunter2"
EVERYTHING = ("~*", "+@all")
CHANGING = ("zadd", "zrem", "hset", "hdel", "hincrby")


@pytest.fixture(scope="module", params=programs(), ids=lambda program: program.version)
def shared(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    program: Program = request.param
    made = new_redis(program=program)
    made.start()
    yield made
    made.remove()


@pytest.fixture
def server(shared: RedisServer, monkeypatch: pytest.MonkeyPatch) -> RedisServer:
    """Emptied, with a user who may do what Windlass does; it is looked at before every call."""
    monkeypatch.setattr(watch, "INTERVAL", 0.0)
    monkeypatch.setattr(watch, "SHORT_INTERVAL", 0.0)
    monkeypatch.setattr(tidy, "INTERVAL", 0.0)
    shared.execute("FLUSHALL")
    shared.execute("ACL", "SETUSER", "windlass", "reset", "on", f">{SECRET}", *acl_rules())
    return shared


def _url(server: RedisServer) -> str:
    return f"redis://windlass:{SECRET}@127.0.0.1:{server.port}/0"


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[Store]:
    opened = open_store(_url(server))
    yield opened
    await opened.close()


def _may(server: RedisServer, *rules: str) -> None:
    server.execute("ACL", "SETUSER", "windlass", *rules)


async def test_a_user_without_channels_does_everything_and_gets_one_warning(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As Redis 7 makes users who are given no channel."""
    _may(server, *EVERYTHING, "resetchannels")
    store = open_store(_url(server))
    await open_lease(store)
    with caplog.at_level(logging.WARNING, "windlass"):
        for type_ in ("a", "b", "c"):
            await enqueue_one(store, type=type_)
    assert len(await store.jobs.claim(request(types=("a", "b", "c")))) == 3
    reported = [each.message for each in caplog.records if "may not publish" in each.message]
    assert len(reported) == 1
    assert "+publish &windlass:*" in reported[0]
    await store.close()
    found = await examine(_url(server), deep=True)
    (rights,) = [each for each in found.findings if each.check == "rights"]
    assert rights.level is Level.WARNING
    assert "may not publish" in rights.says


async def test_a_user_who_may_not_wait_for_replicas_is_refused_before_anything_is_done(
    server: RedisServer,
) -> None:
    _may(server, *EVERYTHING, "-wait")
    store = open_store(f"{_url(server)}?replicas=1")
    with pytest.raises(StoreUnavailable, match=r"SETUSER name \+wait;") as caught:
        await enqueue_one(store)
    assert not caught.value.maybe_done
    await store.close()


@pytest.mark.parametrize("command", ["eval", "zadd", "hincrby", "hdel", "spop", "zrevrangebylex"])
async def test_a_command_that_is_missing_is_named_before_anything_is_written(
    server: RedisServer, store: Store, command: str
) -> None:
    _may(server, *EVERYTHING, f"-{command}")
    with pytest.raises(StoreUnavailable, match=rf"SETUSER name \+{command};") as caught:
        await enqueue_one(store)
    assert caught.value.lasting
    assert not caught.value.maybe_done
    assert server.execute("DBSIZE") == 0
    found = await examine(_url(server))
    assert any(each.level is Level.PROBLEM and f"+{command}" in each.says for each in found.findings)


async def test_rights_that_are_taken_away_are_noticed_and_given_back_too(server: RedisServer, store: Store) -> None:
    await enqueue_one(store)
    _may(server, "-zadd")
    with pytest.raises(StoreUnavailable, match=r"\+zadd") as caught:
        await enqueue_one(store)
    assert not caught.value.maybe_done
    _may(server, "+zadd")
    await enqueue_one(store)
    assert (await store.operator.counts()).totals["pending"] == 2


@pytest.mark.parametrize("command", CHANGING)
async def test_what_scripts_left_that_were_stopped_half_way_is_put_right(
    server: RedisServer, store: Store, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rights go after the last look: each verb may stop at its first such command. All of it comes in the end.

    From Redis 7 on, a script asks for its rights first, and is refused as a whole.
    """
    await open_lease(store)
    before = await enqueue(store, 3)
    ends = [completed(await claim_one(store)), dead(await claim_one(store))]
    later = await enqueue_one(store, delay=1)
    monkeypatch.setattr(watch, "INTERVAL", 3600.0)
    await enqueue_one(store, type="other")
    new = [new_job(type=each, idempotency_key=each, expires=3_600_000_000) for each in ("t", "u")]
    links = follow_on([new_job(), new_job()])
    _may(server, f"-{command}")
    acts: list[Callable[[], Awaitable[Any]]] = [
        partial(store.jobs.enqueue, jobs) for jobs in ([new[0]], [new[1]], links)
    ]
    acts += [partial(store.jobs.settle, [end]) for end in ends]
    acts += [partial(store.jobs.claim, request(claim=77))]
    reported = []
    for act in acts:
        reported.append(await _reported(act))
        _let_look_later(store)
    assert any(reported)
    asks_first = int(server.info()["redis_version"].split(".")[0]) >= 7
    assert all(each is None or each.maybe_done is not asks_first for each in reported)
    assert not asks_first or await misplaced(store) == []  # type: ignore[arg-type]
    monkeypatch.setattr(watch, "INTERVAL", 0.0)
    _may(server, f"+{command}")
    store._server.watch.check_now()  # type: ignore[attr-defined]

    await store.tidy()
    found = await examine(_url(server), deep=True)
    assert not [each for each in found.findings if each.check == "contents" and each.level is Level.PROBLEM]
    for jobs in ([new[0]], [new[1]], links):
        await store.jobs.enqueue(jobs)
    assert all(each is not Settled.STALE for each in await store.jobs.settle(ends))
    assert await statuses(store, [each.id for each in ends]) == ["completed", "dead"]
    await store.jobs.admit(100)
    await _run_all(store)
    everything = [before[2], later, *(job.id for job in new), *(job.id for job in links)]
    assert set(await statuses(store, everything)) == {"completed"}
    found = await examine(_url(server), deep=True)
    assert not [each for each in found.findings if each.check == "contents" and each.level is Level.PROBLEM]


def _let_look_later(store: Store) -> None:
    """As if the script that stopped had been that of another process."""
    store._server.watch._due = float("inf")  # type: ignore[attr-defined]


async def _reported(act: Callable[[], Awaitable[object]]) -> StoreUnavailable | None:
    try:
        await act()
    except StoreUnavailable as error:
        return error
    return None


async def _run_all(store: Store) -> None:
    """Also what was claimed by a call that failed: the same number gives the same jobs."""
    jobs = await store.jobs.claim(request(claim=77))
    while jobs:
        for job in jobs:
            await settle(store, completed(job))
        jobs = await store.jobs.claim(request(types=("t", "u", "other")))
