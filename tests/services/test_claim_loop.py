"""The claim loop: slots are kept full, claims are repeated until answered, and no job is held by mistake."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from tests.services.parts import Flaky, Listener, table_of
from tests.support.seed import claim_one, enqueue, look, open_lease
from windlass import App, SchemaMismatch, Status
from windlass.core.events import silent
from windlass.core.jobs.outcome import Done, Outcome
from windlass.core.jobs.retry import Exponential
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, QueueQuota
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers.process_pool import HandlerProcessPool
from windlass.worker.handlers.work import Work
from windlass.worker.runner.claim_loop import EMPTY_CLAIM_PAUSE, MAX_EMPTY_CLAIMS, ClaimLoop
from windlass.worker.runner.held_jobs import HeldJobs, PrefetchSize
from windlass.worker.runner.settler import Settler
from windlass.worker.runner.slots import Slots


class Rig:
    """A claim loop with everything round it but the process, on a store whose claims may fail."""

    def __init__(self, store: Store, table: Any, failures: tuple[str, ...], reconcile_every: float = 3600) -> None:
        self.store = store
        self.listener = Listener()
        self.app = App("sqlite:///never-opened.db")
        self.gate = asyncio.Event()
        self.ran: list[str] = []

        @self.app.task(type="t")
        async def handle() -> None:
            self.ran.append("ran")
            await self.gate.wait()

        self.ended: list[Work] = []
        self.jobs: Any = Flaky(store.jobs, "claim", failures)
        self.table = table
        self.held_jobs = HeldJobs(self.app.registry, table, set())
        self.settler = Settler(self.jobs, self.listener, self.held_jobs.remove, lambda: False, verbose=False)
        self.slots = Slots(
            4,
            table,
            HandlerProcessPool(WorkerConfig(app="nowhere:app")),
            retry=lambda _: Exponential(),
            ended=self._ended,
            emit=silent,
        )
        self.view: Any = View(store, self.jobs)
        self.loop = ClaimLoop(
            self.view,
            self.slots,
            self.held_jobs,
            self.settler,
            table,
            self.listener,
            reconcile_every=reconcile_every,
        )

    def _ended(self, work: Work, outcome: Outcome) -> None:
        assert isinstance(outcome, Done)
        self.ended.append(work)
        self.held_jobs.remove([work])

    @property
    def claims(self) -> list[ClaimRequest]:
        return [request for request in self.jobs.asked if request is not None]

    async def until(self, condition: Any) -> None:
        """Until something holds that the loop brings about and does not report."""
        try:
            async with asyncio.timeout(20):
                while not condition():  # noqa: ASYNC110
                    await asyncio.sleep(0.002)
        except TimeoutError:
            pytest.fail(f"{len(self.ran)} ran, {len(self.ended)} ended, {self.listener.heard}, {self.claims}")


class View:
    """A store with one role replaced."""

    def __init__(self, store: Store, jobs: Any) -> None:
        self._store = store
        self.jobs = jobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@asynccontextmanager
async def rig_of(
    store: Store, *failures: str, queues: dict[str, int | None] | None = None, reconcile_every: float = 3600
) -> AsyncIterator[Rig]:
    """A loop that runs while the test does."""
    with table_of() as table:
        rig = Rig(store, table, failures, reconcile_every)
        await open_lease(store)
        rig.loop.serve("r1")
        running = asyncio.create_task(rig.loop.run(queues or {"default": None}, ("t",)))
        yield rig
        running.cancel()
        await asyncio.wait([running])
        rig.gate.set()
        await rig.slots.idle()


async def test_the_slots_are_filled_and_no_more_is_taken(store: Store) -> None:
    await enqueue(store, 10)
    async with rig_of(store) as rig:
        await rig.until(lambda: len(rig.ran) == 4)
        assert (await store.operator.counts()).totals["running"] == 4
        rig.gate.set()
        # The store is not told of the ends: after an error of the store it may get the same jobs a second time.
        await rig.until(lambda: len({work.claimed.id for work in rig.ended}) == 10)


async def test_a_job_that_comes_later_is_found(store: Store) -> None:
    async with rig_of(store) as rig:
        await rig.until(lambda: rig.claims)
        await enqueue(store, 1)
        await rig.until(lambda: len(rig.ran) == 1)


async def test_a_claim_whose_reply_was_lost_is_repeated_under_its_number_and_runs_once(store: Store) -> None:
    ids = await enqueue(store, 3)
    async with rig_of(store, "after", "after") as rig:
        # They are held until the loop is gone: what this rig ends, the store does not know of, and would be requeued.
        await rig.until(lambda: len(rig.ran) == 3)
        first = rig.claims[:3]
        assert [request.claim for request in first] == [first[0].claim] * 3
    assert sorted(work.claimed.id for work in rig.ended) == sorted(ids)
    assert [work.claimed.attempt for work in rig.ended] == [1, 1, 1]
    assert rig.listener.names[:2] == ["StoreFailed", "StoreRecovered"]


async def test_a_claim_that_did_not_reach_the_store_is_repeated_too(store: Store) -> None:
    await enqueue(store, 1)
    async with rig_of(store, "before", "before", "before") as rig:
        await rig.until(lambda: len(rig.ran) == 1)
        assert len({request.claim for request in rig.claims[:4]}) == 1


async def test_every_claim_has_a_number_of_its_own(store: Store) -> None:
    async with rig_of(store) as rig:
        for jobs in range(1, 4):
            await enqueue(store, 1)
            await rig.until(lambda jobs=jobs: len(rig.ran) == jobs)
        numbers = [request.claim for request in rig.claims]
    assert numbers == sorted(set(numbers))


async def test_a_queue_gets_no_more_slots_than_its_share(store: Store) -> None:
    await enqueue(store, 5, queue="images")
    async with rig_of(store, queues={"images": 2, "default": None}) as rig:
        await rig.until(lambda: len(rig.ran) == 2)
        await enqueue(store, 5)
        await rig.until(lambda: len(rig.ran) == 4)
        held = [work.claimed.queue for work in rig.held_jobs]
    assert sorted(held) == ["default", "default", "images", "images"]


async def test_a_claim_tells_what_is_held_of_each_queue_and_how_many_can_start_at_once(store: Store) -> None:
    await enqueue(store, 2, queue="images")
    await enqueue(store, 1)
    async with rig_of(store, queues={"images": 3, "default": None}) as rig:
        await rig.until(lambda: len(rig.ran) == 3)
        await enqueue(store, 1)
        await rig.until(lambda: len(rig.ran) == 4)
        first, last = rig.claims[0], rig.claims[-1]
    assert (first.free, first.limit, first.quotas) == (
        4,
        4,
        (QueueQuota("images", 3, 0), QueueQuota("default", 4, 0)),
    )
    assert last.free == 1
    assert last.quotas == (QueueQuota("images", 1, 2), QueueQuota("default", last.limit, 1))


@pytest.mark.parametrize("names_queues", [False, True])
async def test_a_queue_that_gives_nothing_although_there_is_work_is_not_asked_without_pause(
    store: Store, names_queues: bool
) -> None:
    """As if a limit kept all of it back, and the store's hints did not know."""
    async with rig_of(store) as rig:
        rig.view.signals = Lures(store.signals, names_queues)
        await rig.until(lambda: len(rig.claims) > MAX_EMPTY_CLAIMS)
        asked, began = len(rig.claims), asyncio.get_running_loop().time()
        await rig.until(lambda: len(rig.claims) > asked + 5)
        took = asyncio.get_running_loop().time() - began
    assert took > 4 * EMPTY_CLAIM_PAUSE


