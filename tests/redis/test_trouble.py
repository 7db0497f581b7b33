"""Trouble on the way to the server, as a producer meets it: told honestly, with what can be done about it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.exceptions

from tests.support.processes import until
from tests.support.proxy import Proxy
from tests.support.seed import enqueue_one, look, new_job, status_of
from tests.support.servers.redis import RedisServer
from windlass import App, EnqueueFailed, StoreUnavailable
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.redis.connection.errors import NotReplicated, translate

HASTE = 0.5


@pytest.fixture
async def store(redis_server: RedisServer) -> AsyncIterator[Store]:
    opened = open_store(redis_server.url, deadline=5)
    yield opened
    await opened.close()


async def test_a_server_that_is_not_there_is_certain_and_named(redis_server: RedisServer, store: Store) -> None:
    await asyncio.to_thread(redis_server.stop)
    with pytest.raises(StoreUnavailable, match=f"connecting to 127.0.0.1:{redis_server.port}") as caught:
        await enqueue_one(store)
    assert not caught.value.maybe_done
    assert not caught.value.lasting
    redis_server.start()
    await enqueue_one(store)


def test_a_server_that_is_not_there_is_certain_without_a_loop_too(redis_server: RedisServer) -> None:
    redis_server.stop()
    app = App(redis_server.url)

    @app.task
    def nothing() -> None: ...

    with pytest.raises(EnqueueFailed, match=r"nothing was stored: .*refused"):
        nothing.enqueue()


def test_a_producer_that_was_refused_many_times_goes_on_when_the_server_is_back(redis_server: RedisServer) -> None:
    app = App(redis_server.url)

    @app.task
    def nothing() -> None: ...

    redis_server.stop()
    for _ in range(200):  # the driver's own pool gives up after a hundred
        with pytest.raises(EnqueueFailed, match="refused"):
            nothing.enqueue()
    redis_server.start()
    nothing.enqueue()
    assert app.stats.counts().totals["pending"] == 1
    app.close()


async def test_a_restart_between_two_calls_is_unnoticed_and_scripts_are_loaded_again(
    redis_server: RedisServer, store: Store
) -> None:
    id_ = await enqueue_one(store)
    await asyncio.to_thread(redis_server.stop)
    await asyncio.to_thread(redis_server.start)
    assert (await look(store, id_)).id == id_
    redis_server.execute("SCRIPT", "FLUSH")
    await enqueue_one(store)


async def test_connections_that_were_killed_while_idle_are_replaced_unnoticed(
    redis_server: RedisServer, store: Store
) -> None:
    await enqueue_one(store)
    redis_server.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await asyncio.to_thread(until, lambda: redis_server.info()["connected_clients"] == 1, "they are gone")
    assert await status_of(store, await enqueue_one(store)) is Status.PENDING


async def test_a_killed_server_comes_back_with_what_it_had_answered(redis_server: RedisServer, store: Store) -> None:
    """Killed, not powered off: what was written is in the kernel's hands."""
    ids = [await enqueue_one(store) for _ in range(50)]
    await asyncio.to_thread(redis_server.kill)
    await asyncio.to_thread(redis_server.start)
    for id_ in ids:
        assert (await look(store, id_)).id == id_


async def test_a_silent_server_leaves_a_doubt_and_the_same_id_settles_it(redis_server: RedisServer) -> None:
    store = open_store(redis_server.url, deadline=HASTE)
    await enqueue_one(store)
    job = new_job()
    redis_server.freeze()
    with pytest.raises(StoreUnavailable, match=r"no answer within 0.5 s") as caught:
        await store.jobs.enqueue([job])
    assert caught.value.maybe_done
    redis_server.thaw()
    patient = store.with_timeout(20)
    answers = [await patient.jobs.enqueue([job]) for _ in range(2)]
    assert answers[1][0].existing
    assert (await store.operator.counts()).totals["pending"] == 2
    await store.close()


async def test_a_silent_connection_is_replaced(redis_server: RedisServer) -> None:
    with Proxy("127.0.0.1", redis_server.port) as proxy:
        store = open_store(f"redis://127.0.0.1:{proxy.port}", deadline=HASTE)
        await enqueue_one(store)
        proxy.fall_silent()
        with pytest.raises(StoreUnavailable) as caught:
            await enqueue_one(store)
        assert caught.value.maybe_done
        proxy.speak()
        await enqueue_one(store)
        await store.close()


async def test_a_wrong_password_is_said_and_not_shown(redis_server: RedisServer) -> None:
    redis_server.config(requirepass="hunter2")
    for url, advice in (
        (redis_server.url, "write it into the address"),
        (redis_server.url.replace("//", "//:hunter3@"), "check user and password"),
        (redis_server.url.replace("//", "//somebody:hunter2@"), "check user and password"),
    ):
        store = open_store(url)
        with pytest.raises(StoreUnavailable, match=advice) as caught:
            await enqueue_one(store)
        assert "hunter" not in str(caught.value)
        assert caught.value.lasting
        assert not caught.value.maybe_done
        await store.close()


async def test_no_free_connection_is_said(redis_server: RedisServer) -> None:
    redis_server.config(maxclients=1)
    with redis.Redis(port=redis_server.port) as other:
        other.ping()
        store = open_store(redis_server.url)
        with pytest.raises(StoreUnavailable, match="raise maxclients, or run fewer processes") as caught:
            await enqueue_one(store)
        assert not caught.value.lasting
        assert not caught.value.maybe_done
        await store.close()


