"""No script does more than so much in one call, however much there is: a server does nothing else meanwhile."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
import redis

from tests.support.chains import after, links
from tests.support.clock import ManualClock
from tests.support.seed import LEASE, completed, dead, failed, new_job, open_lease, request, requeued, worker_info
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.timing import said
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.jobs.change import JobChange
from windlass.core.moments import DAY, SECOND
from windlass.core.schedules.firing import firing
from windlass.core.stats.meter import Meter
from windlass.core.status import Status
from windlass.store.open import open_store
from windlass.store.records import JobFilter, RunnerEnd
from windlass.store.redis.connection.wire import Call
from windlass.store.redis.scripts.loader import lua_texts
from windlass.store.redis.store import RedisStore

HOUR = DAY // 24
MAX_COMMANDS = 1_500
"""That a script gives in one call; most take about a microsecond on a quiet machine."""
MANY = 1_500
"""More than any portion."""

WHOLE = {
    ("counts", "HGETALL", "counts"): "a field for each status",
    ("indexes", "HGETALL", "pending_counts"): "a field for each type of the queue",
    ("census", "HGETALL", "types"): "a field for each type of the queue",
    ("store_jobs", "HKEYS", "pending_counts"): "a field for each type of the queue",
    ("check_counts", "HVALS", "pending_counts"): "a field for each type of the queue",
    ("recount", "HVALS", "types"): "a field for each type of the queue",
    ("recount", "HVALS", "claim_counts"): "the claims of which anything runs",
    ("waiting_types", "HGETALL", "types"): "a field for each type of the queue",
    ("known_runners", "HKEYS", "leases"): "the runners that claim in the queue",
    ("runners", "ZRANGEBYLEX", "registrations"): "the queues of a runner, or of a worker's runners",
    ("live_workers", "ZRANGEBYSCORE", "heartbeats"): "the workers that are alive",
    ("claims", "ZREMRANGEBYLEX", "held"): "one claim",
    ("release_dependents", "ZREMRANGEBYLEX", "dependents"): "those that were just read, fewer than 50",
    ("fair_claim", "DEL", "fairness"): "a bounded number of rounds",
    ("set_queue", "UNLINK", "tenant_queues"): "freed in the background",
    ("few_ids", "ZRANGE", "[index]"): "only where there are few",
}
"""Which scripts and parts read or drop all of something, and why that is not much."""

_ALL_OF = re.compile(r"^(HGETALL|HKEYS|HVALS|SMEMBERS|DEL|UNLINK|SORT\w*|ZUNION\w*|ZREMRANGE\w+)$")
_STRETCH = re.compile(r"^Z(REV)?RANGE(BY\w+)?$")


def calls_in(text: str) -> Iterator[str]:
    """What stands between the brackets of each call of the server."""
    for found in re.finditer(r"redis\.p?call\(", text):
        depth, at = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield text[found.end() : at - 1]


def without_texts(text: str) -> str:
    """No comments, and no brackets within quotes: what is left has them in pairs."""
    code = re.sub(r"--.*", "", text)
    return re.sub(r"'[^'\n]*'", lambda quoted: re.sub(r"[()]", "", quoted[0]), code)


def is_whole(command: str, words: str) -> bool:
    if _STRETCH.match(command):
        return "'LIMIT'" not in words and (command not in ("ZRANGE", "ZREVRANGE") or words.rstrip().endswith("-1"))
    return bool(_ALL_OF.match(command))


def whole_reads() -> set[tuple[str, str, str]]:
    found = set()
    for name, text in lua_texts().items():
        for words in calls_in(without_texts(text)):
            command = re.match(r"'(\w+)'", words)
            key = re.search(r"\bK\.?(\w+|\[\w+\])", words)
            if command and key and is_whole(command[1], words):
                found.add((name.removeprefix("parts/"), command[1], key[1]))
    return found


def test_nothing_is_read_or_dropped_whole_but_what_is_known_to_be_little() -> None:
    assert whole_reads() == set(WHOLE)


class Counting:
    """Counts the commands that each call of a script gives, on a server that nothing else uses."""

    def __init__(self, store: RedisStore, server: RedisServer) -> None:
        self.most: dict[str, int] = defaultdict(int)
        self._client = redis.Redis(port=server.port)
        self._wire = store._access.server.wire
        self._calls: Callable[[Sequence[Call], float], Awaitable[list[Any]]] = self._wire.calls
        self._wire.calls = self.calls  # type: ignore[method-assign]
        self._wire.call = self.call  # type: ignore[method-assign]

    async def call(self, call: Call, seconds: float, *, patient: bool = True) -> Any:
        (reply,) = await self.calls([call], seconds)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def calls(self, calls: Sequence[Call], seconds: float, *, patient: bool = True) -> list[Any]:
        return [await self._one(call, seconds) for call in calls]

    async def _one(self, call: Call, seconds: float) -> Any:
        self._client.config_resetstat()
        (reply,) = await self._calls([call], seconds)
        given = sum(
            stat["calls"]
            for name, stat in self._client.info("commandstats").items()
            if name not in ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_config", "cmdstat_config|resetstat")
        )
        self.most[call.script.name] = max(self.most[call.script.name], given)
        return reply


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    made = new_redis()
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def store(server: RedisServer, clock: ManualClock) -> AsyncIterator[RedisStore]:
    server.execute("FLUSHALL")
    opened = open_store(server.url, clock=clock)
    assert isinstance(opened, RedisStore)
    yield opened
    await opened.close()


async def test_no_script_exceeds_the_limit_of_commands(
    store: RedisStore, server: RedisServer, clock: ManualClock
) -> None:
    counting = Counting(store, server)
    await fill(store, clock)
    await run_all(store, clock)
    await look_at_all(store)
    too_many = {name: given for name, given in counting.most.items() if given > MAX_COMMANDS}
    assert not too_many
    assert len(counting.most) > 38


async def test_children_among_jobs_of_large_claims_are_not_looked_up_one_by_one(
    store: RedisStore, server: RedisServer
) -> None:
    await store.jobs.enqueue([new_job(parent="p" * 36) for _ in range(MANY)])
    await open_lease(store, "r")
    for number in range(1, 4):  # a claim keeps the ids of its jobs until the last has ended
        jobs = await store.jobs.claim(request("r", claim=number, most=500, limit=500))
        await store.jobs.settle([completed(job) for job in jobs[:-1]])
    counting = Counting(store, server)
    assert len(await store.operator.select(JobFilter(parent="p" * 36, status=(Status.RUNNING,)), 10, None)) == 3
    assert counting.most["list_ids"] < 500


async def test_meters_of_one_queue_are_read_in_portions(store: RedisStore, server: RedisServer) -> None:
    await store.stats.record([Meter(queue="q", type=f"t{number}", completed=1) for number in range(600)])
    counting = Counting(store, server)
    assert len((await store.stats.recent(HOUR, "q")).meters) == 600
    assert counting.most["read_meters"] < 300


async def fill(store: RedisStore, clock: ManualClock) -> None:
    """Much of everything."""
    rate = parse_rate("1/h", "r")
    await store.jobs.enqueue([new_job(priority=n % 5, tenant=f"n{n % 50}", tags=("x",)) for n in range(MANY)])
    await store.jobs.enqueue([new_job(queue="later", delay=1, expires=HOUR) for _ in range(MANY)])
    await store.jobs.enqueue([new_job(queue="lined", concurrency_key="k", delay=1) for _ in range(MANY)])
    await store.jobs.enqueue([new_job(queue="wide", concurrency_key="k", key_limit=9_999) for _ in range(MANY)])
    await store.jobs.enqueue([new_job(queue="keys", concurrency_key=f"k{n}", delay=1) for n in range(MANY)])
    await store.jobs.enqueue(
        [new_job(queue="rated", concurrency_key="k", key_limit=9_999, key_rate=rate) for _ in range(1_000)]
    )
    await link_up(store)
    await store.jobs.enqueue([new_job(queue="unknown", type=f"u{n % 20}") for n in range(1_000)])
    # Alike; each of another kind, because jitter tells them apart; and ticks of one that were missed.
    await store.schedules.declare({f"s{n}": said({"queue": "timed"}) for n in range(MANY)})
    await store.schedules.declare({f"j{n}": said({"queue": "spread"}, jitter=60, overlap=False) for n in range(600)})
    await store.schedules.declare({"all": said({"queue": "missed"}, every=1, catch_up="all")})
    await fire_all(store, clock)
    for number in range(600):
        await open_lease(store, f"r{number}", f"w{number % 10}")
    clock.advance(SECOND)


async def fire_all(store: RedisStore, clock: ManualClock) -> None:
    """A tick of every schedule; then they go."""
    clock.advance(HOUR // 4)
    while (due := await store.schedules.due(MANY)).schedules:
        await store.schedules.fire([firing(each, due.now) for each in due.schedules])
    for schedule in (await store.schedules.list())[:150]:
        await store.schedules.remove(schedule.name)


async def link_up(store: RedisStore) -> None:
    """Chains side by side; children of one parent, plain and with keys, here and in another queue; one long chain."""
    await store.jobs.enqueue([job for _ in range(MANY // 3) for job in links(3, queue="linked")])
    await add_children(store, MANY, queue="linked")
    await add_children(store, MANY, queue="linked", concurrency_key="k")
    await add_children(store, MANY, queue="elsewhere")
    for number in range(100):
        await add_children(store, 9, queue="linked", concurrency_key=f"f{number}")
    await store.jobs.enqueue(links(MANY, queue="falling"))


async def add_children(store: RedisStore, count: int, **fields: Any) -> None:
    parent = new_job(queue="linked")
    await store.jobs.enqueue([parent, *(after(new_job(**fields), parent.id) for _ in range(count))])


async def run_all(store: RedisStore, clock: ManualClock) -> None:
    """What workers and coordinators do."""
    while (admitted := await store.jobs.admit(1_000)).jobs or admitted.next_due_in == 0:
        pass
    endings = (completed, failed, requeued)
    await open_lease(store, "links")
    while jobs := await store.jobs.claim(request("links", queues=("linked",), most=250, limit=250)):
        await store.jobs.settle([completed(job, '"some"') for job in jobs])
    (job,) = await store.jobs.claim(request("links", queues=("falling",)))
    await store.jobs.settle([dead(job)])
    await store.operator.retry([job.id])
    await store.operator.change([job.id], JobChange(queue="elsewhere"))
    await store.operator.cancel([job.id], "no more")
    await store.operator.delete([job.id])
    for queue in ("default", "later", "wide", "keys", "rated"):
        for number, ending in enumerate(endings):
            jobs = await store.jobs.claim(request(f"r{number}", queues=(queue,), most=250, limit=250))
            await store.jobs.settle([ending(job) for job in jobs])
    for queue in ("default", "keys"):
        for _ in range(3):
            await store.jobs.claim(request("r9", queues=(queue,), most=250, limit=250))
    await store.leases.end(RunnerEnd(runner="r9", started=frozenset(), crashed=True))
    await store.queues.change("default", QueueSettings(fair=True, ageing=SECOND))
    clock.advance(2 * SECOND)
    while (await store.jobs.admit(1_000)).next_due_in == 0:
        pass
    await store.jobs.claim(request("r1", most=250, limit=250))
    clock.jump_wall(-HOUR)
    await store.operator.prune(1_000)
    clock.jump_wall(HOUR)
    clock.advance(2 * LEASE)
    await store.leases.rescue(1_000)
    clock.advance(2 * HOUR)
    await store.jobs.age(1_000)
    await store.workers.beat(worker_info())
    assert sum((await store.jobs.park()).values()) > 0
    await store.workers.beat(worker_info(types=("t", *(f"u{number}" for number in range(20)))))
    await store.jobs.expire(1_000)
    await store.tidy()
    await store.stats.sample()
    clock.advance(40 * DAY)
    await store.operator.prune(1_000)


async def look_at_all(store: RedisStore) -> None:
    """What users do."""
    for wanted in (
        JobFilter(),
        JobFilter(tag="none"),
        JobFilter(tenant="n3"),
        JobFilter(id_end="abc"),
        *(JobFilter(status=(status,)) for status in Status),
    ):
        await store.operator.list(wanted, 100, None)
    await store.operator.counts()
    await store.operator.failures(1_000)
    await store.workers.list()
    await store.stats.oldest()
    ids = [job.id for job in (await store.operator.list(JobFilter(queue="default"), 200, None)).items]
    for id_ in ids[:3]:
        await store.operator.why_facts(id_)
    await store.operator.cancel(ids, "enough")
    await store.operator.delete(ids)