async def test_a_claim_that_fills_all_slots_ends_the_pauses(store: Store) -> None:
    async with rig_of(store) as rig:
        rig.view.signals = Lures(store.signals, names_queues=True)
        await rig.until(lambda: len(rig.claims) > MAX_EMPTY_CLAIMS)
        await enqueue(store, 4)
        await rig.until(lambda: len(rig.ran) == 4)
        assert rig.loop._empty_claims == 0


async def test_while_no_slot_is_free_nothing_more_is_asked_of_a_store_that_gave_nothing_ahead(store: Store) -> None:
    """Quick jobs are claimed ahead. Where a limit is near they are not given, however often one asks."""
    await enqueue(store, 9)
    async with rig_of(store) as rig:
        rig.jobs.__dict__["claim"] = Frugal(store, rig.jobs.asked)
        rig.view.signals = Lures(store.signals, names_queues=False)
        rig.loop._prefetch = Quick()
        await rig.until(lambda: len(rig.ran) == 4)
        await rig.until(lambda: rig.claims[-1].free == 0)
        asked = len(rig.claims)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(rig.claims) <= asked + 1
        rig.gate.set()
        await rig.until(lambda: len({work.claimed.id for work in rig.ended}) == 9)


class Lures:
    """Hints that call for a claim at every look."""

    via_supervisor = True

    def __init__(self, signals: Any, names_queues: bool) -> None:
        self._signals = signals
        self.names_queues = names_queues

    def subscribe(self, queues: Any) -> None:
        """Whatever they are."""

    def cursor(self) -> int:
        return 0

    async def has_work(self, queues: Any, types: Any) -> bool:
        await asyncio.sleep(0)
        return True

    async def wait(self, cursor: int, seconds: float) -> bool:
        await asyncio.sleep(0)
        return True


