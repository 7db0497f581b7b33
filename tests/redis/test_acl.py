"""The recipe for a user: enough for everything that a store does, and for nothing else."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from tests.redis.deaths import winding
from tests.support.chains import end_next, enqueue_jobs, statuses
from tests.support.seed import claim_one, completed, dead, enqueue, enqueue_one, open_lease, request, settle
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.servers.redis_programs import Program, programs
from tests.support.timing import add, moment
from windlass import StoreUnavailable
from windlass.core.jobs.change import JobChange
from windlass.core.schedules.firing import firing
from windlass.store.contract import Store
from windlass.store.open import examine, open_store
from windlass.store.records import Settled
from windlass.store.redis.connection.inspection import COMMANDS, SHARDED, TRIED, acl_rules
from windlass.store.redis.scripts.loader import lua_texts

SECRET = "hunter2"


@pytest.fixture(params=programs(), ids=lambda program: program.version)
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    program: Program = request.param
    made = new_redis(program=program)
    made.start()
    made.execute("ACL", "SETUSER", "windlass", "on", f">{SECRET}", *acl_rules("shop"))
    yield made
    made.remove()


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[Store]:
    opened = open_store(f"redis://windlass:{SECRET}@127.0.0.1:{server.port}/0?prefix=shop")
    yield opened
    await opened.close()


async def test_the_user_may_do_what_a_store_does(store: Store) -> None:
    assert await store.migrate() == ["0001_initial"]
    await open_lease(store)
    await enqueue(store, 3)
    assert await settle(store, completed(await claim_one(store))) is Settled.SETTLED
    assert len(await store.jobs.claim(request())) == 2
    store.signals.subscribe(["default"])
    mark = store.signals.cursor()
    await enqueue_one(store, type="other")
    assert await store.signals.wait(mark, 10)
    await store.stats.sample()
    await store.tidy()
    made = await add(store)
    assert (await store.schedules.due(1)).schedules == ()
    assert (await store.schedules.fire([firing(made, moment(made))]))[0].done
    assert [each.name for each in await store.schedules.list()] == ["s"]
    assert await store.schedules.remove("s")
    await store.operator.prune(100)
    assert (await store.operator.counts()).totals["running"] == 2


async def test_the_user_may_hand_chains_on_and_examine(server: RedisServer, store: Store) -> None:
    ids = await enqueue_jobs(store, winding())
    await end_next(store, dead)
    await store.operator.retry(ids[:1])
    await store.operator.change(ids[1:2], JobChange(queue="there"))
    for at, queue in enumerate(("default", "there", "other", "default", "third")):
        await end_next(store, completed, runner=f"r{at}", queues=(queue,))
    assert set(await statuses(store, ids)) == {"completed"}
    await store.tidy()
    assert not await store.signals.has_work(("default", "other"), None)
    found = await examine(f"redis://windlass:{SECRET}@127.0.0.1:{server.port}/0?prefix=shop", deep=True)
    assert not [each for each in found.findings if each.says.startswith("could not be checked")]


async def test_the_user_may_do_nothing_else(server: RedisServer) -> None:
    with redis.Redis(port=server.port, username="windlass", password=SECRET) as client:
        for words in (
            ("GET", "shop:x"),
            ("FLUSHALL",),
            ("CONFIG", "SET", "appendonly", "no"),
            ("KEYS", "*"),
            ("HGET", "other:{*}:meta", "store"),
            ("EVAL", "return redis.call('HGET', KEYS[1], 'x')", 1, "other:x"),
            ("PUBLISH", "other", ""),
            ("ACL", "LIST"),
        ):
            with pytest.raises(redis.exceptions.ResponseError, match=r"(?i)permission|acl"):
                client.execute_command(*words)


async def test_another_prefix_is_refused_with_what_to_do_and_without_the_password(server: RedisServer) -> None:
    store = open_store(f"redis://windlass:{SECRET}@127.0.0.1:{server.port}/0?prefix=other")
    with pytest.raises(StoreUnavailable, match=r"this user lacks rights.*recipe") as caught:
        await enqueue_one(store)
    assert caught.value.lasting
    assert not caught.value.maybe_done
    assert SECRET not in str(caught.value)
    await store.close()


def test_the_recipe_names_every_command_of_the_scripts() -> None:
    called = {word.lower() for text in lua_texts().values() for word in re.findall(r"redis\.p?call\('(\w+)'", text)}
    assert called
    assert called <= {command.partition("|")[0] for command in (*COMMANDS, *SHARDED)}
    tried = {"time", "sadd", "publish", *(command.lower() for command in TRIED)}
    assert called - {"spublish", "pubsub"} == tried, "each is tried when a store is opened"
