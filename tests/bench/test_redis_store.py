"""Redis: the bare loops do all of their work on a server of the bench's own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from bench.run import find_store_bench
from bench.stores.redis import RedisBench
from bench.stores.redis_bare import Bare
from bench.stores.redis_server import serve

from windlass.client.app import App
from windlass.errors import ConfigError


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve(Path(tempfile.gettempdir())) as template:
        yield template


@pytest.fixture
def store_bench(server: str) -> RedisBench:
    return RedisBench(server)


def test_a_server_of_our_own_writes_to_disk(store_bench: RedisBench) -> None:
    facts = store_bench.facts()

    assert (facts["store"], facts["appendonly"], facts["appendfsync"]) == ("Redis", "yes", "everysec")


def test_a_fresh_store_is_never_one_with_anything_in_it_and_is_empty_when_dropped(
    server: str, store_bench: RedisBench
) -> None:
    with redis.Redis.from_url(server.replace("{run}", "1")) as client:
        client.set("another program's", 1)
        address = store_bench.fresh()
        client.delete("another program's")
    with redis.Redis.from_url(address) as client:
        client.set("ours", 1)
        store_bench.drop(address)
        left = client.dbsize()

    assert address.endswith("/2")
    assert left == 0


def test_a_bare_loop_works_off_every_job(store_bench: RedisBench) -> None:
    address = store_bench.fresh()
    bare = Bare(address)
    bare.insert(1_234)
    drained = bare.drain()
    with redis.Redis.from_url(address) as client:
        left = set(client.keys())
    bare.close()
    store_bench.drop(address)

    assert drained.rate > 0
    assert left == {b"seq", b"windlass-bench"}


def test_bare_hand_ins_are_timed(store_bench: RedisBench) -> None:
    assert store_bench.bare_drain(300).cpu > 0
    assert store_bench.bare_bulk(1_500, with_making=True) > 0
    assert store_bench.bare_bulk(1_500, with_making=False) > 0
    assert store_bench.bare_commits(5) > 0


def test_a_bare_wake_up_is_timed_for_every_job(store_bench: RedisBench) -> None:
    taken = store_bench.bare_wake(3)

    assert len(taken) == 3
    assert all(each > 0 for each in taken)


def test_history_that_is_put_there_directly_looks_like_history(store_bench: RedisBench) -> None:
    address = store_bench.fresh()
    app = App(address)
    app.queues.set("default", retention={"completed": 3600})
    store_bench.fill_history(address, 30)
    counted, jobs = app.stats.counts().totals["completed"], app.jobs.list(limit=100).items
    app.close()
    span, finishes = store_bench.span(address), store_bench.finishes(address)
    store_bench.drop(address)

    assert counted == 30
    assert len({job.id for job in jobs}) == 30
    assert {(job.status, job.type, job.payload["n"], job.attempt) for job in jobs} == {("completed", "noop", 1, 1)}
    assert span.jobs == 30
    assert sum(count for _, count in finishes) == 30


def test_only_scripts_count_as_long_calls_and_each_once(server: str, store_bench: RedisBench) -> None:
    store_bench.longest_call()
    with redis.Redis.from_url(server.replace("{run}", "0")) as client:
        long = client.register_script("local n = 0 for i = 1, 500000 do n = n + i end return n")
        long()
        found = store_bench.longest_call()
        client.rpush("many", *range(50_000))
        client.lrange("many", 0, -1)
        client.delete("many")

    assert found is not None
    assert found >= 1
    assert store_bench.longest_call() == 0


def test_what_the_server_has_in_memory_grows_with_what_is_there(store_bench: RedisBench) -> None:
    address = store_bench.fresh()
    before = store_bench.occupied(address)
    with redis.Redis.from_url(address) as client:
        client.set("much", b"x" * 1_000_000)
    after = store_bench.occupied(address)
    store_bench.drop(address)

    assert after > before + 900_000


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("redis://user:secret@127.0.0.1/0", "write {run} as the database"),
        ("redis://user:secret@127.0.0.1/{run}?colour=red", "colour"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(template: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        find_store_bench(template)

    assert "secret" not in str(refused.value)


def test_a_server_that_is_not_there_is_an_error_that_says_so() -> None:
    with pytest.raises(ConfigError, match=r"redis://127\.0\.0\.1:1"):
        RedisBench("redis://127.0.0.1:1/{run}").fresh()