async def test_a_full_disk_is_said(redis_server: RedisServer, store: Store) -> None:
    await enqueue_one(store)
    error = redis.exceptions.ResponseError("MISCONF Errors writing to the AOF file: No space left on device")
    said = translate(error, "redis://h")
    assert (said.maybe_done, said.lasting) == (False, False)
    assert "is the disk full?" in str(said)


async def test_a_node_of_a_cluster_and_a_server_that_is_none_are_distinguished(redis_server: RedisServer) -> None:
    store = open_store(redis_server.url.replace("redis://", "redis+cluster://"))
    with pytest.raises(StoreUnavailable, match="write redis:// instead of redis"):
        await enqueue_one(store)
    await store.close()


@pytest.mark.parametrize(
    ("said", "certain"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'. script: 50, on @user_script:1.", True),
        ("Error running script (call to f_50): @user_script:1: @user_script: 1: -OOM command not allowed", True),
        ("READONLY You can't write against a read only replica. script: 50, on @user_script:1.", True),
        ("NOPERM this user has no permissions to run the 'evalsha' command", True),
        ("NOPERM ACL failure in script: User u has no permissions to run the 'zadd' command", False),
        ("The user executing the script can't run this command or subcommand script: 84, on @user_script:1.", False),
        ("Error running script (call to f_84): @user_script:1: The user executing the script can't run this", False),
        ("user_script:1: attempt to index a number value script: 6c, on @user_script:1.", False),
    ],
)
def test_a_script_that_stopped_may_have_written_unless_it_could_not_begin(said: str, certain: bool) -> None:
    assert translate(redis.exceptions.ResponseError(said), "redis://h").maybe_done is not certain


def test_only_a_refusal_is_certain() -> None:
    for error in (redis.exceptions.ConnectionError("Connection closed by server."), OSError("gone"), TimeoutError()):
        assert translate(error, "redis://h").maybe_done
    assert translate(NotReplicated("0 of 1"), "redis://h").maybe_done
    assert not translate(redis.exceptions.ResponseError("ERR no"), "redis://h").maybe_done


@pytest.mark.parametrize(
    ("url", "said", "advice"),
    [
        ("redis://h/99", redis.exceptions.ResponseError("DB index is out of range"), "`databases`"),
        ("redis://h", redis.exceptions.ResponseError("unknown command 'HMGET'"), "begins with redis+sentinel://"),
        ("rediss://h", redis.exceptions.TimeoutError("Timeout connecting to server"), "If not, it is redis://"),
        ("rediss://h", redis.exceptions.ConnectionError("Error 2 connecting to h. No such file"), "the ssl_ options"),
        ("rediss://h", redis.exceptions.ConnectionError("[SSL: CERTIFICATE_VERIFY_FAILED]"), "ssl_ca_certs"),
    ],
)
def test_a_mistake_in_the_address_that_only_the_server_shows_is_explained(
    url: str, said: Exception, advice: str
) -> None:
    assert advice in str(translate(said, url))


def test_what_the_server_says_is_not_dressed_up() -> None:
    assert str(
        translate(redis.exceptions.ConnectionError("Error 111 connecting to h:1. Connection refused."), "redis://h")
    ) == ("redis://h: Error 111 connecting to h:1. Connection refused")
    hello = "HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> …"
    said = translate(redis.exceptions.AuthenticationError(hello), "redis://h")
    assert str(said) == (
        "redis://h: NOAUTH authentication required; the server wants a password; write it into the address"
    )


async def test_a_full_server_can_still_be_looked_at(redis_server: RedisServer, store: Store) -> None:
    """Also by who opens it only then: an operator."""
    id_ = await enqueue_one(store)
    redis_server.config(maxmemory=1)
    other = open_store(redis_server.url)
    assert (await look(other, id_)).id == id_
    assert (await other.operator.counts()).totals["pending"] == 1
    await other.close()


@pytest.mark.parametrize(
    ("said", "lasting"),
    [
        ("Error 1 connecting to r:1. [SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate", True),
        ("Error 1 connecting to r:1. [SSL: WRONG_VERSION_NUMBER] wrong version number", True),
        ("Error 2 connecting to r:1. No such file or directory", True),
        ("Error 111 connecting to r:1. Connection refused", False),
    ],
)
def test_a_tls_error_that_waiting_does_not_cure_is_lasting(said: str, lasting: bool) -> None:
    error = redis.exceptions.ConnectionError(said)
    assert translate(error, "rediss://r:1/0").lasting is lasting
    assert not translate(error, "unix:///run/redis.sock").lasting, "a socket that is not there may come"


@pytest.mark.parametrize("wrong", ["redis://:no@{place}/0", "redis://nobody:no@{place}/0", "redis://{place}/9999"])
async def test_a_refused_login_is_reported_as_lasting(redis_server: RedisServer, wrong: str) -> None:
    if "9999" not in wrong:
        redis_server.execute("CONFIG", "SET", "requirepass", "secret")
    store = open_store(wrong.format(place=f"127.0.0.1:{redis_server.port}"), deadline=5)
    with pytest.raises(StoreUnavailable) as caught:
        await store.queues.list()
    assert caught.value.lasting
    await store.close()
