"""The locale in which the server was started changes nothing: Lua's own order of texts would follow it."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
import redis

from tests.support.clock import ManualClock
from tests.support.runners import rule
from tests.support.seed import claim_ids, new_job, open_lease
from tests.support.servers.folder import new_folder
from tests.support.servers.redis import RedisServer, new_redis
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.open import open_store
from windlass.store.records import JobFilter
from windlass.store.redis.scripts.loader import assemble

NAME = "cy_GB.UTF-8"
"""Welsh: `dd` is a letter of its own there, after `d`, so not even ids would keep their order."""


@pytest.fixture(scope="module")
def abroad() -> Iterator[RedisServer]:
    """A server that sorts as users do in Wales."""
    home = new_folder("locale")
    if not shutil.which("localedef") or not Path("/usr/share/i18n/locales/cy_GB").exists():
        pytest.skip("no sources of locales here (Debian: the package `locales`)")
    subprocess.run(["localedef", "-i", "cy_GB", "-f", "UTF-8", home / NAME], check=True)
    server = new_redis()
    server.env = {"LOCPATH": str(home), "LC_ALL": NAME}
    server.start()
    yield server
    server.remove()


def test_texts_are_compared_byte_by_byte(abroad: RedisServer) -> None:
    random = Random(7)
    texts = [random.randbytes(random.choice([0, 1, 5, 6, 7, 46])) for _ in range(300)]
    pairs = [(a, b) for a in texts for b in random.sample(texts, 5)] + [(a, a) for a in texts]
    pairs += [(a, a + b) for a, b in pairs[:50]] + [(a + b"\0", a) for a in texts[:50]]
    script = assemble(
        "test",
        """
        --! uses: byte_order
        local answer = {}
        for i = 1, #ARGV, 2 do answer[#answer + 1] = comes_before(ARGV[i], ARGV[i + 1]) and 1 or 0 end
        return answer
        """.replace("        ", ""),
    )
    with redis.Redis(port=abroad.port) as client:
        assert client.eval("return 'dd' < 'de' and 1 or 0", 0) == 0, "it is the locale that we wanted"
        found = client.eval(script.text, 0, *(text for pair in pairs for text in pair))
    assert found == [int(a < b) for a, b in pairs]


async def test_jobs_of_several_types_are_claimed_in_their_order(abroad: RedisServer, clock: ManualClock) -> None:
    random = Random(7)
    store = open_store(f"{abroad.url}?prefix=order", clock=clock)
    types = [f"t{number}" for number in range(5)]
    expected = []
    for _ in range(60):
        clock.advance(random.randrange(10_000_000))
        job = new_job(type=random.choice(types), priority=random.randint(-3, 3))
        await store.jobs.enqueue([job])
        expected.append((-job.priority, clock.wall(), job.id))
    await open_lease(store, length=DAY)
    claimed = await claim_ids(store, types=tuple(types))
    await store.close()
    assert claimed == [id_ for *_, id_ in sorted(expected)]


async def test_the_job_that_waits_longest_is_aged_first(abroad: RedisServer, clock: ManualClock) -> None:
    random = Random(7)
    store = open_store(f"{abroad.url}?prefix=age", clock=clock)
    await rule(store, ageing=SECOND)
    jobs = []
    for _ in range(40):
        clock.advance(random.randrange(10_000_000))
        jobs.append(new_job(type=f"t{random.randrange(5)}"))
        await store.jobs.enqueue(jobs[-1:])
    clock.advance(DAY)
    await store.jobs.enqueue([new_job(type="t0", priority=1)])
    assert await store.jobs.age(15) == 15
    await open_lease(store, length=DAY)
    claimed = await claim_ids(store, types=tuple(f"t{number}" for number in range(5)), limit=15)
    assert claimed == [job.id for job in jobs[:15]]
    await store.close()


async def test_a_new_job_gets_its_place_in_a_key_queue(abroad: RedisServer, clock: ManualClock) -> None:
    """One that stands before all others, and does not mind them, goes on at once."""
    store = open_store(f"{abroad.url}?prefix=line", clock=clock)
    for round_ in range(20):
        key = f"k{round_}"
        clock.advance(1_234_567)
        await store.jobs.enqueue([new_job(concurrency_key=key) for _ in range(3)])
        clock.advance(round_ * 7_654_321)
        urgent = new_job(concurrency_key=key, key_limit=2, priority=1)
        patient = new_job(concurrency_key=key, key_limit=9)
        await store.jobs.enqueue([urgent])
        await store.jobs.enqueue([patient])
        found = [job for job in await store.operator.get([urgent.id, patient.id]) if job is not None]
        assert [str(job.status) for job in found] == ["pending", "blocked"]
    await store.close()


async def test_lists_are_in_the_order_of_ids(abroad: RedisServer, clock: ManualClock) -> None:
    """Few jobs of a status are gathered from their places, and sorted."""
    random = Random(7)
    store = open_store(f"{abroad.url}?prefix=list", clock=clock)
    ids = [str(UUID(bytes=random.randbytes(6) + b"\x7d\xdd\x8d\xdd" + random.randbytes(6))) for _ in range(150)]
    ids += [f"dddddddd-dddd-7ddd-8ddd-{number:012x}" for number in range(0xDDDDD0, 0xDDDE20)]
    await store.jobs.enqueue([new_job(id=id_) for id_ in ids])
    for statuses in ((Status.PENDING,), (Status.PENDING, Status.RUNNING)):
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await store.operator.list(JobFilter(status=statuses), 40, cursor)
            found += [job.id for job in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert found == sorted(ids, reverse=True)
    assert await store.operator.select(JobFilter(status=(Status.PENDING,)), 1000, None) == sorted(ids)
    await store.close()