class Frugal:
    """A store that gives as many as can start at once, and nothing ahead."""

    def __init__(self, store: Store, asked: list[Any]) -> None:
        self._store = store
        self._asked = asked

    async def __call__(self, request: ClaimRequest) -> Any:
        self._asked.append(request)
        if not request.free:
            return []
        return await self._store.jobs.claim(msgspec.structs.replace(request, limit=request.free))


class Quick(PrefetchSize):
    """As if jobs ended all the time."""

    @property
    def jobs(self) -> int:
        return 100


async def test_a_runner_without_a_lease_claims_nothing_and_says_so(store: Store) -> None:
    await enqueue(store, 1)
    async with rig_of(store) as rig:
        await rig.until(lambda: len(rig.ran) == 1)
        rig.loop.serve("nobody")
        await enqueue(store, 1)
        async with asyncio.timeout(20):
            await rig.loop.lost.wait()
        asked = len(rig.claims)
        await open_lease(store, "r2")
        rig.loop.serve("r2")
        await rig.until(lambda: len(rig.ran) == 2)
        assert [request.runner for request in rig.claims[asked:]] == ["r2"] * (len(rig.claims) - asked)


async def test_nothing_is_claimed_under_a_lease_that_is_over(store: Store) -> None:
    await enqueue(store, 1)
    with table_of(valid=False) as table:
        rig = Rig(store, table, ())
        await open_lease(store)
        rig.loop.serve("r1")
        turns = rig.loop._attempt((), ("t",), 4), rig.loop._attempt(rig.loop._quotas({"default": None})[0], ("t",), 4)
        assert [await turn for turn in turns] == [[], []]
    assert rig.claims == []


async def test_jobs_that_the_store_counts_for_a_runner_and_that_it_does_not_hold_are_requeued(store: Store) -> None:
    """A claim whose number was forgotten: its job would never run."""
    await open_lease(store)
    (id_,) = await enqueue(store, 1, type="other")
    await claim_one(store, claim=999, types=("other",))
    async with rig_of(store, reconcile_every=0.0):
        async with asyncio.timeout(20):
            while (job := await look(store, id_)).status is not Status.PENDING:
                await store.signals.wait(store.signals.cursor(), 0.1)
    assert (job.requeues, job.failures, job.attempt) == (1, 0, 1)


async def test_a_due_job_does_not_wait_for_a_coordinator(store: Store, clock: Any) -> None:
    (id_,) = await enqueue(store, 1, delay=1_000_000)
    assert (await look(store, id_)).status is Status.SCHEDULED
    clock.advance(1_000_000)
    async with rig_of(store) as rig:
        await rig.until(lambda: len(rig.ran) == 1)


async def test_a_schema_that_is_too_new_ends_the_loop(store: Store) -> None:
    with table_of() as table:
        rig = Rig(store, table, ())

        async def claim(request: ClaimRequest) -> Any:
            raise SchemaMismatch("too new")

        rig.jobs.__dict__["claim"] = claim
        rig.loop.serve("r1")
        with pytest.raises(SchemaMismatch):
            await rig.loop.run({"default": None}, ("t",))
