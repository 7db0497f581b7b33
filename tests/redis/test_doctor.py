"""The doctor at a Redis server: what its settings mean, and what is wrong under our keys."""

from pathlib import Path

import pytest
import redis

from tests.support.clock import ManualClock
from tests.support.seed import enqueue, put
from tests.support.servers.redis import new_redis
from tests.support.servers.redis_places import redis_place
from tests.support.timing import MINUTE, add, fire
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.doctor import Finding, Level
from windlass.store.open import apart, discard, examine, open_store
from windlass.store.redis.connection.address import Address
from windlass.store.redis.connection.inspection import acl_rules
from windlass.store.redis.doctor.server import (
    Info,
    check_connections,
    check_durability,
    check_memory,
    check_role,
    check_versions,
)
from windlass.store.redis.store import RedisStore

PLACE = Address("redis://host:6379/0")
LOSSY = Address("redis://host:6379/0", durable=False)
DEMANDING = Address("redis://host:6379/0", replicas=2)


async def findings(store: Store, check: str, *, deep: bool = False) -> list[Finding]:
    """What the doctor says of one thing."""
    found = await examine(store.address, deep=deep)
    return [each for each in found.findings if each.check == check]


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ({"redis_version": "6.0.16"}, Level.PROBLEM),
        ({"redis_version": "6.2.14"}, Level.WARNING),
        ({"redis_version": "6.2.20"}, Level.OK),
        ({"redis_version": "7.0.15"}, Level.NOTE),
        ({"redis_version": "7.2.10"}, Level.WARNING),
        ({"redis_version": "8.2.2"}, Level.OK),
        ({"redis_version": "8.4.0"}, Level.OK),
        ({"redis_version": "7.2.4", "valkey_version": "8.1.3"}, Level.WARNING),
        ({"redis_version": "7.2.4", "valkey_version": "8.1.4"}, Level.OK),
        ({"redis_version": "7.2.4", "valkey_version": "9.0.0-rc1"}, Level.OK),
    ],
)
def test_versions_with_a_hole_that_scripts_can_use_are_reported(said: Info, level: Level) -> None:
    (finding,) = check_versions(said, PLACE)
    assert finding.level is level


@pytest.mark.parametrize(
    ("said", "place", "level"),
    [
        ({"aof_enabled": "0"}, PLACE, Level.PROBLEM),
        ({"aof_enabled": "0"}, LOSSY, Level.WARNING),
        ({"aof_enabled": "1", "appendfsync": "always"}, PLACE, Level.OK),
        ({"aof_enabled": "1", "appendfsync": "everysec"}, PLACE, Level.NOTE),
        ({"aof_enabled": "1", "appendfsync": "no"}, PLACE, Level.WARNING),
        ({"aof_enabled": "1"}, PLACE, Level.NOTE),
        ({"aof_enabled": "1", "aof_last_write_status": "err"}, PLACE, Level.PROBLEM),
    ],
)
def test_durability_is_what_the_server_does_with_an_accepted_job(said: Info, place: Address, level: Level) -> None:
    (finding,) = check_durability(said, place)
    assert finding.level is level


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": "0"}, Level.PROBLEM),
        ({"maxmemory_policy": "noeviction", "maxmemory": "0", "used_memory": "5"}, Level.NOTE),
        ({"maxmemory_policy": "noeviction", "maxmemory": "100", "used_memory": "90"}, Level.PROBLEM),
        ({"maxmemory_policy": "noeviction", "maxmemory": "100", "used_memory": "80"}, Level.WARNING),
        ({"maxmemory_policy": "noeviction", "maxmemory": "100", "used_memory": "79"}, Level.OK),
    ],
)
def test_a_server_that_throws_keys_away_or_is_nearly_full_is_reported(said: Info, level: Level) -> None:
    (finding,) = check_memory(said, PLACE)
    assert finding.level is level


def test_replicas_and_connections_are_counted() -> None:
    (replica,) = check_role({"role": "slave", "master_host": "db1"}, PLACE)
    assert (replica.level, "db1" in replica.says) == (Level.PROBLEM, True)
    (lonely,) = check_role({"role": "master", "connected_slaves": "1"}, DEMANDING)
    assert lonely.level is Level.PROBLEM
    (fine,) = check_role({"role": "master", "connected_slaves": "2"}, DEMANDING)
    assert fine.level is Level.OK
    (crowded,) = check_connections({"connected_clients": "80", "maxclients": "100"}, PLACE)
    assert crowded.level is Level.WARNING


async def test_looking_at_a_place_without_a_store_makes_none(tmp_path: Path) -> None:
    url = redis_place(tmp_path)
    found = await examine(url)
    assert found.census is None
    (keys,) = [each for each in found.findings if each.check == "keys"]
    assert keys.level is Level.WARNING
    address, _, prefix = url.partition("?prefix=")
    with redis.Redis.from_url(address) as client:
        assert list(client.scan_iter(match=f"{prefix}:*")) == []


async def test_a_server_that_is_not_there_is_a_finding() -> None:
    found = await examine("redis://127.0.0.1:1/0")
    assert [(each.check, each.level) for each in found.findings] == [("server", Level.PROBLEM)]
    assert found.census is None


async def test_sound_contents_are_said_to_be_sound(store: Store) -> None:
    for status in Status:
        await put(store, status)
    await enqueue(store, 3, concurrency_key="k")
    found = await findings(store, "contents", deep=True)
    assert [each.level for each in found] == [Level.OK, Level.OK]


async def test_keys_that_nothing_will_ever_free_are_found(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 1, idempotency_key="alive")
    ended = await put(store, Status.CANCELLED)
    address, _, prefix = store.address.partition("?prefix=")
    with redis.Redis.from_url(address) as client:
        client.hset(f"{prefix}:{{default}}:idempotency_keys", b"\x00\xff", ended)
        client.hset(f"{prefix}:{{default}}:idempotency_keys", b"gone", "00000000-0000-0000-0000-000000000000")
        found = await findings(store, "idempotency keys", deep=True)
        assert [each.level for each in found] == [Level.PROBLEM] * 2
        (one,) = [each for each in found if ended in each.says]
        assert one.advice == f'free the key: in redis-cli: HDEL "{prefix}:{{default}}:idempotency_keys" "\\x00\\xff"'
        client.hdel(f"{prefix}:{{default}}:idempotency_keys", b"\x00\xff", b"gone")
    assert [each.level for each in await findings(store, "idempotency keys", deep=True)] == [Level.OK]


async def test_what_was_changed_past_us_is_found(store: Store) -> None:
    id_, *_ = await enqueue(store, 3)
    address, _, prefix = store.address.partition("?prefix=")
    with redis.Redis.from_url(address) as client:
        client.delete(f"{prefix}:{{default}}:ready")
        said = [each.says for each in await findings(store, "contents", deep=True)]
        assert any("ready has 0 entries, and there should be 3" in each for each in said)
        assert any(f"job {id_} of queue 'default' is not in ready" in each for each in said)
        client.delete(f"{prefix}:{{default}}:queue")
    (lost, *_) = await findings(store, "contents")
    assert (lost.level, "'default' is named, and its keys are gone" in lost.says) == (Level.PROBLEM, True)


async def test_finished_jobs_that_are_not_dropped_are_reported(store: Store, clock: ManualClock) -> None:
    await put(store, Status.COMPLETED)
    found = await examine(store.address, clock=clock)
    assert [each.level for each in found.findings if each.check == "retention"] == [Level.OK]
    clock.advance(9 * 86_400_000_000)
    found = await examine(store.address, clock=clock)
    assert [each.level for each in found.findings if each.check == "retention"] == [Level.WARNING]


async def test_a_prefix_of_its_own_leaves_nothing(tmp_path: Path) -> None:
    server = redis_place(tmp_path).partition("?")[0]
    own = apart(server, "windlass_own_0123")
    assert own == f"{server}?prefix=windlass_own_0123"
    assert apart(own, "other") is None
    store = open_store(own)
    await put(store, Status.COMPLETED)
    await store.close()
    with redis.Redis.from_url(server) as client:
        assert list(client.scan_iter(match="windlass_own_0123:*"))
        await discard(own)
        assert list(client.scan_iter(match="windlass_own_0123:*")) == []


async def test_a_user_with_the_fewest_rights_can_be_looked_after() -> None:
    server = new_redis()
    server.start()
    try:
        server.execute("ACL", "SETUSER", "windlass", "on", ">secret", *acl_rules("shop"))
        url = f"redis://windlass:secret@127.0.0.1:{server.port}/0?prefix=shop"
        store = open_store(url)
        for status in Status:
            await put(store, status)
        await store.close()
        found = await examine(url, deep=True)
    finally:
        server.remove()
    assert [each for each in found.findings if each.level is Level.PROBLEM] == []
    assert found.census is not None
    (durability,) = [each for each in found.findings if each.check == "durability"]
    assert "this user may not read" in durability.says


async def said_of_contents(store: Store) -> list[str]:
    return [each.says for each in await findings(store, "contents")]


async def test_a_schedule_that_is_not_where_its_tick_says_is_reported_and_pausing_it_helps(
    store: Store, clock: ManualClock
) -> None:
    for name in ("well", "lost", "still"):
        await add(store, name)
    await store.schedules.pause("still")
    assert "each of 3 schedules is found when its tick comes" in await said_of_contents(store)
    assert isinstance(store, RedisStore)
    (key,) = store._server.keys.global_keys(("next_ticks",))
    await store._access._command("ZREM", key, "lost")
    (found,) = [each for each in await findings(store, "contents") if each.level is Level.PROBLEM]
    assert found.says == "schedule 'lost' is not found when its next tick comes"
    await store.schedules.pause("lost")
    await store.schedules.resume("lost")
    assert "each of 3 schedules is found when its tick comes" in await said_of_contents(store)


async def test_a_schedule_that_was_dropped_by_hand_holds_up_no_other(store: Store, clock: ManualClock) -> None:
    for name in ("dropped", "well"):
        await add(store, name)
    assert isinstance(store, RedisStore)
    for key in store._server.keys.global_keys(("schedules", "schedule_states")):
        await store._access._command("HDEL", key, "dropped")
    clock.advance(MINUTE)
    assert [each.name for each in (await store.schedules.due(1)).schedules] == ["well"]
    assert len(await fire(store)) == 1
